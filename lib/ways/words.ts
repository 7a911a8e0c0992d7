import type { UserFields, UserRecord } from '../records/user.ts'
import { setOrUnset } from '../defined.ts'
import { holdsRole } from '../roles.ts'
import { type Acr, type Proof, reaches, toStrength } from '../proofs.ts'
import { PASSWORD, type Way, type Ways, findWay, listKeys, listUpstreamIds } from '../way.ts'
import { type IdentityHistory, toHistoryFields } from './lost-identities.ts'

/** The part of a user by which an upstream claims them. */
export type ClaimedHolder = Pick<UserRecord, 'account' | 'email' | 'roles' | 'held_by' | 'claimed_roles'>

/** What the operator demands and allows. */
export interface WayPolicy {
  /** Who needs a second factor. `optional` and `off`: those who have one. `roles`: also those who hold one of these roles. */
  factors: 'off' | 'optional' | 'required' | { roles: readonly string[] }
  /** Whether passkeys are on. */
  passkeys: boolean
  /** The relying party of the service. Passkeys of another one count as none. Absent: each counts. */
  relyingParty?: string | undefined
  /** The upstream by which alone this person signs in; undefined where there is none. */
  findOnly (holder: ClaimedHolder): string | undefined
  /** Whether people may sign in with this upstream: to the client, if one is given. */
  allowsUpstream (upstream: string | undefined, client_id?: string): boolean
  /** Whether this upstream is for some clients only, or none any more. Without an id: whether any is. */
  restricts (upstream?: string): boolean
  /** Whether the operator trusts this claim of an upstream to say that two kinds were proved there. */
  trustsFactor (upstream: string | undefined, factor: string | undefined): boolean
  /** The upstream whose identities have this issuer; undefined where there is none. */
  findUpstream (issuer: string): string | undefined
}

export const DEFAULT_POLICY: WayPolicy = {
  factors: 'optional',
  passkeys: true,
  findOnly: () => undefined,
  allowsUpstream: () => false,
  restricts: () => false,
  trustsFactor: () => false,
  findUpstream: () => undefined
}

/** The part of a user that decides how they sign in. */
export type Holder = Pick<UserRecord, 'password' | 'ways'> & ClaimedHolder

/** A way or a proof: for `uv`, a passkey that verified the user, at its enrolment or now. */
type Kind = Pick<Proof, 'kind' | 'uv'> & Pick<Way, 'rk'>

/**
 * Whether it begins a sign-in: a password, an identity at an upstream, a passkey that verified the user and is found without its id. Others
 * are only second.
 */
export function beginsSignIn ({ kind, uv, rk }: Kind): boolean {
  return kind === 'password' || kind === 'upstream' || (kind === 'passkey' && uv === true && rk !== false)
}

/** Whether it is a factor. Recovery codes are none: they come with the first factor, and go with the last one. */
export function isFactor ({ kind }: Kind): boolean {
  return kind === 'totp' || kind === 'passkey'
}

/** Why the configuration makes a way unusable: all of its kind, or for this client. Nothing else forbids a way. Undefined where it does not. */
export function findForbidden (
  { kind, rp, upstream }: Omit<Way, 'at'>, policy: WayPolicy, client_id?: string
): 'method_off' | 'upstream_off' | 'wrong_app' | undefined {
  if (kind === 'upstream') {
    if (policy.allowsUpstream(upstream, client_id)) return undefined
    return client_id !== undefined && policy.allowsUpstream(upstream) ? 'wrong_app' : 'upstream_off'
  }
  const isOff = kind === 'passkey' && (!policy.passkeys || (policy.relyingParty !== undefined && rp !== policy.relyingParty))
  return isOff ? 'method_off' : undefined
}

/** Whether the configuration makes a way unusable. */
export const isForbidden = (way: Omit<Way, 'at'>, policy: WayPolicy, client_id?: string): boolean => findForbidden(way, policy, client_id) !== undefined

/** The ways that the configuration does not make unusable. */
function listAllowed ({ ways = {} }: Pick<Holder, 'ways'>, policy: WayPolicy): [id: string, way: Way][] {
  return Object.entries(ways).filter(([, way]) => !isForbidden(way, policy))
}

/** Whether they have a factor that they can use. A factor that is closed after too many failures counts. */
export function hasFactor (holder: Pick<Holder, 'ways'>, policy: WayPolicy): boolean {
  return listAllowed(holder, policy).some(([, way]) => isFactor(way))
}

/** Whether the operator demands a factor of somebody with these roles. */
export function needsFactor ({ roles }: Pick<Holder, 'roles'>, { factors }: WayPolicy): boolean {
  if (typeof factors === 'string') return factors === 'required'
  return factors.roles.some((role) => holdsRole(roles, role))
}

/** The strength that is demanded of a person: `mfa` if they have a factor or the policy says so. */
export function findDemanded (holder: Pick<Holder, 'ways' | 'roles'>, policy: WayPolicy): Acr {
  return hasFactor(holder, policy) || needsFactor(holder, policy) ? 'mfa' : '1'
}

/** Whether a way is an identity at the upstream by which alone somebody signs in. */
export const isOnly = (way: Pick<Way, 'kind' | 'upstream'> | undefined, only: string): boolean => way?.kind === 'upstream' && way.upstream === only

