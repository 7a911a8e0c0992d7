import { type Clock, toTimestamp } from '../clock.ts'
import { ACRS, type Acr, type Proof, type Strength, findStronger, reaches, toStrength } from '../proofs.ts'
import type { Reason } from '../../schemas/reason.ts'
import { type UserRecord, findInactive } from '../records/user.ts'
import type { Store } from '../store/port.ts'
import { findWay } from '../way.ts'
import { findUpstreams } from '../ways/restricted.ts'
import type { WayService } from '../ways/ways.ts'
import { DEFAULT_POLICY, type WayPolicy, beginsSignIn, canReach, findDemanded, findFallen, hasFactor, isOnly, listStanding } from '../ways/words.ts'

/** What somebody has proved, and what for. */
export interface SignInClaim {
  user_id: string
  /** The user's epoch when the first proof was made. */
  epoch: number
  proofs: readonly Proof[]
  /** The client that they sign in to; absent for the pages of the account. */
  client_id?: string | undefined
  /** The strength that the request asks for. */
  acr?: Acr | undefined
  /** The time since when it must have been proved: ISO 8601. */
  since?: string | undefined
  /** Whether somebody without a second factor adds one, where the request asks for `mfa`. Otherwise they cannot meet it. */
  enrols?: boolean | undefined
}

/**
 * The judgement about a claim.
 * - `ended`: the user is gone or may not sign in, their epoch has moved, or nothing that they proved stands any more. `reason` says which.
 * - `below`: more has to be proved, or, with `isLate`, more recently.
 * - `only`: they sign in by this upstream alone, and have not.
 * - `missing`: the user has no factor, and one is demanded.
 * - `unmet`: the request asks for more than they can prove.
 */
export type Judgement =
  | { may: true, user: UserRecord, strength: Strength }
  | { may: false, because: 'below', user: UserRecord, demanded: Acr, standing: Proof[], isLate?: boolean }
  | { may: false, because: 'only', upstream: string }
  | { may: false, because: 'missing', user: UserRecord, standing: Proof[] }
  | { may: false, because: 'ended', reason: Reason }
  | { may: false, because: 'unmet' }

/** Whether a sign-in can add to what was judged: otherwise it asks for all, by the ways that the person has left. */
export const canAddTo = (judged: Judgement): boolean => judged.may || 'standing' in judged

/**
 * The least of the values that we know among those that a request lists (`acr_values`, OpenID Connect Core, 3.1.2.1). Undefined without
 * one: then the request asks for nothing.
 */
export function findAskedAcr (values: unknown): Acr | undefined {
  const listed = typeof values === 'string' ? values.split(' ') : []
  return ACRS.find((acr) => listed.includes(acr))
}

export interface JudgeParts {
  store: Store
  now: Clock
  ways: Pick<WayService, 'withExisting'>
  policy?: WayPolicy
  /** Whether the provider of an identity has ended what was proved with it. Absent: there are no other providers. */
  isOver?: ((user: UserRecord, proof: Proof) => Promise<boolean>) | undefined
}

/** Judges a claim by a record of its user, with the ways whose material exists. */
export function createJudgement ({ now, policy = DEFAULT_POLICY, isOver }: Pick<JudgeParts, 'now' | 'policy' | 'isOver'>) {
  return async function judge (user: UserRecord, { epoch, proofs, client_id, acr, since, enrols = false }: Omit<SignInClaim, 'user_id'>): Promise<Judgement> {
    const inactive = findInactive(user, toTimestamp(now()))
    if (inactive !== undefined) return { may: false, because: 'ended', reason: inactive }
    if (epoch < user.epoch) return { may: false, because: 'ended', reason: 'stale' }
    const standing: Proof[] = []
    for (const proof of listStanding(proofs, user, policy, client_id)) if (await isOver?.(user, proof) !== true) standing.push(proof)
    if (standing.length === 0) {
      const fallen = proofs.map((proof) => findFallen(proof, user, policy, client_id)).find((reason) => reason !== undefined)
      return { may: false, because: 'ended', reason: fallen ?? 'upstream_ended' }
    }
    const only = policy.findOnly(user)
    if (only !== undefined && !standing.some(({ way }) => isOnly(findWay(user, way), only))) return { may: false, because: 'only', upstream: only }
    const own = findDemanded(user, policy)
    const demanded = findStronger(own, acr)
    const upstreams = findUpstreams(standing, user)
    const strength = { ...toStrength(standing), ...(upstreams && { upstreams }) }
    const isBegun = standing.some(beginsSignIn)
    const isReached = isBegun && reaches(strength, demanded)
    const isLate = isReached && since !== undefined && strength.time < since
    if (isReached && !isLate) return { may: true, user, strength }
    const addsFactor = enrols && demanded === 'mfa' && isBegun && !hasFactor(user, policy)
    if (!canReach(user, own, policy) || addsFactor) return { may: false, because: 'missing', user, standing }
    if (!canReach(user, demanded, policy)) return { may: false, because: 'unmet' }
    return { may: false, because: 'below', user, demanded, standing, ...(isLate && { isLate }) }
  }
}

/**
 * Judges everything that makes a session, a code or a token of what a person has proved: the end of each step, an authorization with an
 * existing session, and each visit of a page of the account. It reads the user, so that it judges what is true now.
 * lib/tokens/validity.ts judges what exists: tokens that were issued live on.
 */
export function createJudge ({ store, ways, ...parts }: JudgeParts) {
  const users = store.collection<UserRecord>('users')
  const judge = createJudgement(parts)

  /**
   * Reads a user with the ways whose material exists. Material goes after its way was removed: with a record from before that, the ways
   * that came meanwhile would be missing too.
   */
  async function read (user_id: string): Promise<UserRecord | null> {
    const found = await users.get(user_id)
    if (found === null) return null
    const user = await ways.withExisting(found)
    const isWhole = Object.keys(found.ways ?? {}).every((id) => findWay(user, id) !== undefined)
    return isWhole || (await users.get(user_id))?.revision === found.revision ? user : await read(user_id)
  }

  return async function maySignIn ({ user_id, ...claim }: SignInClaim): Promise<Judgement> {
    const user = await read(user_id)
    return user === null ? { may: false, because: 'ended', reason: 'no_account' } : await judge(user, claim)
  }
}

export type MaySignIn = ReturnType<typeof createJudge>
