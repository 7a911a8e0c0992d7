import type { UserRecord } from '../records.ts'
import type { Json } from '../store/port.ts'
import { holdsRole } from '../roles.ts'
import { type Acr, type Proof, reaches, toStrength } from '../proofs.ts'
import { PASSWORD, type Way, type Ways, listKeys, listUpstreamIds } from '../way.ts'
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
  /** The upstream whose identities have this issuer; undefined where there is none. */
  findUpstream (issuer: string): string | undefined
}

export const DEFAULT_POLICY: WayPolicy = { factors: 'optional', passkeys: true, findOnly: () => undefined, allowsUpstream: () => false, restricts: () => false, findUpstream: () => undefined }

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

/** Whether the configuration makes a way unusable: all of them, or for this client. Nothing else forbids a way. */
export function isForbidden ({ kind, rp, upstream }: Omit<Way, 'at'>, policy: WayPolicy, client_id?: string): boolean {
  if (kind === 'upstream') return !policy.allowsUpstream(upstream, client_id)
  return kind === 'passkey' && (!policy.passkeys || (policy.relyingParty !== undefined && rp !== policy.relyingParty))
}

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
  const toProof = (way: string): Proof => ({ at: '0', way, ...(way === PASSWORD ? { kind: 'password' } : holder.ways![way]!) })
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
  const way = holder.ways?.[id]
  if (id !== PASSWORD && (way === undefined || way.kind === 'recovery' || isForbidden(way, policy))) return true
  const rest = withoutWays(holder, [id])
  return canReach(rest, findDemanded(rest, policy), policy)
}

/** Whether a change of roles ends the sessions of a user: it gives a role that demands a factor to somebody without one. */
export function endsSessions (holder: Pick<Holder, 'ways' | 'roles'>, roles: UserRecord['roles'], policy: WayPolicy): boolean {
  return !hasFactor(holder, policy) && !needsFactor(holder, policy) && needsFactor({ roles }, policy)
}

/** A proof that counts: its way still exists and is not forbidden. Codes that were made anew stand for those before. */
export function isStanding (
  { way: id, kind }: Proof, holder: Pick<Holder, 'password' | 'ways'>, policy: WayPolicy, client_id?: string
): boolean {
  const { password, ways = {} } = holder
  if (kind === 'password') return Boolean(password)
  if (kind === 'recovery') return Object.values(ways).some((way) => way.kind === kind)
  const way: Ways[string] | undefined = Object.hasOwn(ways, id) ? ways[id] : undefined
  return way?.kind === kind && !isForbidden(way, policy, client_id)
}

/**
 * The fields of a user's record that name these ways, with the keys that find it by them. Every change of ways passes here, so that each
 * identity that goes is remembered.
 * @param before the record, if there is one
 * @param isUndone whether an undo takes the ways that go
 */
export function toWayFields (ways: Ways, before: IdentityHistory = {}, isUndone = false): { set: { [field: string]: Json }, unset: string[] } {
  const history = toHistoryFields(before, ways, isUndone)
  const keys = listKeys(ways)
  const isNone = Object.keys(ways).length === 0
  const hasOne = Object.values(ways).some(isFactor)
  const upstreams = listUpstreamIds(ways)
  return {
    set: { ...(!isNone && { ways }), ...(hasOne && { has_factor: true }), ...(upstreams !== undefined && { upstreams }), ...(keys.length > 0 && { way_keys: keys }), ...history.set },
    unset: [...history.unset, ...(isNone ? ['ways'] : []), ...(hasOne ? [] : ['has_factor']), ...(upstreams === undefined ? ['upstreams'] : []), ...(keys.length === 0 ? ['way_keys'] : [])]
  }
}
