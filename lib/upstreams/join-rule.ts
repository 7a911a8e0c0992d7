import type { LostIdentity, UserRecord } from '../records/user.ts'
import type { Way } from '../way.ts'
import { showIdentity } from '../ways/identity.ts'
import type { IdentityHistory } from '../ways/lost-identities.ts'
import { hasIssuer } from './kinds.ts'
import { type Proven, toNew } from './linking.ts'

/** The part of a user's record that says which identities they have and have had. Its ways name their issuers, as far as they are known. */
export type KnownIdentities = IdentityHistory & Pick<UserRecord, 'link_undone'>

/**
 * How an identity stands to an account that has its address. `free`: the account has had no identity of the same upstream or issuer.
 * `other`: it has, or had, another one, so the address may have another owner now. `undone`: somebody has disconnected this one, which they
 * had not linked. `expected`: an administrator has said that this one, and no other, takes the place of the one before.
 */
export type Standing = 'free' | 'other' | 'undone' | 'expected'

/** Whether an identity is of the same upstream or issuer. What is not known may be. At Microsoft each tenant is an issuer of the same. */
const isOfSame = ({ upstream, issuer }: Pick<Way | LostIdentity, 'upstream' | 'issuer'>, { upstream: joining, claimed }: Proven): boolean => (
  upstream === joining.id || issuer === undefined || issuer === claimed.issuer || hasIssuer(joining, issuer))

/** The ids of the identities of the same upstream or issuer that the account has. */
export function listOthers ({ ways = {} }: KnownIdentities, proven: Proven): string[] {
  return Object.entries(ways).filter(([, way]) => way.kind === 'upstream' && way.key !== toNew(proven).key && isOfSame(way, proven)).map(([id]) => id)
}

/** How an identity stands to an account. Only issuer and subject say who somebody is: an address may get another owner. */
export function judgeStanding (known: KnownIdentities, proven: Proven): Standing {
  const { key } = toNew(proven)
  const { lost_identities: lost = [], expected_identities: expected = [], link_undone } = known
  const named = expected.find(({ upstream }) => upstream === proven.upstream.id)
  if (named !== undefined) return named.subject === showIdentity({ key }).subject ? 'expected' : 'other'
  const undone = lost.filter((one) => one.undone === true)
  // A record of an earlier release does not say which identity an undo took.
  if (undone.some((one) => one.key === key) || (link_undone === true && undone.length === 0)) return 'undone'
  const hadOther = lost.some((one) => one.key !== key && isOfSame(one, proven))
  return hadOther || listOthers(known, proven).length > 0 ? 'other' : 'free'
}
