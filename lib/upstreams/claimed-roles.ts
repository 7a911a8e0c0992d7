import type { Upstream } from '../../schemas/upstream.ts'
import { type Clock, toTimestamp } from '../clock.ts'
import type { Decision } from '../change-record.ts'
import { defined } from '../defined.ts'
import type { Happening } from '../events/types.ts'
import type { ClaimedRoles, UserRecord } from '../records/user.ts'
import { type Roles, holdsRole } from '../roles.ts'
import { UpstreamError } from './failure.ts'
import { listOwned } from './policy.ts'
import type { Claims } from './provider.ts'

/** Seconds for which a role by a map lasts from the last answer of its upstream, unless set. */
export const ROLE_MAX = 30 * 24 * 60 * 60

/** The roles that an answer gives. */
export interface AnsweredRoles {
  /** Those of the map. Others of the claim are nothing. */
  names: string[]
  /** When the answer came: milliseconds since 1970. An older one changes nothing any more. */
  at: number
}

type WithRoles = Pick<Upstream, 'roles'>

function isObject (value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The claim of this name, or what a path with dots leads to. Undefined where there is none. */
function findClaim (claims: Claims, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path]
  return path.split('.').reduce<unknown>((found, name) => isObject(found) && Object.hasOwn(found, name) ? found[name] : undefined, claims)
}

/** Whether a provider says that a claim was too long to send (OpenID Connect Core, 5.6.2; Entra ID does so with many groups). */
function isElsewhere ({ _claim_names: names }: Claims, path: string): boolean {
  const [first = path] = path.split('.')
  return isObject(names) && (Object.hasOwn(names, path) || Object.hasOwn(names, first))
}

/** Whether `userinfo` has to be asked for the claim. */
export function lacksRoles ({ roles }: WithRoles, claims: Claims): boolean {
  return roles !== undefined && findClaim(claims, roles.claim) === undefined && !isElsewhere(claims, roles.claim)
}

/** The claims with that of the roles from another answer, where they have none. */
export function withRoles ({ roles }: WithRoles, claims: Claims, others: Claims): Claims {
  if (roles === undefined || !lacksRoles({ roles }, claims)) return claims
  const found = findClaim(others, roles.claim)
  // Of one name: what stands at the beginning of the path may be in both.
  const known = found === undefined ? claims : { ...claims, [roles.claim]: found }
  return isElsewhere(others, roles.claim) ? { ...known, _claim_names: others['_claim_names'] } : known
}

/**
 * Reads the roles of an answer. Undefined without a map.
 * @throws UpstreamError `roles` where the claim is absent, of another form, or was too long to send: nobody knows then
 */
export function readRoles ({ roles }: WithRoles, claims: Claims, at: number): AnsweredRoles | undefined {
  if (roles === undefined) return undefined
  const { claim, map } = roles
  const found = findClaim(claims, claim)
  const values = typeof found === 'string' ? [found] : found
  if (isElsewhere(claims, claim)) throw new UpstreamError('roles', new Error(`the claim ${claim} was too long to send`))
  if (!Array.isArray(values) || values.some((value) => typeof value !== 'string')) {
    throw new UpstreamError('roles', new Error(`the claim ${claim} is ${found === undefined ? 'absent' : 'no list of texts'}`))
  }
  const given = new Set(values as string[])
  return { names: [...new Set(Object.entries(map).filter(([value]) => given.has(value)).flatMap(([, names]) => names))].sort(), at }
}

/** The time of the oldest answer that gives roles: the key by which the sweep finds people. */
function toKey (claimed: ClaimedRoles): string | undefined {
  return Object.values(claimed).filter(({ roles }) => roles.length > 0).map(({ at }) => at).sort()[0]
}

/** The fields of a record with the answers that give roles. */
export function toRoleFields (claimed: ClaimedRoles): Pick<UserRecord, 'claimed_roles' | 'roles_at'> {
  return defined({ claimed_roles: claimed, roles_at: toKey(claimed) })
}

const toRoles = (names: readonly string[]): Roles => Object.fromEntries(names.map((name) => [name, true as const]))

