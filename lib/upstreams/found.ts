import type { Base } from '../base.ts'
import { toLifetime, toTimestamp } from '../clock.ts'
import { hashToken } from '../crypto/random-token.ts'
import type { Document } from '../store/port.ts'
import { toSessionKey, toWayKey } from '../way.ts'
import type { Claimed } from './claims.ts'
import type { Ending, UpstreamEnds } from './ends.ts'
import type { Intent, ReturnTo, ReturnToLink } from './intent.ts'
import type { Settled } from './linking.ts'

const LIFE = 10 * 60

/** An identity that a browser has proved in a sign-in that is not over. */
export interface Found {
  upstream: string
  claimed: Claimed
  /** What it was proved for. */
  intent: Intent
  /** The account that the person has to sign in to, before the identity joins it. */
  pending?: string
  /** Whether that account has or had another identity of the same provider. */
  isOther?: boolean
  /** The account name that was suggested to a new person. */
  suggested?: string
  /** Whether the person was asked if they want to change to another account. */
  isAsked?: boolean
  /** The account that the identity has signed in to before that question. */
  settled?: Settled
}

interface FoundRecord extends Document {
  found: Found
  created_at: string
  expired_at: string
}

/** Seconds since the person was sent to the provider, after which the browser begins again: an end is remembered for longer. */
const LONGEST_LIFE = 60 * 60

/** The sign-in that an identity was proved in, as an end is about it. */
const toEnding = ({ issuer, subject, sid, asked_at }: Claimed): Ending => ({
  identity: toWayKey('upstream', issuer, subject), session: sid === undefined ? undefined : toSessionKey(issuer, sid), asked_at
})

/** What names a sign-in of a browser: its secret, and where it goes on. */
export interface SignInOf {
  secret: string
  place: ReturnTo
}

function describePlace (place: ReturnTo): string {
  if ('uid' in place) return place.uid
  if ('session' in place) return `link ${place.session}`
  return 'link' in place ? `accept ${place.link} ${place.interaction ?? ''}` : ''
}

const toId = ({ secret, place }: SignInOf): string => hashToken(`identity ${describePlace(place)} ${secret}`)

/**
 * The identities of browsers, between the provider's answer and the end of the sign-in. A record belongs to one browser and to one
 * sign-in of it, so what was proved in one is worth nothing in another.
 */
export function createFoundIdentities ({ store, now, ends }: Pick<Base, 'store' | 'now'> & { ends: Pick<UpstreamEnds, 'isEnded'> }) {
  const records = store.collection<FoundRecord>('sign_ins')
  return {
    async put (of: SignInOf, found: Found): Promise<void> {
      const { created_at, expired_at } = toLifetime(now(), LIFE)
      const last = toLifetime(Date.parse(found.claimed.asked_at ?? created_at), LONGEST_LIFE).expired_at
      await records.put({ id: toId(of), found, created_at, expired_at: expired_at < last ? expired_at : last })
    },

    async find (of: SignInOf): Promise<Found | null> {
      const record = await records.get(toId(of))
      if (record?.found === undefined || record.expired_at <= toTimestamp(now())) return null
      const { found } = record
      return await ends.isEnded(toEnding(found.claimed)) ? null : found
    },

    /** Takes what was proved in order to link it in this session; null where there is nothing, or other sessions have ended since. */
    async takeLink (secret: string, session: string, { user_id, epoch }: { user_id: string, epoch: number }): Promise<Found | null> {
      const of = { secret, place: { session } }
      const found = await this.find(of)
      const isTheirs = found?.intent.kind === 'link' && found.intent.user_id === user_id && found.intent.epoch === epoch
      return found !== null && await this.remove(of) && isTheirs ? found : null
    },

    /** Takes what was proved in order to complete a link, with the ticket of the link; null where there is nothing. */
    async takeAccept (secret: string, place: ReturnToLink): Promise<{ found: Found, ticket: string } | null> {
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
