import type { Upstream } from '../../schemas/upstream.ts'
import type { Base } from '../base.ts'
import type { SignInSessionRecord } from '../browsers/record.ts'
import { toTimestamp } from '../clock.ts'
import { type Proof, findIdentityProof } from '../proofs.ts'
import type { GrantRecord } from '../records/token.ts'
import type { UserRecord } from '../records/user.ts'
import { findGrantProof } from '../sessions/identity-ends.ts'
import { createCredentials } from '../ways/credentials.ts'
import { type HeldWay, createExistingWays } from '../ways/existing-ways.ts'
import type { WayPolicy } from '../ways/words.ts'
import { type Bounded, findBound } from './bounds.ts'
import { REMEMBERED, type UpstreamEnds } from './ends.ts'

/** Milliseconds from the way to the provider to the end of a sign-in. An end is remembered for longer. */
const LONGEST_SIGN_IN = REMEMBERED * 1000 / 2

/** A sign-in session that goes on once the provider says that the person is still signed in there. */
export interface Renewal {
  /** The uid of the session. */
  session: string
  user_id: string
  /** The id of the identity. */
  way: string
  upstream: string
  /** The address by which the provider may know them. */
  hint?: string | undefined
}

/** The part of a sign-in session that a renewal needs. */
type Renewable = Pick<SignInSessionRecord, 'uid' | 'user_id' | 'proofs'>

/**
 * Judges what identities have proved, where the provider has the last word: whether it has ended the sign-in, and whether it has said for
 * too long nothing of the person.
 */
export function createIdentityStanding ({ store, now, ends, upstreams, policy }: Pick<Base, 'store' | 'now'> & {
  ends: Pick<UpstreamEnds, 'isEnded'>, upstreams: readonly Upstream[], policy: Pick<WayPolicy, 'findUpstream' | 'findOnly'>
}) {
  const users = store.collection<UserRecord>('users')
  const existing = createExistingWays({ credentials: createCredentials({ store, now }), policy })
  const hasBounds = (what: Bounded): boolean => upstreams.some((upstream) => findBound(upstream, what) !== undefined)
  const [boundsSessions, boundsRefresh] = [hasBounds('session'), hasBounds('refresh')]

  async function isEnded ({ ways = {} }: Pick<UserRecord, 'ways'>, { way, session, asked_at }: Proof): Promise<boolean> {
    return await ends.isEnded({ identity: ways[way]?.key, session, asked_at })
  }

  /** Whether an upstream has said nothing of a person for longer than its bound. @param held their identities, with their last answers */
  function isPast (id: string | undefined, held: readonly HeldWay[], what: Bounded): boolean {
    const upstream = upstreams.find((one) => one.id === id)
    const bound = upstream && findBound(upstream, what)
    if (bound === undefined) return false
    const since = toTimestamp(now() - bound * 1000)
    return !held.some(({ way, credential: { last_used_at, created_at } }) => way.upstream === id && (last_used_at ?? created_at) > since)
  }

  /** Whether the session that a proof began has to be renewed. */
  async function isPastSession (user: Pick<UserRecord, 'id' | 'ways'>, { way }: Proof): Promise<boolean> {
    if (!boundsSessions) return false
    const held = await existing.list(user)
    return isPast(held.find(({ id }) => id === way)?.way.upstream, held, 'session')
  }

  return {
    /** Whether a proof stands no more. @param user as they are now */
    async isOver (user: Pick<UserRecord, 'id' | 'ways'>, proof: Proof): Promise<boolean> {
      return proof.kind === 'upstream' && (await isEnded(user, proof) || await isPastSession(user, proof))
    },

    /**
     * Whether the provider has ended a sign-in, for whoever has just made a session or a grant of it.
     * @param isNew whether the session is made by the sign-in itself. Then it is over if it took longer than its end would be remembered
     */
    async isEndedFor (user_id: string, proof: Proof | undefined, isNew = false): Promise<boolean> {
      if (proof === undefined) return false
      if (isNew && proof.asked_at !== undefined && Date.parse(proof.asked_at) + LONGEST_SIGN_IN < now()) return true
      return await isEnded(await users.get(user_id) ?? {}, proof)
    },

    /**
     * Whether a token session may not be refreshed now: the provider of its sign-in, or the one by which alone the person signs in, has
     * said nothing of them for too long. One of an earlier release that does not say its provider is measured by all of the person's.
     */
    async isPastRefresh (user: UserRecord | null, grant: GrantRecord | null): Promise<boolean> {
      if (!boundsRefresh || user === null || grant?.session_uid === undefined) return false
      const [proof, only] = [findGrantProof(grant), policy.findOnly(user)]
      if (proof === undefined && only === undefined) return false
      const held = await existing.list(user)
      const own = proof === undefined ? [] : held.filter(({ id, way: { kind } }) => kind === 'upstream' && (proof.way ?? id) === id)
      return [only, ...own.map(({ way }) => way.upstream)].some((id) => isPast(id, held, 'refresh'))
    },

    /** Whether the provider by which alone a person signs in has said nothing of them for too long. Null for anybody else. */
    isPastToken (user: UserRecord): Promise<boolean> | null {
      const only = policy.findOnly(user)
      return only === undefined ? null : existing.list(user).then((held) => isPast(only, held, 'token'))
    },

    /** How a sign-in session is renewed; undefined for one that does not need it, or that has ended. */
    async findRenewal ({ uid, user_id, proofs = [] }: Renewable): Promise<Renewal | undefined> {
      const proof = findIdentityProof(proofs)
      if (proof === undefined || user_id === undefined) return undefined
      const user = await users.get(user_id)
      if (user === null || !await isPastSession(user, proof) || await isEnded(user, proof)) return undefined
      const upstream = (await existing.get(user, proof.way))?.way.upstream
      return upstream === undefined ? undefined : { session: uid, user_id, way: proof.way, upstream, hint: user.email }
    }
  }
}

export type IdentityStanding = ReturnType<typeof createIdentityStanding>