/** The ids of the ways in: the password, and the ways with which a sign-in can begin now. Of whom one upstream claims, its identities. */
export function listWaysIn (holder: Holder, policy: WayPolicy): string[] {
  const only = policy.findOnly(holder)
  const begins = listAllowed(holder, policy).filter(([, way]) => beginsSignIn(way))
  if (only !== undefined) return begins.filter(([, way]) => isOnly(way, only)).map(([id]) => id)
  const others = begins.map(([id]) => id)
  return holder.password ? [PASSWORD, ...others] : others
}

/** Whether a person can still prove this strength: by a way in together with all their factors. */
export function canReach (holder: Holder, acr: Acr, policy: WayPolicy): boolean {
  const toProof = (id: string): Proof => ({ at: '0', way: id, kind: 'password', ...findWay(holder, id) })
  const factors = listAllowed(holder, policy).filter(([, way]) => isFactor(way)).map(([id]) => toProof(id))
  return listWaysIn(holder, policy).some((id) => reaches(toStrength([toProof(id), ...factors]), acr))
}

/** The holder without some of their ways. The recovery codes go with the last factor. */
export function withoutWays <T extends Holder> (holder: T, ids: readonly string[]): T {
  const { password, ways = {}, ...rest } = holder
  const left = Object.entries(ways).filter(([id]) => !ids.includes(id))
  const kept = left.some(([, way]) => isFactor(way)) ? left : left.filter(([, { kind }]) => kind !== 'recovery')
  return { ...rest, ...(password !== undefined && !ids.includes(PASSWORD) && { password }), ways: Object.fromEntries(kept) } as unknown as T
}

/**
 * Whether a way may be removed: a way in remains whose proofs, with the remaining factors, reach what is demanded. A way that only the
 * configuration makes unusable may always be removed, and so may recovery codes and what does not exist.
 */
export function mayRemove (holder: Holder, id: string, policy: WayPolicy): boolean {
  const way = findWay(holder, id)
  if (id !== PASSWORD && (way === undefined || way.kind === 'recovery' || isForbidden(way, policy))) return true
  const rest = withoutWays(holder, [id])
  return canReach(rest, findDemanded(rest, policy), policy)
}

/** Whether a change of roles ends the sessions of a user: it gives a role that demands a factor to somebody without one. */
export function endsSessions (holder: Pick<Holder, 'ways' | 'roles'>, roles: UserRecord['roles'], policy: WayPolicy): boolean {
  return !hasFactor(holder, policy) && !needsFactor(holder, policy) && needsFactor({ roles }, policy)
}

/** Why a proof does not count: its way is gone or forbidden. Undefined for one that counts. Codes that were made anew stand for those before. */
export function findFallen (
  { way: id, kind }: Pick<Proof, 'way' | 'kind'>, holder: Pick<Holder, 'password' | 'ways'>, policy: WayPolicy, client_id?: string
): ReturnType<typeof findForbidden> | 'method_lost' {
  if (kind === 'password') return holder.password ? undefined : 'method_lost'
  if (kind === 'recovery') return Object.values(holder.ways ?? {}).some((way) => way.kind === kind) ? undefined : 'method_lost'
  const way = findWay(holder, id)
  return way?.kind === kind ? findForbidden(way, policy, client_id) : 'method_lost'
}

/** A proof that counts: its way still exists and is not forbidden. */
export const isStanding = (proof: Proof, holder: Pick<Holder, 'password' | 'ways'>, policy: WayPolicy, client_id?: string): boolean =>
  findFallen(proof, holder, policy, client_id) === undefined

/**
 * The proofs that count, as they count now. What another provider has said of a second factor is asked of the configuration, which may trust
 * it no more.
 */
export function listStanding (proofs: readonly Proof[], holder: Pick<Holder, 'password' | 'ways'>, policy: WayPolicy, client_id?: string): Proof[] {
  return proofs.filter((proof) => isStanding(proof, holder, policy, client_id)).map((proof) => {
    if (proof.both !== true || policy.trustsFactor(findWay(holder, proof.way)?.upstream, proof.factor)) return proof
    const { both: _both, ...one } = proof
    return one
  })
}

/** Whether a person can prove who they are by something else than an identity at another provider. */
export function hasOther (holder: Holder, policy: WayPolicy): boolean {
  return hasFactor(holder, policy) || listWaysIn(holder, policy).some((id) => id === PASSWORD || findWay(holder, id)?.kind !== 'upstream')
}

/**
 * The fields of a user's record that name these ways, with the keys that find it by them. Every change of ways passes here, so that each
 * identity that goes is remembered.
 * @param before the record, if there is one
 * @param isUndone whether an undo takes the ways that go
 */
export function toWayFields (ways: Ways, before: IdentityHistory = {}, isUndone = false): UserFields {
  const history = toHistoryFields(before, ways, isUndone)
  const keys = listKeys(ways)
  const isNone = Object.keys(ways).length === 0
  const hasOne = Object.values(ways).some(isFactor)
  const upstreams = listUpstreamIds(ways)
  const { set, unset } = setOrUnset({
    ways: isNone ? undefined : ways, has_factor: hasOne ? true : undefined, upstreams, way_keys: keys.length > 0 ? keys : undefined
  })
  return { set: { ...set, ...history.set }, unset: [...history.unset, ...unset] }
}
