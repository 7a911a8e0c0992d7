import type { Base } from '../base.ts'
import { toLifetime, toTimestamp } from '../clock.ts'
import { hashToken } from '../crypto/random-token.ts'
import type { Document } from '../store/port.ts'

/**
 * A link that a browser has opened before its sign-in, and uses in it or after it. The id is a hash of the secret of that sign-in. The
 * link's token is in no URL and no page in between, and it is not stored.
 */
interface CarriedLinkRecord extends Document {
  /** The id of the link's ticket, or of the enrolment that it lets begin. */
  ticket: string
  created_at: string
  expired_at: string
}

/** Seconds. */
const CARRIED_FOR = 10 * 60

const toId = (secret: string): string => hashToken(`link ${secret}`)

/** Links that browsers carry through a sign-in. */
export function createCarriedLinks ({ store, now }: Pick<Base, 'store' | 'now'>) {
  const links = store.collection<CarriedLinkRecord>('sign_ins')
  return {
    /** Carries a link through the sign-in of this browser, for ten minutes. Another link replaces it. */
    async carryLink (secret: string, ticket: string): Promise<void> {
      await links.put({ id: toId(secret), ticket, ...toLifetime(now(), CARRIED_FOR) })
    },

    /** The same id of the link that this browser carries; undefined without one. */
    async findLink (secret: string): Promise<string | undefined> {
      const record = await links.get(toId(secret))
      return record === null || record.expired_at <= toTimestamp(now()) ? undefined : record.ticket
    },

    async dropLink (secret: string): Promise<void> {
      await links.delete(toId(secret))
    }
  }
}
