import type { Pages } from './contract.ts'
import { html } from './html.ts'
import { type Context, type Part, alert, describes, hidden, strong, titled } from './parts.ts'

export function signIn ({ action, client, account, xsrf, error, again = false, forgot, signUp }: Pages['sign-in'], { texts }: Context): Part {
  const isFilledIn = account !== undefined
  const { common, signIn: own } = texts
  const title = again ? own.again : own.title
  return {
    title: titled(title, error, texts),
    body: html`<h1>${title}</h1>
<p>${again ? own.againWhy : client === undefined ? own.toAccount : own.toContinue({ app: strong(client.name) })}</p>
${alert(error, texts)}<form method="post" action="${action}">
${xsrf !== undefined && hidden('xsrf', xsrf)}<label for="account">${common.account}</label>
<input id="account" name="account" type="text" inputmode="email" autocomplete="username" autocapitalize="none" autocorrect="off" spellcheck="false" maxlength="254" required value="${account}"${describes(error)}${!isFilledIn && html` autofocus`}>
<label for="password">${common.password}</label>
<input id="password" name="password" type="password" autocomplete="current-password" maxlength="1024" required${describes(error)}${isFilledIn && html` autofocus`}>
<p class="actions"><button class="primary" type="submit">${own.submit}</button>${(client !== undefined || again) && html`
<button type="submit" name="cancel" value="yes" formnovalidate>${common.cancel}</button>`}</p>
</form>${forgot !== undefined && html`
<p class="next"><a href="${forgot}">${own.forgot}</a></p>`}${signUp !== undefined && html`
<p class="next"><a href="${signUp}">${own.signUp}</a></p>`}`
  }
}
