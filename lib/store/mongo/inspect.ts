import { TIMERS } from '../../timers.ts'
import type { EngineReport } from '../engine-report.ts'
import type { CollectionSpec } from '../port.ts'
import { closeClient, createClient, toDatabaseName } from './client.ts'
import { STATE_COLLECTION } from './state.ts'

/** Lists the collections of a database. MongoDB checks its files itself. */
export async function inspectServer (url: string, specs: readonly CollectionSpec[], timeout: number): Promise<EngineReport> {
  const client = createClient(url, timeout)
  try {
    const db = client.db(toDatabaseName(url))
    const found = (await db.listCollections({}, { nameOnly: true }).toArray()).map(({ name }) => name)
    const expected = [STATE_COLLECTION, ...specs.map(({ name }) => name)]
    const [{ version }, stats] = await Promise.all([db.admin().command({ buildInfo: 1 }), db.stats()]) as [{ version: string }, Record<string, unknown>]
    const sizes = ['dataSize', 'storageSize', 'indexSize'].flatMap((name) => typeof stats[name] === 'number' ? [[name, stats[name]]] : [])
    return {
      broken: [],
      // A collection is made by its first document.
      missing: [],
      unknown: found.filter((name) => !expected.includes(name) && !name.startsWith('system.')),
      version,
      sizes: Object.fromEntries(sizes)
    }
  } finally {
    await closeClient(client, timeout, TIMERS)
  }
}
