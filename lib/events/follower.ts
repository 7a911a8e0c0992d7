import { setTimeout as sleep } from 'node:timers/promises'
import type { Event } from '../../schemas/event.ts'
import type { Feed } from './feed.ts'
import type { EventType } from './types.ts'

/** Milliseconds of one wait for events, and of the pause after a failure. */
const WAIT = 25_000
const PAUSE = 1_000

type Listener = (event: Event) => void

/** Calls the listeners of this process. One reader of the feed serves all of them, and starts with the first one. */
export function createFollower ({ feed, onError }: { feed: Feed, onError: (error: unknown) => void }) {
  const listeners = new Set<{ type: EventType | '*', listener: Listener }>()
  const closing = new AbortController()
  let following: Promise<void> | undefined

  function notify (event: Event): void {
    for (const { type, listener } of listeners) {
      if (type !== '*' && type !== event.type) continue
      try {
        listener(event)
      } catch (error) {
        onError(error)
      }
    }
  }

  async function follow (): Promise<void> {
    let after: string | undefined
    while (listeners.size > 0 && !closing.signal.aborted) {
      try {
        after ??= await feed.last()
        const read = await feed.read({ after })
        if (closing.signal.aborted) return
        read.events.forEach(notify)
        if (read.events.length === 0) await feed.wait(after, { timeout: WAIT, signal: closing.signal })
        after = read.after
      } catch (error) {
        if (closing.signal.aborted) return
        onError(error)
        await sleep(PAUSE, undefined, { signal: closing.signal, ref: false }).catch(() => {})
      }
    }
  }

  return {
    on (type: EventType | '*', listener: Listener): () => void {
      const entry = { type, listener }
      listeners.add(entry)
      following ??= follow().finally(() => { following = undefined })
      return () => { listeners.delete(entry) }
    },

    /** Waits for a read in flight. */
    async close (): Promise<void> {
      listeners.clear()
      closing.abort()
      await following
    }
  }
}
