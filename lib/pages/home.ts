import type { Pages } from './contract.ts'
import { html } from './html.ts'
import { type Context, type Part, buttonLink } from './parts.ts'

/** For somebody who opens the address of the service in a browser. */
export function home ({ account, docs }: Pages['home'], { texts: { common, home: own } }: Context): Part {
  return {
    title: own.title,
    body: html`<h1>${own.title}</h1>
<p>${own.text}</p>
${account !== undefined && buttonLink(account, common.toAccount)}${docs !== undefined && html`<p class="next"><a href="${docs}">${own.docs}</a></p>`}`
  }
}
