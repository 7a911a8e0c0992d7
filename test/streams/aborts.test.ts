import { createSecretKey } from 'node:crypto'
import t, { type Test } from 'tap'
import type { ImportItem } from '../../schemas/import.ts'
import { createSecretBox, generateSecretKey } from '../../lib/crypto/secrets.ts'
import { inviteImported } from '../../lib/import/invite-imported.ts'
import { createSealing } from '../../lib/maintenance/reseal.ts'
import { move } from '../../lib/maintenance/move.ts'
import { createUserRecord } from '../../lib/records/user.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import type { Document, Store } from '../../lib/store/port.ts'
import { createAttempts } from '../../lib/throttling/attempts.ts'
import { warnOfRemoved } from '../../lib/upstreams/removed.ts'
import { sweepOrphans } from '../../lib/ways/orphans.ts'
import { createSilentRecorder } from '../helpers/events.ts'
import { openPlainServices } from '../helpers/plain-services.ts'
import { settleAt } from '../helpers/turns.ts'
import { waitUntil } from '../helpers/wait.ts'
import { type StoreCall, wrapStore } from '../helpers/wrap-store.ts'
import '../helpers/plain-threads.ts'

// A call that is aborted half-way takes nothing more from its source, and writes nothing more.

const WRITES = new Set(['insert', 'insertMany', 'put', 'update', 'delete', 'deleteMany'])
const TIME = '2126-11-23T00:00:00.000Z'

/** A store that tells of each write before it is made, and remembers those that were begun after the abort. */
async function open (t: Test, onWrite: (call: StoreCall, abort: () => void) => void = () => {}) {
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: Date.now, onError: (error) => { throw error } })
  t.teardown(() => inner.close())
  const ending = new AbortController()
  const seen = { calls: 0, late: [] as string[] }
  const store = wrapStore(inner, (call, run) => {
    seen.calls++
    if (WRITES.has(call.method)) {
      if (ending.signal.aborted) seen.late.push(`${call.method} ${call.collection}`)
      onWrite(call, () => ending.abort())
    }
    return run()
  })
  return { inner, store, seen, signal: ending.signal, abort: () => ending.abort() }
}

type Scene = Awaited<ReturnType<typeof open>>

interface Row {
  name: string
  /** Called with each write. */
  onWrite?: (call: StoreCall, abort: () => void) => void
  fill?: (store: Store) => Promise<unknown>
  /** Resolves when the call has ended. It may check the call's own error. */
  run: (t: Test, scene: Scene) => Promise<unknown>
  /** The writes that must follow an abort. Absent: none. */
  late?: string[]
}

const toUser = (id: string, more: object = {}) => ({ ...createUserRecord(Date.now(), { id, account: id, roles: {}, password: '', name: '', info: {} }), ...more })
const fillUsers = (count: number, more: object = {}) => async (store: Store) =>
  await store.collection('users').insertMany(Array.from({ length: count }, (_, index) => toUser(`user-${index}`, more)))
const toMaterial = (id: string) => ({ id, user_id: 'nobody', way: { kind: 'totp' }, material: { step: 0 }, created_at: TIME, revision: 0 })
const fillMaterial = async (store: Store) => await store.collection('credentials').insertMany(Array.from({ length: 50 }, (_, index) => toMaterial(`way-${index}`)))

const [FORMER, PRESENT] = [generateSecretKey(), generateSecretKey()]
const actor = { user_id: 'root', isAdmin: true } as never

async function * toLines (taken: { groups: number }, onGroup: (group: number) => void): AsyncGenerator<ImportItem[]> {
  for (let group = 0; group < 20; group++) {
    taken.groups++
    onGroup(group)
    yield Array.from({ length: 5 }, (_, index) => ({ line: group * 5 + index + 1, value: { id: `p-${group}-${index}`, account: `p-${group}-${index}` } }))
  }
}

