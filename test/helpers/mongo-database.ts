import { randomUUID } from 'node:crypto'
import type { Db } from 'mongodb'
import root, { type Test } from 'tap'
import { STATE_COLLECTION } from '../../lib/store/mongo/state.ts'
import { LAYOUT } from '../../lib/store/state.ts'

async function withDatabase (url: string, run: (database: Db) => Promise<unknown>): Promise<void> {
  const { MongoClient } = await import('mongodb')
  const client = new MongoClient(url)
  try {
    await run(client.db())
  } finally {
    await client.close()
  }
}

/** The URL of a new database on the test server, dropped when the test ends. */
export function createMongoDatabase (t: Test, server: string): string {
  const url = new URL(server)
  url.pathname = `/identity_test_${randomUUID().replaceAll('-', '').slice(0, 16)}`
  t.teardown(async () => await withDatabase(url.href, async (database) => await database.dropDatabase()))
  return url.href
}

/** Databases that earlier tests of this process used: collections and indexes without documents. */
const free: string[] = []

/**
 * The URL of a database of the service without documents, dropped when the process ends. Its collections may exist already,
 * which saves their creation: that takes a server a second or more.
 */
export function reuseMongoDatabase (t: Test, server: string): string {
  const url = free.pop() ?? createMongoDatabase(root, server)
  t.teardown(async () => {
    await withDatabase(url, async (database) => {
      for (const collection of await database.collections()) {
        if (collection.collectionName !== STATE_COLLECTION) await collection.deleteMany({})
        // Without it, the database would count as one of an early release, which is migrated.
        else await collection.updateMany({}, { $set: { doc: JSON.stringify(LAYOUT) } })
      }
    })
    free.push(url)
  })
  return url
}
