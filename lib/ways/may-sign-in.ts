import { type Clock, toTimestamp } from '../clock.ts'
import { ACRS, type Acr, type Proof, type Strength, reaches, toStrength } from '../proofs.ts'
import { type UserRecord, isActive } from '../records.ts'
import type { Store } from '../store/port.ts'
import { findUpstreams } from './restricted.ts'
import type { WayService } from './ways.ts'
import { DEFAULT_POLICY, type WayPolicy, beginsSignIn, canReach, findDemanded, isOnly, isStanding } from './words.ts'

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
}

/**
 * The judgement about a claim. `ended`: the user is gone or may not sign in, their epoch has moved, or nothing that they proved stands any
 * more. `below`: more has to be proved. `only`: they sign in by this upstream alone, and have not. `missing`: the user has no factor, and one is demanded. `unmet`: the request asks for more than
 * they can prove.
 */
export type Judgement =
  | { may: true, user: UserRecord, strength: Strength }
  | { may: false, because: 'below', user: UserRecord, demanded: Acr, standing: Proof[] }
  | { may: false, because: 'only', upstream: string }
  | { may: false, because: 'missing', user: UserRecord, standing: Proof[] }
  | { may: false, because: 'ended' | 'unmet' }

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

const max = (one: Acr, other: Acr = '1'): Acr => reaches({ acr: one }, other) ? one : other

/**
 * Judges everything that makes a session, a code or a token of what a person has proved: the end of each step, an authorization with an
 * existing session, and each visit of a page of the account. It reads the user, so that it judges what is true now.
 * lib/tokens/validity.ts judges what exists: tokens that were issued live on.
 */
export function createJudge ({ store, now, ways, policy = DEFAULT_POLICY, isOver }: {
  store: Store
  now: Clock
  ways: Pick<WayService, 'withExisting'>
  policy?: WayPolicy
  /** Whether the provider of an identity has ended what was proved with it. Absent: there are no other providers. */
  isOver?: ((user: UserRecord, proof: Proof) => Promise<boolean>) | undefined
}) {
  const users = store.collection<UserRecord>('users')

  /**
   * Reads a user with the ways whose material exists. Material goes after its way was removed: with a record from before that, the ways
   * that came meanwhile would be missing too.
   */
  async function read (user_id: string): Promise<UserRecord | null> {
    const found = await users.get(user_id)
    if (found === null) return null
    const user = await ways.withExisting(found)
    const isWhole = Object.keys(found.ways ?? {}).every((id) => Object.hasOwn(user.ways ?? {}, id))
    return isWhole || (await users.get(user_id))?.revision === found.revision ? user : await read(user_id)
  }

  return async function maySignIn ({ user_id, epoch, proofs, client_id, acr }: SignInClaim): Promise<Judgement> {
    const user = await read(user_id)
    if (user === null || !isActive(user, toTimestamp(now())) || epoch < user.epoch) return { may: false, because: 'ended' }
    const standing: Proof[] = []
    for (const proof of proofs) if (isStanding(proof, user, policy, client_id) && await isOver?.(user, proof) !== true) standing.push(proof)
    if (standing.length === 0) return { may: false, because: 'ended' }
    const only = policy.findOnly(user)
    if (only !== undefined && !standing.some(({ way }) => isOnly(user.ways?.[way], only))) return { may: false, because: 'only', upstream: only }
    const own = findDemanded(user, policy)
    const demanded = max(own, acr)
    const upstreams = findUpstreams(standing, user)
    const strength = { ...toStrength(standing), ...(upstreams && { upstreams }) }
    const isBegun = standing.some(beginsSignIn)
    if (isBegun && reaches(strength, demanded)) return { may: true, user, strength }
    if (!canReach(user, own, policy)) return { may: false, because: 'missing', user, standing }
    if (!canReach(user, demanded, policy)) return { may: false, because: 'unmet' }
    return { may: false, because: 'below', user, demanded, standing }
  }
}

export type MaySignIn = ReturnType<typeof createJudge>
