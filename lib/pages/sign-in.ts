import { listUpstreams } from './choose-account.ts'
import type { Pages } from './contract.ts'
import { html } from './html.ts'
import { type Context, type Part, alert, describes, hidden, strong, titled } from './parts.ts'
import { passkey as offer, tell } from './passkey.ts'

export function signIn (view: Pages['sign-in'], context: Context): Part {
  const { action, client, account, xsrf, error, again = false, unverified = false, forgot, signUp, passkey, signals, upstreams, notice } = view
  const { texts } = context
  const isFilledIn = account !== undefined
  const { common, signIn: own } = texts
  const title = again ? own.again : own.title
  return {
    title: titled(title, error, texts),
    body: html`<h1>${title}</h1>
<p>${unverified ? own.unverifiedWhy : again ? own.againWhy : client === undefined ? own.toAccount : own.toContinue({ app: strong(client.name) })}</p>
${notice !== undefined && html`<p class="done" role="status">${notice(texts)}</p>\n`}${alert(error, texts)}<form method="post" action="${action}">
${xsrf !== undefined && hidden('xsrf', xsrf)}<label for="account">${common.account}</label>
<input id="account" name="account" type="text" inputmode="email" autocomplete="username${passkey !== undefined && ' webauthn'}" autocapitalize="none" autocorrect="off" spellcheck="false" maxlength="254" required value="${account}"${describes(error)}${!isFilledIn && html` autofocus`}>
<label for="password">${common.password}</label>
<input id="password" name="password" type="password" autocomplete="current-password" maxlength="1024" required${describes(error)}${isFilledIn && html` autofocus`}>
<p class="actions"><button class="primary" type="submit">${own.submit}</button>${(client !== undefined || again) && html`
<button type="submit" name="cancel" value="yes" formnovalidate>${common.cancel}</button>`}</p>
</form>${passkey !== undefined && html`
<form method="post" action="${action}">
${xsrf !== undefined && hidden('xsrf', xsrf)}${hidden('way', 'passkey')}${offer(passkey, texts, { label: texts.passkey.signIn })}</form>`}
${tell(signals)}${listUpstreams({ upstreams, action, xsrf }, context)}${forgot !== undefined && html`
<p class="next"><a href="${forgot}">${own.forgot}</a></p>`}${signUp !== undefined && html`
<p class="next"><a href="${signUp}">${own.signUp}</a></p>`}`
  }
}
