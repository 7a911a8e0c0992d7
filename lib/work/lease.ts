import type { Timers } from '../timers.ts'

export interface LeaseOptions {
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
