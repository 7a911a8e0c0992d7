import { type Html, html } from './html.ts'
import type { OperatorLinks } from './operator-links.ts'
import type { Message, Texts } from './texts/en.ts'
import type { Language } from './texts/language.ts'

/** The variable parts of a page: the document title, the content of `main`, and the content before it. */
export interface Part { title: string | Html, body: Html, before?: Html }

/** The settings for rendering a page. */
export interface Context {
  texts: Texts
  language: Language
  /** The path of the account pages, if they are on. */
  home?: string | undefined
  /** The operator's own pages. */
  links: OperatorLinks
}

// Created with the first page, because that is slow.
let segmenter: Intl.Segmenter | undefined

/** A name from outside, isolated so that its text direction does not affect the text around it. */
export const name = (text: string) => html`<bdi>${text}</bdi>`

/** The same, as what a sentence is about. */
export const strong = (text: string) => html`<strong>${name(text)}</strong>`

/** The logo of a client, beside its name. */
export const logoOf = (logo: string | undefined): Html | false => logo !== undefined && html`<img class="logo" src="${logo}" alt=""> `

/** The client's logo, or its initial. */
export function mark (text: string, logo?: string): Html {
  if (logo !== undefined) return html`<p class="mark"><img src="${logo}" alt=""></p>`
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' })
  const [first] = segmenter.segment(text.trim())
  return html`<p class="mark" aria-hidden="true">${(first?.segment ?? '?').toUpperCase()}</p>`
}

/** An error message. `describes` links the affected fields to it. */
export const alert = (error: Message | undefined, texts: Texts) => error !== undefined && html`<p class="error" role="alert" id="error">${error(texts)}</p>\n`

/** The ARIA attributes that link a field to its error and its hint. */
export function describes (error: Message | undefined, hint?: string): Html | false {
  const ids = [error !== undefined && 'error', hint].filter(Boolean)
  return ids.length > 0 && html`${error !== undefined && html` aria-invalid="true"`} aria-describedby="${ids.join(' ')}"`
}

/** The document title. An error comes first, because screen readers announce the start of the title first. */
export const titled = (title: string | Html, error: Message | undefined, texts: Texts) => error === undefined ? title : texts.common.errorTitle({ title })

/** The name of an app as part of a sentence. */
export const appName = (client: { name: string } | undefined, texts: Texts): Html => client === undefined ? html`${texts.common.theApp}` : name(client.name)

/**
 * The account, for password managers. They skip fields of type=hidden, and take the text field before the password for the account.
 * The page shows the account elsewhere, so the field is hidden by the style, and left out of the order of the keyboard.
 */
export const username = (account: string) =>
  html`<input class="hidden" name="username" type="text" autocomplete="username" value="${account}" readonly tabindex="-1" aria-hidden="true">\n`

interface PasswordInput {
  name: string
  use: 'current' | 'new'
  error?: Message | undefined
  hint?: string | undefined
  /** Whether it has the focus. */
  isFirst?: boolean
  /** Further attributes. */
  more?: Html | false
}

/** The field of a password, with the button that shows it: the script of the page makes it visible. */
export function passwordInput ({ name: field, use, error, hint, isFirst = false, more }: PasswordInput, { common }: Texts): Html {
  const input = html`type="password" autocomplete="${use}-password" maxlength="1024" required${more}${describes(error, hint)}${isFirst && html` autofocus`}`
  return html`<div class="secret"><input id="${field}" name="${field}" ${input}>
<button type="button" data-show="${field}" aria-pressed="false" hidden>${common.show}<span class="hidden"> ${common.ofPassword}</span></button></div>
`
}

/** A link that looks like a button: the step that comes next. */
export const buttonLink = (href: string, text: Html | string) => html`<p class="actions"><a class="button primary" href="${href}">${text}</a></p>\n`

export const hidden = (field: string, value: string) => html`<input type="hidden" name="${field}" value="${value}">\n`

/** The page of a sign-in with another kind of proof. */
export const toOther = (action: string, kind: string): string => `${action}${action.includes('?') ? '&' : '?'}${String(new URLSearchParams({ way: kind }))}`
