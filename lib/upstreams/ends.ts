import { hash } from 'node:crypto'
import type { Base } from '../base.ts'
import { toLifetime, toTimestamp } from '../clock.ts'
import { isAhead } from '../deadline.ts'
import type { Proof } from '../proofs.ts'
import { type Document, DuplicateKeyError, type Filter } from '../store/port.ts'
import { scan } from '../store/scan.ts'

/** Seconds for which an end is remembered: longer than anything that was proved before it can be on its way to a session. */
export const REMEMBERED = 24 * 60 * 60

/** What a logout token has ended. The id is a hash of the upstream and the `jti`, so that each is used once. */
export interface UpstreamEndRecord extends Document {
  upstream: string
  /** The key of the session at the provider, see toSessionKey. */
  sid?: string
  /** The key of the identity, see toWayKey. */
  identity?: string
  /** Which sign-ins of the identity end: `all`, or those that came without a `sid`. Absent: only those of the session. */
  of_identity?: 'all' | 'bare'
  /** Whether token sessions with offline access end too. */
  offline: boolean
  /** Until when whoever stored it carries it out: the same token is refused meanwhile, and carried out again after an interruption. */
  claimed_until: string
  /** Set when everything has ended. */
  done?: boolean
  created_at: string
  expired_at: string
}

/** An end as a token tells of it. */
export type NewEnd = Omit<UpstreamEndRecord, 'id' | 'claimed_until' | 'done' | 'created_at' | 'expired_at'>

/** Milliseconds for which an end is carried out, before another use of its token may go on with it. */
const CLAIM = 10_000

/** A time before all others, and one after all. */
const [NEVER, LAST] = ['', '9999-12-31T23:59:59.999Z']

/** A sign-in with an identity, as far as an end may be about it. */
export type Ending = Pick<Proof, 'session' | 'asked_at'> & { identity?: string | undefined }

/** Whether an end is about this sign-in. One of an earlier release does not say when it was begun: it was begun before. */
export function ends ({ sid, identity, of_identity: which, created_at }: UpstreamEndRecord, sign: Ending): boolean {
  if (sid !== undefined && sid === sign.session) return true
  const isOfIdentity = identity !== undefined && identity === sign.identity && (sign.asked_at ?? '') <= created_at
  return isOfIdentity && (which === 'all' || (which === 'bare' && sign.session === undefined))
}

/**
 * The ends of sign-ins that other providers have told of. The record of one is written before anything is ended, and whoever makes a
 * session or a grant reads them after it was written: so either the end finds the session, or the session finds the end.
 */
export function createUpstreamEnds ({ store, now }: Pick<Base, 'store' | 'now'>) {
  const records = store.collection<UpstreamEndRecord>('upstream_ends')

  async function hasEnd (filter: Filter, sign: Ending, key?: 'created_at'): Promise<boolean> {
    const time = toTimestamp(now())
    for await (const batch of scan(records, filter, { urgent: true, key })) {
      if (batch.some((record) => record.expired_at > time && ends(record, sign))) return true
    }
    return false
  }

  return {
    get: async (id: string): Promise<UpstreamEndRecord | null> => await records.get(id),

    /**
     * Stores the end that a token tells of. Of several uses at once, one gets it.
     * @returns the record to carry out; null for a token that was used before. One that was interrupted is carried out again
     */
    async begin (jti: string, end: NewEnd): Promise<UpstreamEndRecord | null> {
      const id = hash('sha256', JSON.stringify(['logout token', end.upstream, jti]), 'base64url')
      const claimed_until = toTimestamp(now() + CLAIM)
      const record: UpstreamEndRecord = { id, ...end, claimed_until, ...toLifetime(now(), REMEMBERED) }
      try {
        await records.insert(record)
        return record
      } catch (error) {
        if (!(error instanceof DuplicateKeyError)) throw error
      }
      const claimed = await records.get(id)
      if (claimed === null || claimed.claimed_until === LAST || isAhead({ at: claimed.claimed_until, longest: CLAIM }, now())) return null
      return await records.update(id, { set: { claimed_until } }, { equal: { claimed_until: claimed.claimed_until } })
    },

    /** Gives back an end that was interrupted, so that the token may come again at once. */
    async release (id: string): Promise<void> {
      await records.update(id, { set: { claimed_until: NEVER } }, { before: { claimed_until: LAST } })
    },

    async finish (id: string): Promise<void> {
      await records.update(id, { set: { done: true, claimed_until: LAST } })
    },

    /** Whether the provider has ended this sign-in. */
    async isEnded (sign: Ending): Promise<boolean> {
      const { session, identity, asked_at = '' } = sign
      if (session !== undefined && await hasEnd({ equal: { sid: session } }, sign)) return true
      return identity !== undefined && await hasEnd({ equal: { identity }, since: { created_at: asked_at } }, sign, 'created_at')
    }
  }
}

export type UpstreamEnds = ReturnType<typeof createUpstreamEnds>
