import { LONGEST_KEYS } from '../../key-text.ts'
import type { PageKey, Pages } from '../contract.ts'
import { type Html, html } from '../html.ts'
import { type Context, describes, hidden } from '../parts.ts'
import { ofWhat, showTime } from './shell.ts'

function showKey (
  { id, kid, algorithms, created_at, last_used_at }: PageKey, { client_id, base, xsrf }: Pages['account-client'], { texts, language }: Context
): Html {
  const { account: own } = texts
  return html`<li>
<div><p><code>${kid}</code></p>
<p class="muted">${algorithms.join(', ')}<br>${own.addedAt({ time: showTime(created_at, language) })}${last_used_at !== undefined && html`<br>${own.lastUsedAt({ time: showTime(last_used_at, language) })}`}</p></div>
<form method="post" action="${base}/clients/${client_id}">
${hidden('xsrf', xsrf)}${hidden('action', 'remove-key')}<button type="submit" name="key" value="${id}">${own.remove}${ofWhat(kid, texts)}</button>
</form>
</li>\n`
}

/** The public keys of a client that must authenticate, and the form that adds one. */
export function listKeys (view: Pages['account-client'], context: Context): Html {
  const { client_id, tokenAuth, keys, mayAddKey, typed, error, base, xsrf } = view
  const { texts: { account: own } } = context
  const isUsed = tokenAuth === 'private_key_jwt'
  return html`<h2 id="keys">${own.keys}</h2>
<p>${isUsed ? own.keysWhy : own.keysUnused}</p>
${keys.length === 0
  ? isUsed && html`<p>${own.noKeys}</p>`
  : html`<p class="muted">${own.timesInUtc}</p>
<ul class="entries" aria-labelledby="keys">
${keys.map((key) => showKey(key, view, context))}</ul>`}
<h2>${own.addKey}</h2>
${!mayAddKey
  ? html`<p>${own.mostKeys}</p>`
  : html`<form method="post" action="${base}/clients/${client_id}">
${hidden('xsrf', xsrf)}<label for="key">${own.publicKey}</label>
<p class="hint" id="key-hint">${own.publicKeyHint}</p>
<textarea id="key" name="key" rows="6" autocomplete="off" autocapitalize="none" spellcheck="false" maxlength="${LONGEST_KEYS}" required${describes(typed?.wrong === 'key' ? error : undefined, 'key-hint')}>${typed?.key ?? ''}</textarea>
<p class="actions"><button class="primary" type="submit" name="action" value="add-key">${own.addKey}</button></p>
</form>`}
`
}