/** The fields of the record of a new person. */
export function toNewRoles (
  { id }: Pick<Upstream, 'id'>, answered: AnsweredRoles | undefined
): Pick<UserRecord, 'roles' | 'claimed_roles' | 'roles_at'> {
  if (answered === undefined) return { roles: {} }
  return { roles: toRoles(answered.names), ...toRoleFields({ [id]: { at: toTimestamp(answered.at), roles: answered.names } }) }
}

/** What becomes of the roles of an upstream: those that it gives from now on, and when it said so. */
interface Given {
  upstream: Upstream
  names: readonly string[]
  at: string
  /** The role of administrators, where the last one keeps it against the answer. */
  keeps?: string | undefined
  /** The identity that has answered. Absent: none has. */
  via?: Happening['via']
}

/**
 * The change of a record by which the map of an upstream owns exactly its roles. Roles that have left the map stay, with the note that
 * the map gave them. A role that is held with attributes keeps these.
 */
export function changeRoles (record: UserRecord, { upstream, names, at, keeps, via }: Given): Decision<UserRecord> {
  const { id } = record
  const owned = listOwned(upstream)
  const { [upstream.id]: previous = { at, roles: [] }, ...others } = record.claimed_roles ?? {}
  const wanted = keeps !== undefined && !names.includes(keeps) ? [...names, keeps] : names
  const kept = Object.entries(record.roles).filter(([role]) => !owned.includes(role) || wanted.includes(role))
  const roles: Roles = { ...toRoles(wanted), ...Object.fromEntries(kept) }
  const left = previous.roles.filter((role) => !owned.includes(role) && holdsRole(record.roles, role))
  // Another map may have given a role that belongs to this one now.
  const rest = Object.entries(others).map(([one, { roles: given, ...more }]) => (
    [one, { ...more, roles: given.filter((role) => !owned.includes(role)) }] as const))
  const isKept = keeps !== undefined && wanted !== names
  const answer = defined({ at, roles: [...new Set([...wanted, ...left])].sort(), kept: isKept ? true as const : undefined })
  const granted = wanted.filter((role) => !holdsRole(record.roles, role))
  const removed = Object.keys(record.roles).filter((role) => !holdsRole(roles, role))
  const isChanged = granted.length + removed.length > 0
  const fields = toRoleFields({ ...Object.fromEntries(rest), [upstream.id]: answer })
  const told = via === undefined ? { id } : { id, via }
  const happened: Happening[] = []
  if (isChanged) happened.push({ type: 'user.roles_changed', ...told, granted, removed })
  if (isKept && previous.kept !== true) happened.push({ type: 'user.role_kept', ...told })
  return { set: isChanged ? { ...fields, roles } : fields, unset: fields.roles_at === undefined ? ['roles_at'] : [], happened }
}

/** Whether the answer that a record knows of this upstream is a later one. */
export const isSuperseded = ({ claimed_roles }: UserRecord, { id }: Pick<Upstream, 'id'>, { at }: AnsweredRoles): boolean => (
  (claimed_roles?.[id]?.at ?? '') > toTimestamp(at))

/** The answers of a record whose roles have lasted as long as their upstream lets them. Roles that have left the map stay. */
export function listEnded (
  { claimed_roles = {} }: UserRecord, upstreams: readonly Upstream[], now: Clock
): { upstream: Upstream, at: string }[] {
  return upstreams.flatMap((upstream) => {
    const answer = claimed_roles[upstream.id]
    if (answer === undefined || upstream.roles === undefined) return []
    const { at, roles } = answer
    if (Date.parse(at) + (upstream.roleMax ?? ROLE_MAX) * 1000 > now()) return []
    const owned = listOwned(upstream)
    return roles.some((role) => owned.includes(role)) ? [{ upstream, at }] : []
  })
}

/** The roles that a map gave somebody and that are in it no more. They hold them still. */
export function listLeft (
  { claimed_roles = {}, roles }: Pick<UserRecord, 'claimed_roles' | 'roles'>, upstreams: readonly Upstream[]
): { upstream: string, role: string }[] {
  return Object.entries(claimed_roles).flatMap(([id, { roles: given }]) => {
    const upstream = upstreams.find((one) => one.id === id)
    const owned = upstream === undefined ? [] : listOwned(upstream)
    return given.filter((role) => !owned.includes(role) && holdsRole(roles, role)).map((role) => ({ upstream: id, role }))
  })
}
