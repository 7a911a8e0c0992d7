import { type Html, html } from './html.ts'
import type { Message, Texts } from './texts/en.ts'
import type { Language } from './texts/language.ts'

/** The variable part of a page: the document title, and the content of `main`, and of what is before it. */
export interface Part { title: string, body: Html, before?: Html }

/** What a page is written with. */
export interface Context {
  texts: Texts
  language: Language
  /** The path of the account pages, where there are some. */
  home?: string | undefined
}

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
export const alert = (error: Message | undefined, texts: Texts) => error !== undefined && html`<p class="error" role="alert" id="error">${error(texts)}</p>\n`

/** The ARIA attributes that link a field to its error and its hint. */
export function describes (error: Message | undefined, hint?: string): Html | false {
  const ids = [error !== undefined && 'error', hint].filter(Boolean)
  return ids.length > 0 && html`${error !== undefined && html` aria-invalid="true"`} aria-describedby="${ids.join(' ')}"`
}

/** The document title; with an error it begins with that, since screen readers announce it first. */
export const titled = (title: string, error: Message | undefined, texts: Texts) => error === undefined ? title : texts.common.errorTitle(title)

/** The name of an app as part of a sentence. */
export const appName = (client: { name: string } | undefined, texts: Texts): Html => client === undefined ? html`${texts.common.theApp}` : name(client.name)

export const hidden = (field: string, value: string) => html`<input type="hidden" name="${field}" value="${value}">\n`
