import { describeScope } from '../consent.ts'
import type { Pages } from '../contract.ts'
import { type Html, html } from '../html.ts'
import { type Context, type Part, hidden, name } from '../parts.ts'
import { describeTarget } from '../way.ts'
import { frame, ofWhat, showTime } from './shell.ts'

/** Where the app sends people. */
function target (uri: string | undefined, texts: Context['texts']): Html | false {
  const shown = uri === undefined ? undefined : describeTarget(uri, texts)
  return shown !== undefined && html`<p class="muted">${texts.account.sendsTo({ target: shown })}</p>\n`
}

export function apps (view: Pages['account-apps'], { texts, language }: Context): Part {
  const { apps: connected, more, base, xsrf } = view
  const { account: own } = texts
  if (connected.length === 0) return frame(view, texts, html`<p>${own.noApps}</p>`)
  return frame(view, texts, html`<ul class="entries">
${connected.map(({ client_id, client, host, redirectUri, vouched, scopes, connected_at, last_used_at }) => html`<li>
<div><h2>${name(host ?? client.name)}</h2>
${host !== undefined && html`<p>${texts.consent.callsItself({ app: name(client.name) })}</p>\n`}${target(redirectUri, texts)}${!vouched && html`<p class="muted">${own.unvouched}</p>\n`}${scopes.length > 0 && html`<p>${own.mayDo}</p>
<ul class="scopes">
${scopes.map((scope) => html`<li>${describeScope(scope, texts)}</li>\n`)}</ul>\n`}<p class="muted">${own.connectedAt({ time: showTime(connected_at, language) })}<br>${own.lastUsedAt({ time: showTime(last_used_at, language) })}</p></div>
<form method="post" action="${base}/apps">
${hidden('xsrf', xsrf)}<button type="submit" name="client" value="${client_id}">${own.disconnect}${ofWhat(client.name, texts)}</button>
</form>
</li>\n`)}</ul>
${more > 0 && html`<p class="muted">${own.more({ count: more })}</p>`}`)
}
