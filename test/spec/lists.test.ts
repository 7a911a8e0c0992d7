import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import t, { type Test } from 'tap'
import { storeError } from '../../lib/errors.ts'
import type { ClientRecord } from '../../lib/records/client.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { BATCH_SIZE, type Store } from '../../lib/store/port.ts'
import type { Client } from '../../schemas/client.ts'
import type { TestKit } from '../../testing/index.ts'
import { createApp } from '../../testing/kit.ts'
import { build, forEachStore } from '../helpers/build.ts'
import { findProblem } from '../helpers/openapi.ts'
import { type Person, createClient, signIn } from '../helpers/people.ts'
import { isOfRelay } from '../helpers/events.ts'
import { ask, readAnswer } from '../helpers/socket.ts'
import { type Around, isListing, wrapStore } from '../helpers/wrap-store.ts'

const TIME = '2126-11-21T02:51:00.000Z'

function makeClient (number: number, userId: string): ClientRecord {
  const id = `${userId.slice(0, 26)}${String(number).padStart(8, '0')}`
  // Characters of several bytes, which a chunk may split.
  const name = `Äpfel & \u{1F34F} ${String(number * 7919 % 100_003).padStart(6, '0')}`
  return { id, createdAt: TIME, modifiedAt: TIME, redirectUris: [`https://a.example/${number}`], scopes: ['read'], userId, name, epoch: 0 }
}

/** Gives a user this many clients, 200 writes at a time. */
async function fill (store: Store, userId: string, count: number): Promise<void> {
  const clients = store.collection<ClientRecord>('clients')
  let next = 0
  await Promise.all(Array.from({ length: 200 }, async () => {
    while (next < count) await clients.insert(makeClient(next++, userId))
  }))
}

const FORMATS = {
  object: { query: 'format=object', accept: 'application/json', read: (text: string): Client[] => JSON.parse(text).data },
  array: { query: 'format=array', accept: '*/*', read: (text: string): Client[] => JSON.parse(text) },
  ndjson: {
    query: '',
    accept: 'application/x-ndjson',
    read: (text: string): Client[] => (text === '' ? [] : text.replace(/\n$/, '').split('\n').map((line) => JSON.parse(line)))
  }
}

