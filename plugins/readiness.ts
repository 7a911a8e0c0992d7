import { ClosingError, storeError } from '../lib/errors.ts'
import type { Store } from '../lib/store/port.ts'
import { TIMERS, type Timers } from '../lib/timers.ts'

/** Milliseconds for which the store's answer is cached, so that not every anonymous request causes a write. */
const FRESH = 1_000

/** Milliseconds that the store has for its answer: the probe of a balancer or an orchestrator often waits for one second. */
const PATIENCE = 900

interface ReadinessOptions {
  store: Pick<Store, 'ping' | 'verify'>
  /** Aborted when the service is about to close. */
  closing: AbortSignal
  timers?: Timers
}

/**
 * Creates the check of `/health/ready`. It pings the store at most once a second, whatever the answer was. A shutdown and a
 * lost or closed store take effect at once. A store that does not answer within PATIENCE is not ready.
 */
export function createReadiness ({ store, closing, timers = TIMERS }: ReadinessOptions): () => Promise<void> {
  let answer: Promise<void> | undefined
  let askedAt = 0
  let answeredAt: number | undefined

  async function wait (asked: Promise<void>): Promise<void> {
    const { promise: late, reject } = Promise.withResolvers<never>()
    const fail = () => reject(storeError(new Error(`the store has not answered within ${PATIENCE} ms`)))
    const timer = timers.set(fail, Math.max(0, askedAt + PATIENCE - timers.now()))
    try {
      await Promise.race([asked, late])
    } finally {
      timers.clear(timer)
    }
  }

  return async () => {
    if (closing.aborted) throw new ClosingError()
    store.verify?.()
    // A check in flight is shared, however long it takes.
    if (answer === undefined || (answeredAt !== undefined && timers.now() - answeredAt >= FRESH)) {
      answeredAt = undefined
      askedAt = timers.now()
      const end = () => { answeredAt = timers.now() }
      answer = store.ping()
      answer.then(end, end)
    }
    await (answeredAt === undefined ? wait(answer) : answer)
    if (closing.aborted) throw new ClosingError()
  }
}
