import type { Pages } from '../contract.ts'
import { html } from '../html.ts'
import { type Context, type Part, hidden } from '../parts.ts'
import { passkey as offer } from '../passkey.ts'
import { MAX_NAME } from './factors.ts'
import { cancel } from './method-parts.ts'
import { askProof, frame } from './shell.ts'

/** Asks for a name and the proof, and then has the browser make the passkey. */
export function addPasskey (view: Pages['account-passkey-add'], { texts }: Context): Part {
  const { name, creation = false, passkey, base, xsrf } = view
  const { account: own, common } = texts
  const body = creation && passkey !== undefined
    ? html`<p>${own.createPasskeyWhy}</p>
<form method="post" action="${base}/factors/passkeys">
${hidden('xsrf', xsrf)}${hidden('name', name ?? '')}${offer(passkey, texts, { label: texts.passkey.create, isOnly: true, isPrimary: true })}</form>`
    : html`<p>${own.addPasskeyWhy}</p>
<form method="post" action="${base}/factors/passkeys">
${hidden('xsrf', xsrf)}<label for="name">${own.passkeyName}</label>
<p class="hint" id="name-hint">${own.appNameHint}</p>
<input id="name" name="name" type="text" autocomplete="off" maxlength="${MAX_NAME}" value="${name}" aria-describedby="name-hint">
${askProof(view, texts)}<p class="actions"><button class="primary" type="submit">${common.continue}</button></p>
</form>`
  return frame(view, texts, html`${body}${cancel(view, texts)}`, html`${own.addPasskey}`)
}
