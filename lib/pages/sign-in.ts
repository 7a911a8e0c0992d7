import type { Pages } from './contract.ts'
import { html } from './html.ts'
import { type Part, alert, describes, name, titled } from './parts.ts'

export function signIn ({ action, client, account, error }: Pages['sign-in']): Part {
  const isFilledIn = account !== undefined
  return {
    title: titled('Sign in', error),
    body: html`<h1>Sign in</h1>
<p>to continue to <strong>${name(client.name)}</strong></p>
${alert(error)}<form method="post" action="${action}">
<label for="account">Account</label>
<input id="account" name="account" type="text" inputmode="email" autocomplete="username" autocapitalize="none" autocorrect="off" spellcheck="false" maxlength="254" required value="${account}"${describes(error)}${!isFilledIn && html` autofocus`}>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" maxlength="1024" required${describes(error)}${isFilledIn && html` autofocus`}>
<p class="actions"><button class="primary" type="submit">Sign in</button>
<button type="submit" name="cancel" value="yes" formnovalidate>Cancel</button></p>
</form>`
  }
}
