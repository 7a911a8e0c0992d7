import type { Collection, Document, Store } from '../../lib/store/port.ts'

/** A call of the store. A list is `page` or `stream`, then a `next` for each batch, and `return` when the reader stops early. */
export interface StoreCall {
  collection: string
  method: string
  args: unknown[]
}

/** Whether a method reads nothing itself, but each `next` of what it returns. */
export const isListing = (method: string): boolean => method === 'page' || method === 'stream'

/** Intercepts a store call. It decides when, and whether, to run it. */
export type Around = (call: StoreCall, run: () => unknown) => unknown

function wrapCollection<T extends Document> (inner: Collection<T>, name: string, around: Around): Collection<T> {
  return new Proxy(inner, {
    get (target, method: keyof Collection<T>) {
      // Absent, so that every list passes here batch by batch.
      if (method === 'render' || method === 'getGeneration') return undefined
      const call = (args: unknown[]) => (target[method] as (...args: unknown[]) => unknown).apply(target, args)
      // getLinked may answer synchronously; the others always return a promise.
      if (method === 'getLinked') return (...args: unknown[]) => around({ collection: name, method, args }, () => call(args))
      if (!isListing(method)) return async (...args: unknown[]) => await around({ collection: name, method, args }, () => call(args))
      return (...args: unknown[]) => {
        const list = around({ collection: name, method, args }, () => call(args)) as AsyncIterable<T[]>
        return {
          [Symbol.asyncIterator] () {
            const iterator = list[Symbol.asyncIterator]()
            return {
              next: async () => await around({ collection: name, method: 'next', args }, () => iterator.next()),
              return: async () => await around({ collection: name, method: 'return', args }, () => iterator.return?.())
            }
          }
        }
      }
    }
  })
}

/** Wraps a store so that every call of its collections goes through `around`. */
export function wrapStore (store: Store, around: Around): Store {
  return new Proxy(store, {
    get (target, key: keyof Store) {
      if (key === 'collection') return (name: string) => wrapCollection(target.collection(name), name, around)
      const value = target[key]
      return typeof value === 'function' ? value.bind(target) : value
    }
  })
}