await forEachStore(t, async (t, build) => {
  const kit = await build(t)
  const { url } = await kit.listen()
  const ann = await signIn(kit)
  const TOTAL = 250
  await fill(kit.app.identity.store, ann.user_id, TOTAL)
  const sorted = Array.from({ length: TOTAL }, (_, number) => makeClient(number, ann.user_id).name).sort()
  const document = (await kit.inject('/openapi.json')).json()

  for (const [format, { query, accept, read }] of Object.entries(FORMATS)) {
    t.test(`Lists: ${format}, in one reply with a length up to 100 records, in a stream past them`, async (t) => {
      for (const [limit, offset] of [[1, TOTAL], [1, 0], [99, 3], [100, 0], [101, 0], [250, 0], [0, 0], [0, 149], [0, 150], [undefined, 0]] as const) {
        const path = `/api/v1/client/list?offset=${offset}${limit === undefined ? '' : `&limit=${limit}`}&${query}`
        const answer = await readAnswer(await ask(url, path, { ...ann.headers, accept }))
        const expected = sorted.slice(offset, limit === 0 ? TOTAL : offset + (limit ?? 100))
        t.equal(answer.status, 200)
        t.ok(answer.complete)
        t.strictSame(read(answer.body).map(({ name }) => name), expected, `${expected.length} records from ${offset}`)
        const { 'content-length': length, 'transfer-encoding': encoding, 'content-type': type } = answer.headers
        t.equal(encoding, expected.length > 100 ? 'chunked' : undefined)
        t.equal(length, expected.length > 100 ? undefined : String(Buffer.byteLength(answer.body)))
        t.equal(findProblem(document, { method: 'GET', url: '/api/v1/client/list', status: 200, type, body: answer.body }), undefined)
      }
    })
  }

  t.test('Lists: HEAD has the headers of GET, and reads nothing', async (t) => {
    for (const [query, accept] of [['limit=0', 'application/json'], ['limit=10', 'application/json'], ['limit=0', 'application/x-ndjson']] as const) {
      const url = `/api/v1/client/list?${query}`
      const headers = { ...ann.headers, accept }
      const [get, head] = [await kit.inject({ url, headers }), await kit.inject({ method: 'HEAD', url, headers })]
      t.equal(head.statusCode, 200)
      t.equal(head.body, '')
      for (const name of ['content-type', 'vary', 'link', 'cache-control']) t.equal(head.headers[name], get.headers[name], `${query} ${name}`)
      t.notOk('content-length' in head.headers, 'an unknown length is not stated')
    }
    t.equal((await kit.inject({ method: 'HEAD', url: '/api/v1/client/list?sort=none', headers: ann.headers })).statusCode, 400)
  })

  t.test('4.1 GET /client/list, rule 4: a stream has the same shape and order as pages of it', async (t) => {
    const list = async (query: string) => (await ann.get<{ data: Client[] }>(`/client/list?sort=created:desc&${query}`)).body.data
    const whole = await list('limit=0')
    t.equal(whole.length, TOTAL)
    t.strictSame([...await list('limit=90'), ...await list('limit=90&offset=90'), ...await list('limit=90&offset=180')], whole)
  })

  t.test('4.3 GET /user/list: a long list is streamed', async (t) => {
    const admin = await signIn(kit, { roles: ['admin'] })
    await Promise.all(Array.from({ length: 120 }, (_, number) => kit.mint({ user: `crowd${String(number).padStart(3, '0')}` })))
    const answer = await readAnswer(await ask(url, '/api/v1/user/list?contains=crowd&limit=0&sort=account:desc&fields=expired', admin.headers))
    t.equal(answer.headers['transfer-encoding'], 'chunked')
    t.equal(findProblem(document, { method: 'GET', url: '/api/v1/user/list', status: 200, type: answer.headers['content-type'], body: answer.body }), undefined)
    t.strictSame(JSON.parse(answer.body).data.map(({ account }: { account: string }) => account.slice(5)),
      Array.from({ length: 120 }, (_, number) => String(119 - number).padStart(3, '0')))
  })
})

t.test('Lists: the same bytes whether a thread of the store renders them or the main thread', async (t) => {
  const database = `sqlite:${t.testdir()}/identity.db`
  const kit = await build(t, { database })
  const admin = await signIn(kit, { roles: ['admin'] })
  await fill(kit.app.identity.store, admin.user_id, 240)
  for (let number = 0; number < 10; number++) await createClient(admin, { name: 'confidential', image: 'https://a.example/i.png' }, { credentials: true })
  await Promise.all(Array.from({ length: 120 }, (_, number) => kit.mint({ user: `crowd${number}` })))
  const store = await openStore(database, { collections: COLLECTIONS, now: Date.now })
  t.teardown(() => store.close())
  const embedded = await build(t, { store })

  // This kit renders lists only in the thread.
  for (const name of ['clients', 'users']) {
    kit.app.identity.store.collection(name).stream = async function * () { throw new Error('read on the main thread') }
  }
  for (const path of ['/client/list?limit=0', '/client/list?limit=0&sort=name:desc&offset=7', '/user/list?limit=0&fields=expired,disabled', '/user/list?limit=0']) {
    for (const [format, { query, accept }] of Object.entries(FORMATS)) {
      const request = { url: `/api/v1${path}&${query}`, headers: { ...admin.headers, accept } }
      const [inThread, onMain] = [await kit.inject(request), await embedded.inject(request)]
      t.strictSame([inThread.statusCode, onMain.statusCode], [200, 200])
      t.equal(inThread.body, onMain.body, `${path} ${format}`)
      t.ok(inThread.body.length > 10_000)
    }
  }
})

interface Watched {
  kit: TestKit
  url: string
  ann: Person
  /** Numbers of requested batches, and of lists that were closed early. */
  seen: { next: number, left: number }
  /** Resolves when the list is closed early. */
  freed: Promise<void>
  /** The most bytes that were written and not yet sent. */
  buffered: () => number
  log: () => string
}

