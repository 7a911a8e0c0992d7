import type { Pages } from './contract.ts'
import { html } from './html.ts'
import { type Context, type Part, strong } from './parts.ts'

/** Asks a person who is signed in whether they go on with this account, because the app wants them to choose. */
export function selectAccount ({ action, client, account, otherAccount }: Pages['select-account'], { texts }: Context): Part {
  const { common, selectAccount: own } = texts
  return {
    title: own.title,
    body: html`<h1>${own.title}</h1>
<p>${texts.signIn.toContinue({ app: strong(client.name) })}</p>
<p class="account"><span>${common.signedInAs({ account: strong(account) })}</span>
<a href="${otherAccount}">${texts.consent.otherAccount}</a></p>
<form method="post" action="${action}">
<p class="actions"><button class="primary" type="submit" name="decision" value="go-on">${common.continue}</button>
<button type="submit" name="cancel" value="yes">${common.cancel}</button></p>
</form>`
  }
}
