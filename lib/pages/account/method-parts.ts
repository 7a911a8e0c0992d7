import type { AccountView, FactorKind, FactorView, PasskeyFactorView } from '../contract.ts'
import { type Html, html } from '../html.ts'
import { type Context, name } from '../parts.ts'
import type { Texts } from '../texts/en.ts'
import { joinDetails, namePlace } from './sessions.ts'
import { showTime } from './shell.ts'

/** Whether a person has given a factor a name. */
export const isNamed = (given: string | undefined): given is string => given !== undefined && given.trim() !== ''

/** The name that a person has given to a factor, or else what it is. */
export const nameFactor = (given: string | undefined, { account: own }: Texts, kind: FactorKind): Html => (
  isNamed(given) ? name(given) : html`${kind === 'passkey' ? own.passkey : own.authenticator}`)

/** When a method was added and last used, from where, and whether it works. */
export function showFactorDetails (
  { at, last_used_at, foreign = false, place }: Pick<FactorView, 'at' | 'last_used_at'> & Pick<PasskeyFactorView, 'foreign' | 'place'>,
  { texts, language }: Context
): Html {
  const { account: own } = texts
  return html`<p class="muted">${own.addedAt({ time: showTime(at, language) })}${last_used_at !== undefined && html`<br>${own.lastUsedAt({ time: showTime(last_used_at, language) })}`}${place !== undefined && html`<br>${own.from({ place: joinDetails([namePlace(place, texts), place.address]) })}`}</p>
${foreign && html`<p class="muted">${own.foreignPasskey}</p>\n`}`
}

export const toFactorLink = (base: string, page: 'add' | 'rename' | 'remove', id: string): string =>
  `${base}/factors/${page}?${new URLSearchParams({ id }).toString()}`

export const toIdentityLink = (base: string, page: 'add' | 'remove', query: Record<string, string>): string =>
  `${base}/identities/${page}?${new URLSearchParams(query).toString()}`

/** The link of a form's page back to the list of all methods. */
export const cancel = ({ base }: Pick<AccountView, 'base'>, texts: Texts): Html => cancelTo(`${base}/methods`, texts)

export const cancelTo = (href: string, { common }: Texts): Html => html`
<p class="next"><a href="${href}">${common.cancel}</a></p>`
