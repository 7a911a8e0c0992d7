import { type KeyObject, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { type Clock, toLifetime } from '../clock.ts'
import { hashToken } from '../crypto/random-token.ts'
import { type Document, DuplicateKeyError, type Store } from '../store/port.ts'

/** What a challenge is for: to begin a sign-in, to come second, to confirm an operation, or to add a passkey. */
export type Purpose = 'begin' | 'second' | 'confirm' | 'add'

/** Milliseconds for which a challenge is good. */
export const CHALLENGE_TTL = 5 * 60_000

/** Seconds for which a used challenge is remembered: longer than it is good. */
const USED_TTL = 2 * CHALLENGE_TTL / 1000

const TIME_BYTES = 6
const NONCE_BYTES = 16
const HEAD_BYTES = TIME_BYTES + NONCE_BYTES
const MAC_BYTES = 32

/** A whole number of base64url characters, so that a challenge is written in one way only. */
const PATTERN = /^[\w-]{72}$/

/** A challenge that was used. The collection removes it when it has expired. */
interface UsedRecord extends Document { created_at: string, expired_at: string }

/**
 * The challenges of passkeys. They are stateless, so a stranger who opens pages stores nothing: each is a time and a random number with a MAC
 * of both, of the purpose and of a secret of the browser. A challenge that was used, by somebody who has a passkey, is stored: it is good once.
 * @param keys the first one signs, and all verify: while the secret key is rotated, another process may have issued a challenge
 */
export function createChallenges ({ store, now, keys }: { store: Store, now: Clock, keys: readonly [KeyObject, ...KeyObject[]] }) {
  const used = store.collection<UsedRecord>('sign_ins')

  const sign = (head: Buffer, purpose: Purpose, secret: string, key = keys[0]): Buffer => (
    createHmac('sha256', key).update(head).update(`${purpose}\0${secret}`).digest())

  return {
    /** @param secret of the browser that the challenge is for */
    issue (purpose: Purpose, secret: string): string {
      const head = Buffer.alloc(HEAD_BYTES)
      head.writeUIntBE(now(), 0, TIME_BYTES)
      randomBytes(NONCE_BYTES).copy(head, TIME_BYTES)
      return Buffer.concat([head, sign(head, purpose, secret)]).toString('base64url')
    },

    /** Whether a challenge was issued for this purpose to this browser, and has not expired. */
    isValid (challenge: string, purpose: Purpose, secret: string): boolean {
      if (!PATTERN.test(challenge)) return false
      const bytes = Buffer.from(challenge, 'base64url')
      const [head, mac] = [bytes.subarray(0, HEAD_BYTES), bytes.subarray(HEAD_BYTES)]
      if (mac.length !== MAC_BYTES || !keys.some((key) => timingSafeEqual(mac, sign(head, purpose, secret, key)))) return false
      const age = now() - head.readUIntBE(0, TIME_BYTES)
      // A process whose clock is ahead may have issued it.
      return age < CHALLENGE_TTL && age > -CHALLENGE_TTL
    },

    /** Uses a challenge up. False if it was used before, also at the same moment. */
    async spend (challenge: string): Promise<boolean> {
      try {
        await used.insert({ id: hashToken(`challenge ${challenge}`), ...toLifetime(now(), USED_TTL) })
        return true
      } catch (error) {
        if (error instanceof DuplicateKeyError) return false
        throw error
      }
    }
  }
}
