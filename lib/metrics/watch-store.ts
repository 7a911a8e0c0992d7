import type { Collection, Document, ListQuery, Rendering, Store } from '../store/port.ts'
import type { Meter } from './meter.ts'

/** The measured calls, if they return a promise. Synchronous answers from a cache take microseconds and are not measured. */
const CALLS = ['insert', 'insertMany', 'put', 'get', 'getBy', 'getMany', 'getLinked', 'update', 'delete', 'deleteMany', 'count'] as const

async function * countList<T> (list: AsyncIterable<T>, meter: Meter): AsyncGenerator<T> {
  meter.lists(1)
  try {
    yield * list
  } finally {
    meter.lists(-1)
  }
}

function watchCollection<T extends Document> (inner: Collection<T>, meter: Meter): Collection<T> {
  const { getGeneration, render } = inner
  const watched: Record<string, unknown> = {
    ...(getGeneration !== undefined && { getGeneration: getGeneration.bind(inner) }),
    page: inner.page.bind(inner),
    stream: (query?: ListQuery) => countList(inner.stream(query), meter),
    ...(render !== undefined && { render: (query: ListQuery, rendering: Rendering) => countList(render.call(inner, query, rendering), meter) })
  }
  for (const name of CALLS) {
    const call = (inner[name] as (...args: unknown[]) => unknown).bind(inner)
    watched[name] = (...args: unknown[]) => {
      const start = performance.now()
      const answer = call(...args)
      if (!(answer instanceof Promise)) return answer
      const end = (outcome: 'success' | 'error') => meter.store(name, outcome, (performance.now() - start) / 1000)
      answer.then(() => end('success'), () => end('error'))
      return answer
    }
  }
  return watched as unknown as Collection<T>
}

/** Wraps the store to measure its calls. */
export function watchStore (store: Store, meter: Meter): Store {
  const collections = new Map<string, Collection<Document>>()
  return {
    engine: store.engine,
    state: store.state,
    collection<T extends Document> (name: string) {
      let watched = collections.get(name)
      if (watched === undefined) collections.set(name, watched = watchCollection(store.collection(name), meter))
      return watched as unknown as Collection<T>
    },
    ping: () => store.ping(),
    ...(store.verify !== undefined && { verify: () => store.verify?.() }),
    close: () => store.close()
  }
}
