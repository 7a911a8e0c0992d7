import type { Pages } from '../contract.ts'
import { html } from '../html.ts'
import { type Context, type Part, hidden, name as showName } from '../parts.ts'
import { tellTokens } from '../tokens-end.ts'
import { cancel, toIdentityLink } from './method-parts.ts'
import { askProof, frame } from './shell.ts'

export function addIdentity (view: Pages['account-identity-add'], { texts }: Context): Part {
  const { id, name, base, xsrf } = view
  const { account: own } = texts
  const label = own.connect({ name: showName(name) })
  return frame(view, texts, html`<p>${own.connectWhy}</p>
<form method="post" action="${toIdentityLink(base, 'add', { upstream: id })}">
${hidden('xsrf', xsrf)}${askProof(view, texts)}<p class="actions"><button class="primary" type="submit">${label}</button></p>
</form>${cancel(view, texts)}`, label)
}

export function removeIdentity (view: Pages['account-identity-remove'], { texts }: Context): Part {
  const { id, name, base, xsrf } = view
  const { account: own } = texts
  return frame(view, texts, html`<p>${own.disconnectWhy}</p>
<form method="post" action="${toIdentityLink(base, 'remove', { id })}">
${hidden('xsrf', xsrf)}${askProof(view, texts)}<label class="check"><input name="end_sessions" type="checkbox" value="yes" checked> ${own.endOthers}</label>
${tellTokens(view, texts)}<p class="actions"><button class="danger" type="submit">${own.disconnectIdentity}</button></p>
</form>${cancel(view, texts)}`, own.disconnectIdentityQuestion({ name: showName(name) }))
}
