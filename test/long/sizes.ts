import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { openStore } from '../../lib/store/index.ts'
import type { Document, Json, Store } from '../../lib/store/port.ts'
import { type Harness, getCode, startHarness } from '../oidc/harness.ts'

// The harness loads tap, which ends a process after half a minute.
t.setTimeout(0)

/** Copies of each record. */
const COPIES = 200_000
/** Records of one call. */
const STEP = 500

type Stored = Document & Record<string, Json>

/** What a person's sign-in at an app stores, by the name in docs/operations.md. */
const RECORDS: Record<string, { collection: string, pick?: (record: Stored) => boolean }> = {
  user: { collection: 'users' },
  client: { collection: 'clients' },
  'access token': { collection: 'access_tokens' },
  'refresh token': { collection: 'refresh_tokens' },
  'token session': { collection: 'grants' },
  'sign-in session': { collection: 'sign_in_sessions' },
  event: { collection: 'events', pick: ({ type }) => type === 'sign_in.succeeded' }
}

/** Signs a person in at an app, and returns one stored record of each kind. */
async function readSamples (database: string): Promise<Map<string, Stored>> {
  const ends: (() => unknown)[] = []
  const t = { teardown: (end: () => unknown) => ends.push(end) } as unknown as Parameters<typeof startHarness>[0]
  try {
    const harness: Harness = await startHarness(t, { database })
    const app = await harness.register()
    await harness.post('token', await getCode(harness, app, { scope: 'openid read offline_access' }), app)
    await harness.kit.events.list()
    const { store } = harness.kit.app.identity
    const samples = new Map<string, Stored>()
    for (const [name, { collection, pick = () => true }] of Object.entries(RECORDS)) {
      for await (const batch of store.collection<Stored>(collection).stream()) {
        const found = batch.find(pick)
        if (found !== undefined) samples.set(name, found)
      }
      if (!samples.has(name)) throw new Error(`the sign-in stored no ${name}`)
    }
    return samples
  } finally {
    for (const end of ends.reverse()) await end()
  }
}

/** Another value of the same length and as random, so that indexes are as large as with real records. */
function vary (text: string): string {
  const random = randomBytes(text.length).toString('base64url').slice(0, text.length)
  // Times and words of the service are the same in many records.
  return /^\d{4}-\d\d-|^[a-z_.]+$/.test(text) ? text : random
}

/** A copy under another id. Every identifier in it is another one; ids that sort by time stay sorted. */
function copy (record: Stored, number: number): Stored {
  const fields = Object.fromEntries(Object.entries(record).map(([key, value]) => [key, typeof value === 'string' ? vary(value) : value]))
  const order = number.toString(36).padStart(8, '0')
  const at = new Date(Date.now() + number * 100).toISOString()
  return {
    ...fields,
    id: record.id.slice(0, 8) + order + vary(record.id).slice(16),
    ...(record.addresses !== undefined && { addresses: [`${randomUUID().slice(0, 20)}@example.com`] }),
    ...(typeof record.key === 'string' && { key: record.key.slice(0, 2) + order + vary(record.key).slice(10) }),
    ...(record.created_at !== undefined && { created_at: at })
  }
}

async function fill (store: Store, collection: string, record: Stored): Promise<void> {
  const records = store.collection<Stored>(collection)
  for (let start = 0; start < COPIES; start += STEP) {
    await records.insertMany(Array.from({ length: STEP }, (_, index) => copy(record, start + index)))
  }
}

/** Bytes of the content of a file, its log merged. */
function measure (file: string): number {
  const database = new DatabaseSync(file)
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  const { bytes } = database.prepare('SELECT (page_count - freelist_count) * page_size AS bytes FROM pragma_page_count, pragma_freelist_count, pragma_page_size').get() as { bytes: number }
  database.close()
  return bytes
}

/** The long test: bytes on disk of each kind of record, indexes included. Resolves to a line of figures. */
export async function run (): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'fastify-identity-sizes-'))
  try {
    const samples = await readSamples(`sqlite:${join(directory, 'sample.db')}`)
    const figures: string[] = []
    for (const [name, record] of samples) {
      const file = join(directory, `${name.replaceAll(' ', '-')}.db`)
      const store = await openStore(`sqlite:${file}`, { now: () => 0 })
      const before = measure(file)
      await fill(store, RECORDS[name]!.collection, record)
      const after = measure(file)
      await store.close()
      figures.push(`${name} ${Math.round((after - before) / COPIES)} (document ${JSON.stringify(record).length})`)
    }
    return `bytes on disk of each of ${COPIES} records: ${figures.join(', ')}`
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