const ROWS: Row[] = [
  {
    name: 'an import, whose event counts those who were written',
    late: ['insert event_inbox'],
    async run (t, { store, inner, signal, abort }) {
      const services = await openPlainServices({ store })
      const taken = { groups: 0 }
      const { verdicts } = await services.imports.importUsers(toLines(taken, (group) => { if (group === 2) abort() }), { source: 'old' }, { signal })
      await t.rejects(Array.fromAsync(verdicts), { message: /the connection was closed/ })
      t.equal(taken.groups, 3)
      t.equal(await inner.collection('users').count(), 10)
      await services.close()
    }
  },
  {
    name: 'invitations of imported people',
    fill: fillUsers(5, { imported_source: 'old', imported: { source: 'old' } }),
    async run (t, { store, signal, abort }) {
      const invited: string[] = []
      const invite = async (id: string) => {
        invited.push(id)
        return true
      }
      const wait = async () => { if (invited.length === 2) abort() }
      const run = inviteImported({ store, now: Date.now, invite, hasWayIn: async () => false }, 'old', actor, { signal, wait })
      await t.rejects(Array.fromAsync(run), { name: 'AbortError' })
      t.equal(invited.length, 2)
    }
  },
  {
    name: 'resealing with another key, 16 records at once',
    fill: async (store) => {
      const box = createSecretBox(FORMER)
      await store.collection('clients').insertMany(Array.from({ length: 40 }, (_, index) => ({ id: `c-${index}`, secret: box.seal('secret', `c-${index}`), revision: 0 })))
    },
    async run (t, { store, inner, signal, abort }) {
      const box = createSecretBox(PRESENT, FORMER)
      let writes = 0
      const counting = wrapStore(store, ({ method }, run) => method !== 'update'
        ? run()
        : Promise.resolve(run()).finally(() => { if (++writes === 16) abort() }))
      await t.rejects(createSealing({ store: counting, box, recorder: createSilentRecorder(store) }).reseal({ signal }), { name: 'AbortError' })
      const clients = (await Array.fromAsync(inner.collection<Document & { revision: number }>('clients').stream())).flat()
      t.equal(clients.filter(({ revision }) => revision === 1).length, 16)
    }
  },
  {
    name: 'the removal of material without a user, at a removal',
    fill: fillMaterial,
    onWrite: ({ method }, abort) => { if (method === 'delete') abort() },
    async run (t, { store, inner, signal }) {
      await sweepOrphans({ store, signal, wait: async () => {}, onError: (error) => { t.fail(String(error)) } })
      t.equal(await inner.collection('credentials').count(), 49)
    }
  },
  {
    name: 'the removal of material without a user, between its two looks',
    fill: fillMaterial,
    async run (t, { store, inner, signal, abort }) {
      let waits = 0
      const wait = async () => { if (++waits === 2) abort() }
      await sweepOrphans({ store, signal, wait, onError: (error) => { t.fail(String(error)) } })
      t.equal(await inner.collection('credentials').count(), 50)
    }
  },
  {
    name: 'the search for people whom a removed provider leaves without a way in',
    fill: async (store) => {
      await fillUsers(250)(store)
      await store.collection<Document & { ids: string[] }>('meta').insert({ id: 'upstreams', ids: ['work'] })
    },
    async run (t, { store, inner, signal, abort }) {
      let read = 0
      const hasWayIn = async () => {
        if (++read === 100) abort()
        return false
      }
      await warnOfRemoved({ store, ids: [], ways: { hasWayIn }, onWarning: (message) => { t.fail(message) }, signal })
      t.equal(read, 100)
      t.match(await inner.collection('meta').get('upstreams'), { ids: ['work'] })
    }
  },
  {
    name: 'an attempt at a password that waits behind four others',
    async run (t, { store, signal, abort }) {
      const attempts = createAttempts({ store, now: Date.now, key: createSecretKey(Buffer.alloc(32)) })
      const target = { kind: 'user', name: 'ann' } as const
      const gate = Promise.withResolvers<never>()
      let running = 0
      const compare = async () => {
        running++
        return await gate.promise
      }
      const others = Array.from({ length: 4 }, async () => await t.rejects(attempts.run(target, compare), /ended/))
      await waitUntil('four comparisons', () => running === 4)
      const compared: string[] = []
      const last = attempts.run(target, async () => compared.push('last'), signal)
      abort()
      gate.reject(new Error('ended'))
      await t.rejects(last, { message: /the connection was closed/ })
      await Promise.all(others)
      t.strictSame(compared, [])
    },
    // The others take their own back.
    late: Array.from({ length: 4 }, () => 'update attempts').concat('delete attempts')
  }
]

for (const { name, fill, run, onWrite, late = [] } of ROWS) {
  t.test(name, async (t) => {
    const scene = await open(t, onWrite)
    await fill?.(scene.inner)
    await run(t, scene)
    t.ok(scene.signal.aborted, 'it was aborted')
    const { calls } = scene.seen
    t.equal(await settleAt('the store', () => scene.seen.calls), calls, 'no call follows its end')
    t.strictSame(scene.seen.late.toSorted(), late.toSorted())
  })
}

t.test('a move to another store', async (t) => {
  const dir = t.testdir()
  const openEnd = async (name: string) => {
    const store = await openStore(`sqlite:${dir}/${name}.db`, { collections: COLLECTIONS, now: Date.now, moving: true })
    t.teardown(() => store.close())
    return store
  }
  const source = await openStore(`sqlite:${dir}/from.db`, { collections: COLLECTIONS, now: Date.now })
  await fillUsers(1_000)(source)
  await source.close()
  const [from, to] = [await openEnd('from'), await openEnd('to')]
  const ending = new AbortController()
  const ends = { from: { store: from, name: 'sqlite:from' }, to: { store: to, name: 'sqlite:to' }, collections: COLLECTIONS, now: Date.now }
  await t.rejects(move({ ...ends, signal: ending.signal, onProgress: ({ documents }) => { if (documents >= 300) ending.abort() } }), { name: 'AbortError' })
  const moved = await to.collection('users').count()
  t.ok(moved >= 300 && moved < 1_000, `${moved} users`)
  await new Promise(setImmediate)
  t.equal(await to.collection('users').count(), moved, 'no write follows')
  await move(ends)
  t.equal(await to.collection('users').count(), 1_000, 'and another call goes on')
})
