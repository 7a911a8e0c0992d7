import { randomUUID } from 'node:crypto'
import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Db } from 'mongodb'
import root, { type Test } from 'tap'
import { STATE_COLLECTION } from '../../lib/store/mongo/state.ts'
import { LAYOUT } from '../../lib/store/state.ts'

/**
 * The folder of a whole run of the tests, which has a file for each free database that any of its processes made. `.ci/test.ts` makes it,
 * and drops the databases in the end: their names begin with that of the folder.
 */
const POOL = process.env.TEST_DATABASES || undefined

async function withDatabase (url: string, run: (database: Db) => Promise<unknown>): Promise<void> {
  const { MongoClient } = await import('mongodb')
  const client = new MongoClient(url)
  try {
    await run(client.db())
  } finally {
    await client.close()
  }
}

function toUrl (server: string, name: string): string {
  const url = new URL(server)
  url.pathname = `/${name}`
  return url.href
}

const makeName = (prefix: string): string => `${prefix}_${randomUUID().replaceAll('-', '').slice(0, 16)}`

/** The URL of a new database on the test server, dropped when the test ends. */
export function createMongoDatabase (t: Test, server: string): string {
  const url = toUrl(server, makeName('identity_test'))
  t.teardown(async () => await withDatabase(url, async (database) => await database.dropDatabase()))
  return url
}

/** Free databases of this process, where there is no folder. */
const free: string[] = []

/** Takes the file of a free database away: of several processes one succeeds. */
function claim (folder: string): string | undefined {
  return readdirSync(folder).find((name) => {
    try {
      rmSync(join(folder, name))
      return true
    } catch {
      return false
    }
  })
}

/** Removes all documents. Without its layout, the database would count as one of an early release, which is migrated. */
async function empty (database: Db): Promise<void> {
  const collections = await database.collections()
  await Promise.all(collections.map(async (collection) => {
    if (collection.collectionName !== STATE_COLLECTION) await collection.deleteMany({})
    else await collection.updateMany({}, { $set: { doc: JSON.stringify(LAYOUT) } })
  }))
}

/**
 * The URL of a database of the service without documents. Its collections may exist already, which saves their creation and that of their
 * indexes: that takes a server a second or more.
 */
export function reuseMongoDatabase (t: Test, server: string): string {
  const url = POOL === undefined ? free.pop() ?? createMongoDatabase(root, server) : toUrl(server, claim(POOL) ?? makeName(basename(POOL)))
  t.teardown(async () => {
    await withDatabase(url, empty)
    if (POOL === undefined) free.push(url)
    else writeFileSync(join(POOL, new URL(url).pathname.slice(1)), '')
  })
  return url
}
