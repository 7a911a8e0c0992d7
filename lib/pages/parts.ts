import { type Html, html } from './html.ts'

/** The variable part of a page: the document title, and the content of `main`. */
export interface Part { title: string, body: Html }

// Created with the first page, since it is slow to create.
let segmenter: Intl.Segmenter | undefined

/** A name from outside, isolated so that its text direction does not affect the text around it. */
export const name = (text: string) => html`<bdi>${text}</bdi>`

/** The client's initial. Its image is not loaded: that would tell the client's server who is about to sign in. */
export function mark (text: string): Html {
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' })
  const [first] = segmenter.segment(text.trim())
  return html`<p class="mark" aria-hidden="true">${(first?.segment ?? '?').toUpperCase()}</p>`
}

/** An error message; `describes` links the fields it is about to it. */
export const alert = (error: string | undefined) => error !== undefined && html`<p class="error" role="alert" id="error">${error}</p>\n`

/** The ARIA attributes that link a field to its error and its hint. */
export function describes (error: string | undefined, hint?: string): Html | false {
  const ids = [error !== undefined && 'error', hint].filter(Boolean)
  return ids.length > 0 && html`${error !== undefined && html` aria-invalid="true"`} aria-describedby="${ids.join(' ')}"`
}

/** The document title, with the error in it: screen readers announce it first. */
export const titled = (title: string, error: string | undefined) => error === undefined ? title : `Error: ${title}`

export const hidden = (field: string, value: string) => html`<input type="hidden" name="${field}" value="${value}">\n`
