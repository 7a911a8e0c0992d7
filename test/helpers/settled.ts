import type { Store } from '../../lib/store/port.ts'
import { waitUntil } from './wait.ts'
import { type Around, wrapStore } from './wrap-store.ts'

/** Turns of the event loop without a store call after which work is over: what runs between two calls takes fewer. */
const QUIET_TURNS = 5

/** Watches the calls of a store, so that a test can wait for the end of what a timer has begun. */
export function watchCalls (inner: Store, around: Around = (_call, run) => run()) {
  let running = 0
  let quiet = 0
  const end = () => { running-- }
  const store = wrapStore(inner, (call, run) => {
    running++
    quiet = 0
    try {
      const result = around(call, run)
      if (result instanceof Promise) result.then(end, end)
      else end()
      return result
    } catch (error) {
      end()
      throw error
    }
  })
  return {
    store,
    /** Resolves when no call is in flight and none has been made for some turns. */
    async settle (): Promise<void> {
      quiet = 0
      await waitUntil('the end of all store calls', () => running === 0 && quiet++ === QUIET_TURNS)
    }
  }
}
