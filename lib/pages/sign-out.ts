import type { Pages } from './contract.ts'
import { html } from './html.ts'
import { type Context, type Part, appName, hidden, strong } from './parts.ts'
import { showWay } from './way.ts'

export function signOut ({ action, xsrf, client }: Pages['sign-out'], { texts: { signOut: own } }: Context): Part {
  return {
    title: own.title,
    body: html`<h1>${own.heading}</h1>
${client !== undefined && html`<p>${own.byApp({ app: strong(client.name) })}</p>\n`}<p>${own.everywhere}</p>
<form method="post" action="${action}">
${hidden('xsrf', xsrf)}<p class="actions"><button class="primary" type="submit" name="logout" value="yes">${own.submit}</button>
<button type="submit">${own.stay}</button></p>
</form>`
  }
}

export function signedOut ({ client, next }: Pages['signed-out'], { texts, home }: Context): Part {
  const { common, signOut: own } = texts
  return {
    title: own.doneTitle,
    body: html`<h1>${own.doneTitle}</h1>
<p>${client === undefined ? own.done : own.doneOf({ app: strong(client.name) })}</p>
${next?.vouched !== true && home !== undefined && html`<p class="next"><a href="${home}">${client === undefined ? own.again : common.toAccount}</a></p>\n`}${next !== undefined && showWay(next, common.goBack({ app: appName(client, texts) }), texts)}`
  }
}
