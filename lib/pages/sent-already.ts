import type { Pages } from './contract.ts'
import { html } from './html.ts'
import { type Context, type Part, buttonLink } from './parts.ts'

/** Answers a form that was carried out before, when its answer is gone: a secret that it showed is shown by nobody. */
export function sentAlready ({ page }: Pages['sent-already'], { texts: { common, sentAlready: own }, home }: Context): Part {
  return {
    title: own.title,
    body: html`<h1>${own.title}</h1>
<p>${own.text}</p>
${page !== undefined && html`<p>${own.secret}</p>\n${buttonLink(page, own.back)}`}${page === undefined && home !== undefined && buttonLink(home, common.toAccount)}`
  }
}
