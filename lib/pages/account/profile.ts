import type { Pages } from '../contract.ts'
import { html } from '../html.ts'
import { type Context, type Part, describes, hidden, strong } from '../parts.ts'
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
  return frame(view, texts, html`<p>${own.passwordEffect}</p>
<form method="post" action="${view.base}/password">
${hidden('xsrf', view.xsrf)}${askProof(view, texts)}<label for="password">${own.newPassword}</label>
<input id="password" name="password" type="password" autocomplete="new-password" maxlength="1024" required${describes(view.error)}>
<p class="actions"><button class="primary" type="submit">${own.changePassword}</button></p>
</form>${view.mayRemove && html`
<p class="next"><a href="${view.base}/password/remove">${own.removePassword}</a></p>`}`)
}

export function removePassword (view: Pages['account-password-remove'], { texts }: Context): Part {
  const { account: own, common } = texts
  return frame(view, texts, html`<p>${own.removePasswordWhy}</p>
<form method="post" action="${view.base}/password/remove">
${hidden('xsrf', view.xsrf)}${askProof(view, texts)}<p class="actions"><button class="danger" type="submit">${own.removePassword}</button></p>
</form>
<p class="next"><a href="${view.base}/password">${common.cancel}</a></p>`, html`${own.removePassword}`)
}
