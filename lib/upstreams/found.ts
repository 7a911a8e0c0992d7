import { type Clock, toLifetime, toTimestamp } from '../clock.ts'
import { hashToken } from '../crypto/random-token.ts'
import type { Document, Store } from '../store/port.ts'
import type { Intent, LinkPlace, Place } from './attempts.ts'
import type { Claimed } from './claims.ts'

const LIFE = 10 * 60

/** An identity that a browser has proved in a sign-in that is not over. */
export interface Found {
  upstream: string
  claimed: Claimed
  /** What it was proved for. */
  intent: Intent
  /** When the provider was asked: ISO 8601. Absent: by a process of an earlier release. */
  asked_at?: string
  /** The account that the person has to sign in to, before the identity joins it. */
  pending?: string
  /** The account name that was suggested to a new person. */
  suggested?: string
  /** Whether the person was asked if they want to change to another account. */
  isAsked?: boolean
}

interface FoundRecord extends Document {
  found: Found & { [field: string]: never }
  created_at: string
  expired_at: string
}

/** What names a sign-in of a browser: its secret, and where it goes on. */
export interface SignInOf {
  secret: string
  place: Place
}

function describePlace (place: Place): string {
  if ('uid' in place) return place.uid
  if ('session' in place) return `link ${place.session}`
  return 'link' in place ? `accept ${place.link} ${place.interaction ?? ''}` : ''
}

const toId = ({ secret, place }: SignInOf): string => hashToken(`identity ${describePlace(place)} ${secret}`)

/**
 * The identities of browsers, between the provider's answer and the end of the sign-in. A record belongs to one browser and to one
 * sign-in of it, so what was proved in one is worth nothing in another.
 */
export function createFoundIdentities ({ store, now }: { store: Store, now: Clock }) {
  const records = store.collection<FoundRecord>('sign_ins')
  return {
    async put (of: SignInOf, found: Found): Promise<void> {
      await records.put({ id: toId(of), found: found as FoundRecord['found'], ...toLifetime(now(), LIFE) })
    },

    async find (of: SignInOf): Promise<Found | null> {
      const record = await records.get(toId(of))
      return record?.found === undefined || record.expired_at <= toTimestamp(now()) ? null : record.found
    },

    /** Takes what was proved in order to link it in this session; null where there is nothing, or other sessions have ended since. */
    async takeLink (secret: string, session: string, { user_id, epoch }: { user_id: string, epoch: number }): Promise<Found | null> {
      const of = { secret, place: { session } }
      const found = await this.find(of)
      const isTheirs = found?.intent.kind === 'link' && found.intent.user_id === user_id && found.intent.epoch === epoch
      return found !== null && await this.remove(of) && isTheirs ? found : null
    },

    /** Takes what was proved in order to complete a link, with the ticket of the link; null where there is nothing. */
    async takeAccept (secret: string, place: LinkPlace): Promise<{ found: Found, ticket: string } | null> {
      const found = await this.find({ secret, place })
      if (found === null || !await this.remove({ secret, place }) || found.intent.kind !== 'accept') return null
      return { found, ticket: found.intent.ticket }
    },

    /** Removes it. False when it was used already. */
    async remove (of: SignInOf): Promise<boolean> {
      return await records.delete(toId(of))
    }
  }
}