/** A service whose only user has a list of this many batches, made on demand; `hold` runs before each. */
async function watch (t: Test, { batches, stallTimeout, hold }: { batches: number, stallTimeout?: number, hold?: (batch: number, ends: Promise<unknown>) => unknown }): Promise<Watched> {
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: Date.now })
  t.teardown(() => inner.close())
  const seen = { next: 0, left: 0 }
  const { promise: freed, resolve: free } = Promise.withResolvers<void>()
  const { promise: ends, resolve: end } = Promise.withResolvers<void>()
  const makeClients = (first: number, length: number) => Array.from({ length }, (_, index) => makeClient(first + index, ann.user_id))
  const shown = new WeakMap<unknown[], boolean>()
  let isMade = false
  const around: Around = (call, run) => {
    const { collection, method } = call
    // What the service reads at its start, before its user exists, is the store's own.
    if (!isMade || collection !== 'clients' || isOfRelay(call) || !['page', 'stream', 'next', 'return'].includes(method)) return run()
    if (method === 'page') shown.set(call.args, false)
    if (isListing(method)) return { [Symbol.asyncIterator]: () => ({}) }
    const isShown = shown.get(call.args)
    // The page that shows that the list is a long one.
    if (isShown !== undefined) {
      shown.set(call.args, true)
      return isShown ? { done: true, value: undefined } : { done: false, value: makeClients(0, BATCH_SIZE + 1) }
    }
    if (method === 'return') {
      seen.left++
      free()
      return { done: true, value: undefined }
    }
    const batch = ++seen.next
    return Promise.resolve(hold?.(batch, ends)).then(() => batch > batches
      ? { done: true, value: undefined }
      : { done: false, value: makeClients(batch * BATCH_SIZE, BATCH_SIZE) })
  }
  let text = ''
  const app = createApp({ logger: { level: 'warn', stream: { write: (line: string) => { text += line } } } })
  let most = 0
  const measure = (socket: Socket, response?: ServerResponse) => { most = Math.max(most, socket.writableLength + (response?.writableLength ?? 0)) }
  app.addHook('onRequest', async (request, reply) => {
    const { socket } = request.raw
    socket.once('close', end)
    const write = reply.raw.write.bind(reply.raw)
    reply.raw.write = ((...args: Parameters<typeof write>) => {
      const taken = write(...args)
      measure(socket, reply.raw)
      return taken
    }) as typeof reply.raw.write
  })
  const kit = await build(t, { app, store: wrapStore(inner, around), ...(stallTimeout !== undefined && { stallTimeout }) })
  const ann = await signIn(kit)
  isMade = true
  const { url } = await kit.listen()
  return { kit, url, ann, seen, freed, buffered: () => most, log: () => text }
}

/** Upper bound of a written batch, in bytes. */
const BATCH_BYTES = 40_000

t.test('Lists: a slow reader gets the whole list, while only a few batches are buffered', async (t) => {
  const BATCHES = 600
  const { url, ann, seen, buffered } = await watch(t, { batches: BATCHES })
  const socket = await ask(url, '/api/v1/client/list?limit=0', ann.headers)
  // One chunk per turn of the event loop.
  socket.on('data', () => {
    socket.pause()
    setImmediate(() => socket.resume())
  })
  const answer = await readAnswer(socket)
  t.ok(answer.complete)
  t.equal(JSON.parse(answer.body).data.length, BATCHES * BATCH_SIZE)
  t.ok(answer.body.length > BATCHES * BATCH_BYTES / 2 && answer.body.length < BATCHES * BATCH_BYTES, 'batches have the expected size')
  t.ok(buffered() > 0 && buffered() < 4 * BATCH_BYTES, `${buffered()} bytes were buffered at the most`)
  t.equal(seen.next, BATCHES + 1)
})

