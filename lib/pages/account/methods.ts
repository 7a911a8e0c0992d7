import type { FactorView, IdentityView, PageUpstream, PasskeyFactorView, Pages } from '../contract.ts'
import { type Html, html } from '../html.ts'
import { type Context, type Part, name as showName } from '../parts.ts'
import { isNamed, nameFactor, showFactorDetails, toFactorLink, toIdentityLink } from './method-parts.ts'
import { frame, ofWhat } from './shell.ts'

type View = Pages['account-methods']

const button = (href: string, text: string | Html): Html => html`<p><a class="button" href="${href}">${text}</a></p>`

/** One entry of the list: what there is, or what can be added, and its only button. */
const entry = (what: Html, ...own: Parameters<typeof button>): Html => html`<li>
<div>${what}</div>
${button(...own)}
</li>
`

/** The entries of one kind below their heading. `why` says what the kind is for. */
const group = (id: string, heading: string, why: string | false, entries: readonly (Html | false)[]): Html => html`<h2 id="${id}">${heading}</h2>
${why !== false && html`<p class="muted">${why}</p>\n`}<ul class="entries" aria-labelledby="${id}">
${entries}</ul>
`

function showFactor (factor: FactorView | PasskeyFactorView, kind: 'passkey' | 'totp', { base }: View, context: Context): Html {
  const { texts } = context
  const called = nameFactor(factor.name, texts, kind)
  return entry(html`<p><strong>${called}</strong></p>
${kind === 'totp' && isNamed(factor.name) && html`<p class="muted">${texts.account.authenticator}</p>
`}${showFactorDetails(factor, context)}`, toFactorLink(base, 'rename', factor.id), html`${texts.account.manage}${ofWhat(called, texts)}`)
}

function showPasskeys (view: View, context: Context): Html | false {
  const { passkeys, mayAddPasskey, base } = view
  const { account: own } = context.texts
  if (passkeys.length === 0 && !mayAddPasskey) return false
  return group('passkeys', own.passkeys, false, [
    ...passkeys.map((one) => showFactor(one, 'passkey', view, context)),
    mayAddPasskey && entry(html`<p class="muted">${own.addPasskeyWhy}</p>`, `${base}/factors/passkeys`, own.addPasskey)
  ])
}

function showPassword ({ noPassword = false, base }: View, { texts: { account: own, common } }: Context): Html {
  const what = html`<p>${noPassword ? own.hasNoPassword : own.hasPassword}</p>`
  return group('password', common.password, false, [entry(what, `${base}/password`, noPassword ? own.setPassword : own.changePassword)])
}

function showIdentity ({ id, name, off = false, ...times }: IdentityView, { base }: View, context: Context): Html {
  const { texts } = context
  const { account: own } = texts
  return entry(html`<p><strong>${showName(name)}</strong></p>
${showFactorDetails(times, context)}${off && html`<p class="muted">${own.identityOff}</p>\n`}`,
  toIdentityLink(base, 'remove', { id }), html`${own.disconnectIdentity}${ofWhat(showName(name), texts)}`)
}

function showIdentities (view: View, context: Context): Html | false {
  const { identities, upstreams, base } = view
  const { account: own } = context.texts
  if (identities === undefined || (identities.length === 0 && upstreams.length === 0)) return false
  const connect = ({ id, name }: PageUpstream) => (
    html`<a class="button" href="${toIdentityLink(base, 'add', { upstream: id })}"><span>${own.connect({ name: showName(name) })}</span></a>\n`)
  const held = identities.length === 0
    ? html`<h2>${own.identities}</h2>
<p class="muted">${own.identitiesWhy} ${own.noIdentities}</p>
`
    : group('identities', own.identities, own.identitiesWhy, identities.map((one) => showIdentity(one, view, context)))
  return html`${held}${upstreams.length > 0 && html`<div class="upstreams">
${upstreams.map(connect)}</div>
`}`
}

function showTwoStep (view: View, context: Context): Html | false {
  const { apps, passkeys, codes, mayAdd, base } = view
  const { account: own } = context.texts
  const isOff = apps.length + passkeys.length === 0
  if (isOff && codes === undefined && !mayAdd) return false
  return group('two-step', own.twoStep, `${isOff ? own.noFactors : own.hasFactors} ${own.factorsWhy}`, [
    ...apps.map((one) => showFactor(one, 'totp', view, context)),
    mayAdd && (apps.length === 0
      ? entry(html`<p class="muted">${own.addAppWhy}</p>`, `${base}/factors/new`, own.addApp)
      : entry(html``, `${base}/factors/new`, own.addAnotherApp)),
    codes !== undefined && entry(html`<p><strong>${own.codes}</strong></p>
<p class="muted">${own.codesLeft({ count: codes })}</p>`, `${base}/factors/codes`, own.newCodes)
  ])
}

/** Every sign-in method on one page, with one button each. It has no form: each form has a page of its own. */
export function methods (view: View, context: Context): Part {
  const { texts } = context
  const { passkeys, apps, identities = [] } = view
  const hasTimes = passkeys.length + apps.length + identities.length > 0
  return frame(view, texts, html`${hasTimes && html`<p class="muted" data-utc>${texts.account.timesInUtc}</p>
`}${showPasskeys(view, context)}${showPassword(view, context)}${showIdentities(view, context)}${showTwoStep(view, context)}`)
}
