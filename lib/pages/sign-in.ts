import { listUpstreams } from './choose-account.ts'
import type { Pages } from './contract.ts'
import { html } from './html.ts'
import { type Context, type Part, alert, describes, hidden, logoOf, passwordInput, strong, titled } from './parts.ts'
import { passkey as offer, tell } from './passkey.ts'

/** Cancels the sign-in. It looks like a link, and is a button: it changes something. */
export const cancelLink = ({ action, xsrf }: Pick<Pages['sign-in'], 'action' | 'xsrf'>, { texts: { common } }: Context) => html`
<form method="post" action="${action}">
${xsrf !== undefined && hidden('xsrf', xsrf)}<button class="link" type="submit" name="cancel" value="yes">${common.cancel}</button>
</form>
`

/** One page that looks the same whether or not there is such an account. */
export function signIn (view: Pages['sign-in'], context: Context): Part {
  const {
    action, client, account, xsrf, error, again = false, unverified = false, forgot, signUp, passkey, signals, upstreams = [], notice, direct = false
  } = view
  const { texts } = context
  const isFilledIn = account !== undefined
  const { signIn: own } = texts
  const title = again ? own.again : own.title
  const toContinue = client === undefined ? own.toAccount : own.toContinue({ app: html`${logoOf(client.logo)}${strong(client.name)}` })
  return {
    title: titled(title, error, texts),
    body: html`<h1>${title}</h1>
<p>${unverified ? own.unverifiedWhy : again ? own.againWhy : toContinue}</p>
${notice !== undefined && html`<p class="done" role="status">${notice(texts)}</p>\n`}${alert(error, texts)}${upstreams.length > 0 && html`
${listUpstreams({ upstreams, action, xsrf }, context)}
<p class="divider">${own.or}</p>
`}<form method="post" action="${action}">
${xsrf !== undefined && hidden('xsrf', xsrf)}${direct && hidden('direct', 'yes')}<label for="account">${texts.common.account}</label>
<input id="account" name="account" type="text" inputmode="email" autocomplete="username${passkey !== undefined && ' webauthn'}" autocapitalize="none" autocorrect="off" spellcheck="false" maxlength="254" required value="${account}"${describes(error)}${!isFilledIn && html` autofocus`}>
<label for="password">${texts.common.password}</label>
${passwordInput({ name: 'password', use: 'current', error, isFirst: isFilledIn }, texts)}<p class="actions">
<button class="primary" type="submit">${own.submit}</button></p>
</form>${passkey !== undefined && html`
<form method="post" action="${action}">
${xsrf !== undefined && hidden('xsrf', xsrf)}${hidden('way', 'passkey')}${offer(passkey, texts, { label: texts.passkey.signIn })}</form>`}
${tell(signals)}<div class="links">
${forgot !== undefined && html`<a href="${forgot}">${own.forgot}</a>\n`}${signUp !== undefined && html`<a href="${signUp}">${own.signUp}</a>\n`}${
  (client !== undefined || again) && cancelLink(view, context)}</div>`
  }
}
