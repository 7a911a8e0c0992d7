import { type Html, html } from './html.ts'
import type { Context } from './parts.ts'

/** What creating an account means by law, if the operator has pages about it. */
export const legal = ({ texts: { links: { signUp } }, links: { terms, privacy } }: Context): Html | false => (terms ?? privacy) !== undefined && html`<p class="muted legal">${
  terms !== undefined && signUp.agree({ terms: html`<a href="${terms}">${signUp.agreeTerms}</a>` })}${
  terms !== undefined && privacy !== undefined && ' '}${
  privacy !== undefined && signUp.inform({ privacy: html`<a href="${privacy}">${signUp.informPrivacy}</a>` })}</p>\n`
