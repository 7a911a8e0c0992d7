import type { Pages } from '../contract.ts'
import { html } from '../html.ts'
import { type Context, type Part, describes, hidden, passwordInput, strong } from '../parts.ts'
import { tellTokens } from '../tokens-end.ts'
import { cancel } from './method-parts.ts'
import { askProof, frame, showDate } from './shell.ts'

export function profile (view: Pages['account-profile'], { texts, language }: Context): Part {
  const { account: own, common } = texts
  return frame(view, texts, html`<p>${common.signedInAs({ account: strong(view.account) })}</p>
<form method="post" action="${view.base}">
${hidden('xsrf', view.xsrf)}<label for="name">${own.name}</label>
<p class="hint" id="hint">${own.nameHint}</p>
<input id="name" name="name" type="text" autocomplete="name" maxlength="256" value="${view.name}"${describes(view.error, 'hint')}>
<p class="actions"><button class="primary" type="submit">${own.save}</button></p>
</form>
<p class="muted">${own.memberSince({ date: showDate(view.created_at, language) })}</p>`)
}

export function password (view: Pages['account-password'], { texts }: Context): Part {
  const { account: own } = texts
  const label = view.noPassword === true ? own.setPassword : own.changePassword
  return frame(view, texts, html`<p>${own.passwordEffect}</p>
${tellTokens(view, texts)}<form method="post" action="${view.base}/password">
${hidden('xsrf', view.xsrf)}${askProof(view, texts)}<label for="password">${own.newPassword}</label>
${passwordInput({ name: 'password', use: 'new', error: view.error }, texts)}<p class="actions">
<button class="primary" type="submit">${label}</button></p>
</form>${cancel(view, texts)}${view.mayRemove && html`
<p class="next"><a href="${view.base}/password/remove">${own.removePassword}</a></p>`}`, html`${label}`)
}

export function removePassword (view: Pages['account-password-remove'], { texts }: Context): Part {
  const { account: own } = texts
  return frame(view, texts, html`<p>${own.removePasswordWhy}</p>
${tellTokens(view, texts)}<form method="post" action="${view.base}/password/remove">
${hidden('xsrf', view.xsrf)}${askProof(view, texts)}<p class="actions"><button class="danger" type="submit">${own.removePassword}</button></p>
</form>${cancel(view, texts)}`, html`${own.removePassword}`)
}
