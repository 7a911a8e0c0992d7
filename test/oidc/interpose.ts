import type { Collection, Document, Store } from '../../lib/store/port.ts'
import { isOfRelay } from '../helpers/events.ts'

const CALLS = new Set(['insert', 'put', 'get', 'getBy', 'getLinked', 'update', 'delete', 'deleteMany'])

export interface Interposed {
  store: Store
  /** From now on `deleteMany` does nothing, as if every cleanup were interrupted. */
  stopSweeping: () => void
  /**
   * Runs an action before store operation number `k` (from 0) of `run`; that operation waits for it.
   * @returns false when `run` made fewer operations, so that the action never ran
   */
  at: (k: number, action: () => Promise<unknown>, run: () => Promise<unknown>) => Promise<boolean>
  /**
   * Makes that operation fail.
   * @returns as `at`
   */
  failAt: (k: number, error: Error, run: () => Promise<unknown>) => Promise<boolean>
}

/** Wraps a store so that a test can run an action between any two operations, and thus try every interleaving. */
export function interpose (store: Store): Interposed {
  let sweeping = true
  let armed: { left: number, action: () => Promise<unknown>, fired: boolean, done?: Promise<unknown> } | undefined

  function wrap<T extends Document> (collection: Collection<T>, of: string): Collection<T> {
    return new Proxy(collection, {
      get (target, name) {
        const value = Reflect.get(target, name, target) as unknown
        if (typeof value !== 'function') return value
        return (...args: unknown[]) => {
          const call = () => !sweeping && name === 'deleteMany' ? Promise.resolve(0) : (value as (...args: unknown[]) => unknown).apply(target, args)
          if (armed === undefined || armed.fired || !CALLS.has(String(name)) || isOfRelay({ collection: of, method: String(name), args }) || armed.left-- > 0) return call()
          const { action } = armed
          armed.fired = true
          armed.done = action()
          return armed.done.then(call)
        }
      }
    })
  }

  async function arm (left: number, action: () => Promise<unknown>, run: () => Promise<unknown>) {
    const mine: NonNullable<typeof armed> = { left, action, fired: false }
    armed = mine
    try {
      await run()
    } finally {
      armed = undefined
    }
    return mine
  }

  return {
    store: { ...store, engine: store.engine, collection: (name) => wrap(store.collection(name), name), ping: () => store.ping(), close: () => store.close() },
    stopSweeping () { sweeping = false },
    async at (k, action, run) {
      const { fired, done } = await arm(k, action, run)
      // An action that failed proves nothing, so the test must fail too.
      await done
      return fired
    },
    async failAt (k, error, run) {
      return (await arm(k, () => Promise.reject(error), run)).fired
    }
  }
}
