import { type Html, html } from './html.ts'

/** A page before its frame: what the window is called, and what is in `main`. */
export interface Part { title: string, body: Html }

// Made for the first page: it takes longer than the rest of the module's start together.
let letters: Intl.Segmenter | undefined

/** A name from outside, so that its direction of writing changes nothing around it. */
export const name = (text: string) => html`<bdi>${text}</bdi>`

/** The client's initial. Its image stays unseen: loading it would tell the client's server who is about to sign in. */
export function mark (text: string): Html {
  letters ??= new Intl.Segmenter('en', { granularity: 'grapheme' })
  const [first] = letters.segment(text.trim())
  return html`<p class="mark" aria-hidden="true">${(first?.segment ?? '?').toUpperCase()}</p>`
}

/** What went wrong. Fields that it is about name it by `describes`. */
export const alert = (error: string | undefined) => error !== undefined && html`<p class="wrong" role="alert" id="error">${error}</p>\n`

/** The attributes of a field that belongs to an error, and of one with a hint. */
export function describes (error: string | undefined, hint?: string): Html | false {
  const ids = [error !== undefined && 'error', hint].filter(Boolean)
  return ids.length > 0 && html`${error !== undefined && html` aria-invalid="true"`} aria-describedby="${ids.join(' ')}"`
}

/** Tells the window's title of an error too: it is what is read out first. */
export const titled = (title: string, error: string | undefined) => error === undefined ? title : `Error: ${title}`

export const hidden = (field: string, value: string) => html`<input type="hidden" name="${field}" value="${value}">\n`
