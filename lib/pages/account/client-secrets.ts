import type { PageSecret, Pages } from '../contract.ts'
import { type Html, html } from '../html.ts'
import { type Context, describes, hidden, name } from '../parts.ts'
import type { Texts } from '../texts/en.ts'
import { ofWhat, showTime } from './shell.ts'

/** Characters of the name of a secret. */
const MAX_NAME = 256

/** The readable secret has no name of its own. */
export const nameSecret = ({ name: given }: Pick<PageSecret, 'name'>, { account: own }: Texts): Html =>
  given === undefined ? html`${own.firstSecret}` : name(given)

function showSecret (secret: PageSecret, { client_id, base, xsrf }: Pages['account-client'], { texts, language }: Context): Html {
  const { id, last4, created_at, expires_at, ended, last_used_at } = secret
  const { account: own } = texts
  const details = [
    last4 !== undefined && own.endsWith({ text: last4 }),
    created_at !== undefined && own.addedAt({ time: showTime(created_at, language) }),
    expires_at !== undefined && (ended ? own.endedAt : own.endsAt)({ time: showTime(expires_at, language) }),
    last_used_at !== undefined && own.lastUsedAt({ time: showTime(last_used_at, language) })
  ].filter((detail) => detail !== false)
  return html`<li>
<div><p><strong>${nameSecret(secret, texts)}</strong></p>
${details.length > 0 && html`<p class="muted">${details.map((detail, index) => html`${index > 0 && html`<br>`}${detail}`)}</p>`}</div>
<form method="post" action="${base}/clients/${client_id}">
${hidden('xsrf', xsrf)}${hidden('action', 'remove')}<button type="submit" name="secret" value="${id}">${own.remove}${ofWhat(nameSecret(secret, texts), texts)}</button>
</form>
</li>\n`
}

/** The secrets of a client that must authenticate, and the form that adds one. */
export function listSecrets (view: Pages['account-client'], context: Context): Html {
  const { client_id, secrets, added, mayAdd, match, typed, error, base, xsrf } = view
  const { texts: { account: own } } = context
  return html`<h2 id="secrets">${own.secrets}</h2>
<p>${own.secretsWhy}</p>
${added !== undefined && html`<p class="done" role="status">${own.secretAdded}</p>
<p class="code seed"><code id="secret">${added}</code></p>\n`}${secrets.length === 0
  ? html`<p>${own.noSecrets}</p>`
  : html`<p class="muted">${own.timesInUtc}</p>
<ul class="entries" aria-labelledby="secrets">
${secrets.map((secret) => showSecret(secret, view, context))}</ul>`}
<h2>${own.addSecret}</h2>
${!mayAdd
  ? html`<p>${own.mostSecrets}</p>`
  : html`<form method="post" action="${base}/clients/${client_id}">
${hidden('xsrf', xsrf)}${hidden('match', match)}<label for="name">${own.secretName}</label>
<p class="hint" id="name-hint">${own.secretNameHint}</p>
<input id="name" name="name" type="text" autocomplete="off" maxlength="${MAX_NAME}" value="${typed?.name ?? ''}" required${describes(typed?.wrong === 'name' ? error : undefined, 'name-hint')}>
<label for="expires">${own.lastDay}</label>
<p class="hint" id="expires-hint">${own.lastDayHint}</p>
<input id="expires" name="expires" type="date" autocomplete="off" value="${typed?.expires ?? ''}"${describes(typed?.wrong === 'expires' ? error : undefined, 'expires-hint')}>
<p class="actions"><button class="primary" type="submit" name="action" value="add">${own.addSecret}</button></p>
</form>`}
`
}
