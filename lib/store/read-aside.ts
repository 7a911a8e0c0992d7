import type { Document } from './port.ts'

/** Milliseconds for a step on MongoDB. */
const TIMEOUT = 10_000

/** Reads a collection of the database at a URL, in pages. It changes nothing, and a service of an earlier release may use the database. */
export async function * readAside<T extends Document> (url: string, collection: string, timeout = TIMEOUT): AsyncGenerator<T[]> {
  if (!url.startsWith('sqlite:')) return yield * (await import('./mongo/read-aside.ts')).readServerAside(url, collection, timeout) as AsyncGenerator<T[]>
  const [{ readFileAside }, { parsePath }] = await Promise.all([import('./sqlite/read-aside.ts'), import('./sqlite.ts')])
  yield * readFileAside(parsePath(url), collection) as Generator<T[]>
}
