import { type Clock, toLifetime, toTimestamp } from '../clock.ts'
import { hashToken } from '../crypto/random-token.ts'
import type { Document, Store } from '../store/port.ts'
import type { CredentialRecord } from '../way.ts'

/** Seconds within which a passkey that was made must be named. */
const WAITS_FOR = 30 * 60

/** A passkey that was made and that no user has yet. The collection removes it when it has expired. */
interface WaitingRecord extends Document { way: string, created_at: string, expired_at: string }

const toId = (key: string): string => hashToken(`enrolling ${key}`)

/** The passkeys that wait for the person to confirm their recovery codes. A sign-in meanwhile does not tell the device to forget them. */
export function createWaitingPasskeys ({ store, now }: { store: Store, now: Clock }) {
  const records = store.collection<WaitingRecord>('sign_ins')
  const credentials = store.collection<CredentialRecord>('credentials')
  return {
    async add (key: string, way: string): Promise<void> {
      await records.put({ id: toId(key), way, ...toLifetime(now(), WAITS_FOR) })
    },

    /** Whether one waits. Not after it was removed, because then its material is gone. */
    async has (key: string): Promise<boolean> {
      const record = await records.get(toId(key))
      return record !== null && record.expired_at > toTimestamp(now()) && await credentials.get(record.way) !== null
    }
  }
}
