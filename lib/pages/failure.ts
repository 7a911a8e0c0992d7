import type { Pages } from './contract.ts'
import { html } from './html.ts'
import { type Context, type Part, appName, buttonLink } from './parts.ts'
import { showWay } from './way.ts'

export function failure ({ message, code, detail, back, ways = [] }: Pages['error'], { texts, home }: Context): Part {
  const { common, errors } = texts
  return {
    title: errors.heading,
    body: html`<h1>${errors.heading}</h1>
<p class="error" role="alert">${message(texts)}</p>
${(code ?? detail) !== undefined && html`<p class="muted">${errors.forDevelopers} <span lang="en">${code !== undefined && html`<code>${code}</code> `}${detail}</span></p>\n`}${ways.map(({ to, text }, index) => index === 0 ? buttonLink(to, text(texts)) : html`<p class="next"><a href="${to}">${text(texts)}</a></p>\n`)}${ways.length === 0 && back?.vouched !== true && home !== undefined && html`<p class="next"><a href="${home}">${common.toAccount}</a></p>\n`}${back !== undefined && showWay(back, common.goBack({ app: appName(back.client, texts) }), texts)}`
  }
}
