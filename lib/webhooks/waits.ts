import type { Timers } from '../timers.ts'
import type { WebhookFeed } from './cursors.ts'

/**
 * The waits of this process for events.
 * @param stopped once it is aborted, nothing waits any more
 */
export function createWaits ({ feed, timers, stopped }: { feed: Pick<WebhookFeed, 'wait'>, timers: Timers, stopped: AbortSignal }) {
  const waits = new Set<AbortController>()

  return {
    /** Resolves after `timeout`, when there may be events after the cursor, or when the wait is ended. */
    async wait (after: string | undefined, timeout: number, ending = new AbortController()): Promise<void> {
      if (stopped.aborted || ending.signal.aborted) return
      waits.add(ending)
      const { promise, resolve } = Promise.withResolvers<void>()
      ending.signal.addEventListener('abort', () => resolve())
      const timer = timers.set(resolve, timeout)
      timer.unref?.()
      const seen = after === undefined ? [] : [feed.wait(after, { timeout, signal: ending.signal }).catch(() => promise)]
      await Promise.race([promise, ...seen])
      timers.clear(timer)
      waits.delete(ending)
      // Ends the wait for the feed too, if it is still pending, and lets its read end: no read follows `close`.
      ending.abort()
      await Promise.all(seen)
    },

    /** Ends all waits. */
    end (): void {
      for (const ending of waits) ending.abort()
    }
  }
}
