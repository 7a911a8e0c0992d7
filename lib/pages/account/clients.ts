import { describeScope } from '../consent.ts'
import type { TokenAuth } from '../../records/client.ts'
import type { Pages } from '../contract.ts'
import { html } from '../html.ts'
import { type Context, type Part, hidden, name } from '../parts.ts'
import type { Texts } from '../texts/en.ts'
import { listKeys } from './client-keys.ts'
import { listSecrets } from './client-secrets.ts'
import { frame, showTime } from './shell.ts'

/** The id stands in for a blank name. */
const nameOf = (client: { name: string }, client_id: string) => name(client.name.trim() === '' ? client_id : client.name)

const describeAuth = (tokenAuth: TokenAuth, { account: own }: Texts) =>
  ({ none: own.public, secret: own.confidential, private_key_jwt: own.withKey })[tokenAuth]

export function clients (view: Pages['account-clients'], { texts }: Context): Part {
  const { clients: entries, next, base } = view
  const { account: own } = texts
  return frame(view, texts, html`${entries.length === 0
    ? html`<p>${own.none}</p>`
    : html`<ul class="entries">
${entries.map(({ client_id, client, tokenAuth, disabled }) => html`<li>
<div><p><a href="${base}/clients/${client_id}">${nameOf(client, client_id)}</a></p>
<p class="muted">${describeAuth(tokenAuth, texts)}${disabled && html`<br>${own.disabled}`}</p></div>
</li>\n`)}</ul>`}
${next !== undefined && html`<p class="next"><a href="${base}/clients?${next}">${own.nextPage}</a></p>`}`)
}

export function client (view: Pages['account-client'], context: Context): Part {
  const { texts, language } = context
  const { client_id, client: { name: clientName }, created_at, tokenAuth, readable, disabled, redirectUris, scopes, secret, secrets, base, xsrf } = view
  const { account: own } = texts
  const hasSecrets = tokenAuth === 'secret' || secrets.length > 0
  const act = (action: string, text: string, kind?: string) => html`<form method="post" action="${base}/clients/${client_id}">
${hidden('xsrf', xsrf)}<p class="actions"><button${kind !== undefined && html` class="${kind}"`} type="submit" name="action" value="${action}">${text}</button></p>
</form>
`
  return frame(view, texts, html`${disabled && html`<p class="muted">${own.disabled}</p>\n`}<dl>
<dt>${own.clientId}</dt><dd><code>${client_id}</code></dd>
<dt>${own.secret}</dt><dd>${secret !== undefined ? html`<code id="secret">${secret}</code>` : describeAuth(tokenAuth, texts)}</dd>
<dt>${own.registeredAt}</dt><dd>${showTime(created_at, language)}</dd>
<dt>${own.redirectUris}</dt><dd>${redirectUris.length === 0 ? own.none : redirectUris.map((uri) => html`<bdi>${uri}</bdi><br>`)}</dd>
<dt>${own.scopes}</dt><dd>${scopes.length === 0 ? own.none : html`<ul class="scopes">${scopes.map((scope) => html`<li>${describeScope(scope, texts)}</li>`)}</ul>`}</dd>
</dl>
${readable && secret === undefined && act('show', own.showSecret)}${readable && act('renew', own.renewSecret)}${hasSecrets && listSecrets(view, context)}${tokenAuth !== 'none' && listKeys(view, context)}${act('delete', own.deleteClient, 'danger')}`, nameOf({ name: clientName }, client_id))
}

export function confirm (view: Pages['account-confirm'], { texts }: Context): Part {
  const { question, subject, warning, submit, action, back, fields, xsrf } = view
  return frame(view, texts, html`<p>${warning(texts)}</p>
<form method="post" action="${action}">
${hidden('xsrf', xsrf)}${Object.entries(fields).map(([field, value]) => hidden(field, value))}<p class="actions"><button class="danger" type="submit" name="confirm" value="yes">${submit(texts)}</button></p>
</form>
<p class="next"><a href="${back}">${texts.common.cancel}</a></p>`, question(texts, name(subject)))
}
