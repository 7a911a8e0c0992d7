import type { Pages } from './contract.ts'
import { html } from './html.ts'
import { type Context, type Part, hidden, name, strong } from './parts.ts'
import { labelProvider } from './provider-mark.ts'
import { cancelLink } from './sign-in.ts'

/** Leads somebody to the provider of the domain of their address, whether or not there is such an account. */
export function signInElsewhere (view: Pages['sign-in-elsewhere'], context: Context): Part {
  const { action, xsrf, client, account, upstream } = view
  const { signIn, upstreams: texts } = context.texts
  return {
    title: signIn.title,
    body: html`<h1>${signIn.title}</h1>
<p>${client === undefined ? signIn.toAccount : signIn.toContinue({ app: strong(client.name) })}</p>
<p class="account"><span>${texts.elsewhere({ account: strong(account), name: name(upstream.name) })}</span></p>
<p class="actions"><a class="button primary" href="${upstream.to}">${labelProvider(upstream, context.texts)}</a></p>
<div class="links">
<form method="post" action="${action}">
${xsrf !== undefined && hidden('xsrf', xsrf)}${hidden('account', account)}<button class="link" type="submit" name="direct" value="ask">${texts.direct}</button>
</form>
${client !== undefined && cancelLink(view, context)}</div>`
  }
}
