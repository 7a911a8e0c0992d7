import type { Pages } from '../contract.ts'
import { html } from '../html.ts'
import { type Context, type Part, hidden, name as showName } from '../parts.ts'
import { askProof, frame, ofWhat, showTime } from './shell.ts'

/** The identities at other providers, and the buttons that connect more. */
export function identities (view: Pages['account-identities'], { texts, language }: Context): Part {
  const { identities: all, upstreams, base } = view
  const { account: own } = texts
  return frame(view, texts, html`<p>${own.identitiesWhy}</p>
${all.length === 0
  ? html`<p>${own.noIdentities}</p>`
  : html`<p class="muted">${own.timesInUtc}</p>
<ul class="entries">
${all.map(({ id, name, at, last_used_at, off }) => html`<li>
<div><h2>${showName(name)}</h2>
<p class="muted">${own.addedAt({ time: showTime(at, language) })}${last_used_at !== undefined && html`<br>${own.lastUsedAt({ time: showTime(last_used_at, language) })}`}</p>
${off === true && html`<p class="muted">${own.identityOff}</p>\n`}</div>
<p><a href="${base}/identities/remove?${new URLSearchParams({ id }).toString()}">${own.disconnectIdentity}${ofWhat(showName(name), texts)}</a></p>
</li>\n`)}</ul>`}
${upstreams.length > 0 && html`<p>${own.connectWhy}</p>
<div class="upstreams">
${upstreams.map(({ id, name }) => html`<a class="button" href="${base}/identities/add?${new URLSearchParams({ upstream: id }).toString()}">${own.connect({ name: showName(name) })}</a>\n`)}</div>`}`)
}

export function addIdentity (view: Pages['account-identity-add'], { texts }: Context): Part {
  const { id, name, base, xsrf } = view
  const { account: own, common } = texts
  const label = own.connect({ name: showName(name) })
  return frame(view, texts, html`<p>${own.connectWhy}</p>
<form method="post" action="${base}/identities/add?${new URLSearchParams({ upstream: id }).toString()}">
${hidden('xsrf', xsrf)}${askProof(view, texts)}<p class="actions"><button class="primary" type="submit">${label}</button></p>
</form>
<p class="next"><a href="${base}/identities">${common.cancel}</a></p>`, label)
}

export function removeIdentity (view: Pages['account-identity-remove'], { texts }: Context): Part {
  const { id, name, base, xsrf } = view
  const { account: own, common } = texts
  return frame(view, texts, html`<p>${own.disconnectWhy}</p>
<form method="post" action="${base}/identities/remove?${new URLSearchParams({ id }).toString()}">
${hidden('xsrf', xsrf)}${askProof(view, texts)}<label class="check"><input name="end_sessions" type="checkbox" value="yes" checked> ${own.endOthers}</label>
<p class="actions"><button class="danger" type="submit">${own.disconnectIdentity}</button></p>
</form>
<p class="next"><a href="${base}/identities">${common.cancel}</a></p>`, own.disconnectIdentityQuestion({ name: showName(name) }))
}
