import type { Change, Collection, Document, Scalar } from '../store/port.ts'
import type { Timers } from '../timers.ts'

/** Milliseconds that a claim of queued work lasts. After a kill, others take over when it has expired. */
export const LEASE = 30_000

/**
 * Claims a document that one process at a time works on, by one conditional update: of two that read the same `claim`, one succeeds.
 * @param change what the claim sets, such as the end of the lease
 * @param equal what must still hold beside the number of the claim
 * @returns the claimed document; null when it was claimed or changed since
 */
export async function claim<T extends Document & { claim: number }> (
  collection: Collection<T>, { id, claim }: T, { increment, ...change }: Change, equal: Record<string, Scalar> = {}
): Promise<T | null> {
  return await collection.update(id, { ...change, increment: { ...increment, claim: 1 } }, { equal: { ...equal, claim } })
}

interface LeaseOptions {
  timers: Timers
  /** Milliseconds from one renewal to the next. */
  interval: number
  /** Receives the errors of renewals. The next one is made all the same. */
  onError: (error: unknown) => void
}

/**
 * Renews a lease until the returned function is called. That function waits for a renewal in flight, so that no renewal follows the
 * write which ends the lease.
 */
export function keepLease (renew: () => Promise<unknown>, { timers, interval, onError }: LeaseOptions): () => Promise<void> {
  let renewing: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined
  let isOver = false

  function wait (): void {
    if (isOver) return
    timer = timers.set(() => {
      renewing = renew().then(() => {}, onError).then(wait)
    }, interval)
    timer.unref?.()
  }

  wait()
  return async () => {
    isOver = true
    timers.clear(timer)
    await renewing
  }
}
