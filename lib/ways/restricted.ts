import type { Proof, Strength } from '../proofs.ts'
import { type Way, findWay } from '../way.ts'
import { type Holder, type WayPolicy, beginsSignIn, hasFactor, isStanding, needsFactor } from './words.ts'

/** Methods of a sign-in that began with something else than another provider. */
const OWN_METHODS = ['pwd', 'pop']

/**
 * The upstreams by which alone a sign-in has begun. Undefined where something else began it too. Second steps say nothing: a person may
 * add an authenticator app within a sign-in that demands one.
 */
export function findUpstreams (proofs: readonly Proof[], holder: Pick<Holder, 'ways'>): string[] | undefined {
  const began = proofs.filter(beginsSignIn)
  if (began.length === 0 || began.some(({ kind }) => kind !== 'upstream')) return undefined
  return [...new Set(began.map(({ way }) => findWay(holder, way)?.upstream ?? ''))].sort()
}

/**
 * Whether a sign-in came only of upstreams that are for some clients. The settings of now decide. A sign-in of an earlier release does not
 * say which upstream it came of: then one such upstream is enough.
 */
export function isRestricted (auth: Readonly<Pick<Strength, 'amr' | 'upstreams'>> | undefined, { restricts }: Pick<WayPolicy, 'restricts'>): boolean {
  if (auth === undefined) return false
  const { amr, upstreams } = auth
  if (upstreams === undefined) return !amr.some((method) => OWN_METHODS.includes(method)) && restricts()
  return upstreams.every((upstream) => restricts(upstream))
}

/** The same for proofs, on the record that a write replaces. */
export function areRestricted (proofs: readonly Proof[], holder: Holder, policy: WayPolicy): boolean {
  const upstreams = findUpstreams(proofs.filter((proof) => isStanding(proof, holder, policy)), holder)
  return upstreams !== undefined && isRestricted({ amr: [], upstreams }, policy)
}

/**
 * Whether a sign-in of a restricted way may add this nevertheless: the factor that is demanded of a person without one, and the codes that
 * come with it. No sign-in begins with them.
 */
export function isDemandedOf (holder: Holder, { kind }: Pick<Way, 'kind'>, policy: WayPolicy): boolean {
  if (kind === 'recovery') return !Object.values(holder.ways ?? {}).some((way) => way.kind === kind)
  return kind === 'totp' && !hasFactor(holder, policy) && needsFactor(holder, policy)
}
