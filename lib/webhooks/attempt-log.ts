import { type Clock, toTimestamp } from '../clock.ts'
import type { Collection } from '../store/port.ts'
import type { Attempt, WebhookAttemptsRecord } from './record.ts'

/** Stored attempts of a webhook, and milliseconds that they are stored after the last one. */
const KEPT_ATTEMPTS = 100
const KEPT_FOR = 30 * 24 * 60 * 60_000

/** The attempts of a webhook, of which the last ones are stored. */
export function createAttemptLog (id: string, { attempts, now }: { attempts: Collection<WebhookAttemptsRecord>, now: Clock }) {
  let recent: Attempt[] | undefined
  const made: Attempt[] = []
  return {
    add (attempt: Attempt): void {
      made.push(attempt)
      if (made.length > KEPT_ATTEMPTS) made.shift()
    },

    /** Stores the attempts since the last call. */
    async save (): Promise<void> {
      if (made.length === 0) return
      recent ??= (await attempts.get(id))?.attempts ?? []
      recent = [...recent, ...made.splice(0)].slice(-KEPT_ATTEMPTS)
      await attempts.put({ id, attempts: recent, expired_at: toTimestamp(now() + KEPT_FOR) })
    }
  }
}
