import { setTimeout as sleep } from 'node:timers/promises'
import type { MaybePromise } from '../store/port.ts'

/** The most lines that are written at once, as one transaction where the engine has those. */
const BATCH = 100

/** The same while people sign in: each write of theirs may wait behind one such transaction. */
const SMALL_BATCH = 25

/**
 * Lines a second while people sign in. The threads that hash their passwords have a lower priority than the rest of the service, which an
 * import keeps busy, and the publication of its events too.
 */
const RATE = 2_000

/** How an import shares the machine with sign-ins. It always goes on, however many there are. */
export function createPace (mustGiveWay: () => MaybePromise<boolean>) {
  /** By performance.now. */
  let nextAt = 0
  return {
    /** Resolves when the next batch may begin, to the number of its lines. */
    async wait (): Promise<number> {
      const delay = nextAt - performance.now()
      if (delay > 0) await sleep(delay)
      const isSlow = await mustGiveWay()
      nextAt = isSlow ? performance.now() + 1_000 * SMALL_BATCH / RATE : 0
      return isSlow ? SMALL_BATCH : BATCH
    }
  }
}
