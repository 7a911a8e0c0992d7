import { storeError } from '../lib/errors.ts'
import type { Store } from '../lib/store/port.ts'

/** Milliseconds for which the store's answer is cached, so that not every anonymous request causes a write. */
const FRESH = 1_000

export interface ReadinessOptions {
  store: Pick<Store, 'ping' | 'verify'>
  /** Aborted when the service is about to close. */
  closing: AbortSignal
  /** Milliseconds of a monotonic clock. */
  now?: () => number
}

/**
 * Creates the check of `/health/ready`. It pings the store at most once a second, whatever the answer was. A shutdown and a
 * lost or closed store take effect at once.
 */
export function createReadiness ({ store, closing, now = () => performance.now() }: ReadinessOptions): () => Promise<void> {
  let answer: Promise<void> | undefined
  let answeredAt: number | undefined
  return async () => {
    if (closing.aborted) throw storeError(new Error('the service is closing'))
    store.verify?.()
    // A check in flight is shared, however long it takes.
    if (answer === undefined || (answeredAt !== undefined && now() - answeredAt >= FRESH)) {
      answeredAt = undefined
      const end = () => { answeredAt = now() }
      answer = store.ping()
      answer.then(end, end)
    }
    await answer
    if (closing.aborted) throw storeError(new Error('the service is closing'))
  }
}