t.test('Lists: a client that reads nothing is disconnected, and the cursor is freed', async (t) => {
  // More than any socket buffers. A small number of batches shows that the list was not read ahead of the client.
  const BATCHES = 100_000
  const { url, ann, seen, freed, buffered, log } = await watch(t, { batches: BATCHES, stallTimeout: 1_000 })
  const socket = await ask(url, '/api/v1/client/list?limit=0', ann.headers)
  await freed
  t.ok(seen.next > 2 && seen.next < BATCHES / 50, `${seen.next} batches were read`)
  t.ok(buffered() < 4 * BATCH_BYTES, `${buffered()} bytes were buffered at the most`)
  const answer = await readAnswer(socket)
  t.notOk(answer.complete, 'the reader can tell that the list is incomplete')
  t.throws(() => JSON.parse(answer.body))
  t.equal(seen.left, 1)
  t.match(log(), 'the reader of a list stalled')
})

t.test('Lists: a user may stream a few lists at once, which limits no other user', async (t) => {
  const { kit, url, ann } = await watch(t, { batches: 100_000 })
  const bob = await signIn(kit)
  const open = async ({ headers }: Person) => {
    const socket = await ask(url, '/api/v1/client/list?limit=0', headers)
    t.teardown(() => socket.destroy())
    const [head] = await once(socket, 'data') as [Buffer]
    socket.pause()
    return { socket, head: head.toString() }
  }
  const lists = await Promise.all(Array.from({ length: 8 }, () => open(ann)))
  for (const { head } of lists) t.match(head, /^HTTP\/1.1 200 /)
  const refused = await readAnswer(await ask(url, '/api/v1/client/list?limit=0', ann.headers))
  t.match([refused.status, refused.headers['retry-after'], JSON.parse(refused.body)], [429, '1', { code: 'ErrLimit' }])
  t.match((await open(bob)).head, /^HTTP\/1.1 200 /)
  t.equal((await kit.inject({ method: 'HEAD', url: '/api/v1/client/list?limit=0', headers: ann.headers })).statusCode, 200, 'HEAD reads none')

  lists[0]!.socket.destroy()
  let head = ''
  for (let tries = 0; tries < 100 && !head.startsWith('HTTP/1.1 200 '); tries++) head = (await open(ann)).head
  t.match(head, /^HTTP\/1.1 200 /, 'closing a list makes room for another')
})

t.test('Lists: a client that disconnects frees the cursor', async (t) => {
  for (const [when, at] of [['midway', 5], ['while the first batch is read', 1], ['while the second is', 2]] as const) {
    t.test(when, async (t) => {
      const { url, ann, seen, freed } = await watch(t, {
        batches: 1000,
        hold: async (batch, ends) => {
          if (batch !== at) return
          const socket = await asked
          socket.destroy()
          await ends
        }
      })
      const asked = ask(url, '/api/v1/client/list?limit=0', ann.headers)
      await freed
      t.ok(seen.next <= at + 2, `asked for ${seen.next} batches`)
      t.equal(seen.left, 1)
    })
  }
})

t.test('Lists: a store that fails', async (t) => {
  for (const [format, { query, accept }] of Object.entries(FORMATS)) {
    for (const failing of [1, 2, 3, 7]) {
      t.test(`at batch ${failing}: ${format}`, async (t) => {
        const { url, ann, log } = await watch(t, {
          batches: 10,
          hold: (batch) => { if (batch === failing) throw storeError(new Error('the disk is gone')) }
        })
        const answer = await readAnswer(await ask(url, `/api/v1/client/list?limit=0&${query}`, { ...ann.headers, accept }))
        t.match(log(), 'the disk is gone')
        t.notMatch(answer.body, 'the disk is gone')
        if (failing <= 2) {
          t.match([answer.status, answer.complete, JSON.parse(answer.body)], [503, true, { code: 'ErrDb' }], 'before the first byte: an error')
          return
        }
        t.equal(answer.status, 200)
        t.notOk(answer.complete, 'after the first byte: the connection is destroyed')
        t.equal(answer.headers['transfer-encoding'], 'chunked')
        if (format !== 'ndjson') t.throws(() => JSON.parse(answer.body), 'and the body is not JSON')
      })
    }
  }
})
