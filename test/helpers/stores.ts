import type { Test } from 'tap'
import { openStore } from '../../lib/store/index.ts'
import type { Store, StoreOptions } from '../../lib/store/port.ts'
import { createMongoDatabase } from './mongo-database.ts'
import { IS_ELSEWHERE, MONGODB_URL } from './mongodb.ts'

type Engine = [name: string, url: (t: Test) => string, skip?: string]

const IN_SQLITE: Engine[] = [
  ['SQLite in memory', () => 'sqlite::memory:'],
  ['SQLite', (t) => `sqlite:${t.testdir()}/store.db`]
]

/** Runs the cases on an open store of every engine: on SQLite in memory and in a file, and on MongoDB if MONGODB_URL is set. */
export async function forEachEngine (t: Test, options: Pick<StoreOptions, 'collections'>, run: (t: Test, store: Store) => Promise<unknown>): Promise<void> {
  const engines: Engine[] = [
    ...IS_ELSEWHERE ? [] : IN_SQLITE,
    ['MongoDB', (t) => createMongoDatabase(t, MONGODB_URL!), MONGODB_URL === undefined ? 'MONGODB_URL is not set' : undefined]
  ]
  for (const [name, url, skip] of engines) {
    await t.test(`on ${name}`, skip === undefined ? {} : { skip }, async (t) => {
      const store = await openStore(url(t), { ...options, now: Date.now, onError: (error) => { throw error } })
      t.teardown(() => store.close())
      await run(t, store)
    })
  }
}
