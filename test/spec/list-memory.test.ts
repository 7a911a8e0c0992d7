import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import type { ClientRecord } from '../../lib/records/client.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import type { Store } from '../../lib/store/port.ts'
import { createApp } from '../../testing/kit.ts'
import { build } from '../helpers/build.ts'
import { signIn } from '../helpers/people.ts'

const RECORDS = 100_000
const MIB = 1024 * 1024
/** Maximum reachable memory while the list streams: some batches, a small part of the list (25 MB as JSON). */
const LIVE_CEILING = 8 * MIB
/** Growth of resident memory, which includes garbage, the store's threads and the reader of this test. */
const RESIDENT_CEILING = 64 * MIB

t.setTimeout(180_000)

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

function readLive (): number {
  collect()
  // The memory of array buffers is only counted as free after another collection.
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

t.test('Lists: 100,000 records stream in constant memory', async (t) => {
  const database = `sqlite:${t.testdir()}/identity.db`
  const seeding = await build(t, { database })
  const ann = await signIn(seeding)
  const clients = seeding.app.identity.store.collection<ClientRecord>('clients')
  const timestamp = new Date(seeding.clock.now()).toISOString()
  let next = 0
  await Promise.all(Array.from({ length: 400 }, async () => {
    while (next < RECORDS) {
      const id = `c${String(next++).padStart(33, '0')}`
      await clients.insert({
        id, createdAt: timestamp, modifiedAt: timestamp, redirectUris: ['https://a.example/callback'], scopes: ['read'], userId: ann.user_id, name: id, epoch: 0
      })
    }
  }))
  await seeding.close()

  /** Reads a list to its end and discards it. Resolves to the number of records, and whether the names were in order. */
  async function read (url: string, limit: number): Promise<{ count: number, ordered: boolean, bytes: number }> {
    const reply = await fetch(`${url}/api/v1/client/list?limit=${limit}`, { headers: { ...ann.headers, accept: 'application/x-ndjson' } })
    let count = 0
    let bytes = 0
    let ordered = true
    let last = ''
    let rest = ''
    for await (const part of reply.body!.pipeThrough(new TextDecoderStream())) {
      bytes += part.length
      const lines = (rest + part).split('\n')
      rest = lines.pop()!
      for (const line of lines) {
        const { name } = JSON.parse(line)
        if (name <= last) ordered = false
        last = name
        count++
      }
    }
    return { count, ordered, bytes }
  }

  async function openHanded (): Promise<Store> {
    const store = await openStore(database, { collections: COLLECTIONS, now: Date.now })
    t.teardown(() => store.close())
    return store
  }

  for (const [label, open] of [
    ['rendered in a thread of the store', async () => ({ database })],
    ['rendered on the main thread, from a store handed in', async () => ({ store: await openHanded() })]
  ] as const) {
    t.test(label, async (t) => {
      let writes = 0
      let live = 0
      let resident = 0
      const app = createApp()
      app.addHook('onRequest', async (_request, reply) => {
        const write = reply.raw.write.bind(reply.raw)
        reply.raw.write = ((...args: Parameters<typeof write>) => {
          if (++writes % 50 === 0) live = Math.max(live, readLive())
          resident = Math.max(resident, process.memoryUsage.rss())
          return write(...args)
        }) as typeof reply.raw.write
      })
      const { url } = await (await build(t, { app, ...await open() })).listen()

      // The first list loads code and fills caches, which is not growth.
      t.match(await read(url, 2000), { count: 2000, ordered: true })
      const before = { live: readLive(), resident: process.memoryUsage.rss() }
      live = resident = writes = 0
      const { count, ordered, bytes } = await read(url, 0)
      t.strictSame({ count, ordered }, { count: RECORDS, ordered: true })
      t.ok(bytes > 2 * LIVE_CEILING, 'the list is longer than the ceiling is high')
      t.ok(writes > bytes / 128 / 1024, 'in pieces')
      t.ok(live - before.live < LIVE_CEILING, `${((live - before.live) / MIB).toFixed(1)} MiB more were held`)
      t.ok(resident - before.resident < RESIDENT_CEILING, `${((resident - before.resident) / MIB).toFixed(1)} MiB more were resident`)
    })
  }
})
