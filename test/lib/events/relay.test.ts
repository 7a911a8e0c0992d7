import t, { type Test } from 'tap'
import { storeError } from '../../../lib/errors.ts'
import type { EventRecord } from '../../../lib/events/types.ts'
import type { Document } from '../../../lib/store/port.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { createMongoDatabase } from '../../helpers/mongo-database.ts'
import { MONGODB_URL } from '../../helpers/mongodb.ts'
import { type Choose, Scheduler, createRandom, exhaust } from '../../helpers/scheduler.ts'
import { type Around, isListing, wrapStore } from '../../helpers/wrap-store.ts'
import { createTimers } from '../../helpers/timers.ts'
import { BEGIN, openEvents, toText } from './harness.ts'

t.setTimeout(240_000)

const BEGIN_TEXT = new Date(BEGIN).toISOString()

/** Passes time in steps, and lets the calls of the store end between them. */
async function pass (timers: ReturnType<typeof createTimers>, seconds: number): Promise<void> {
  for (let step = 0; step < seconds * 10; step++) {
    timers.advance(100)
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
  }
}

t.test('events are published once, in one order, and leave their documents', async (t) => {
  const { create, change, remove, recorder, connect, readAll, countPending, inner, published } = await openEvents(t)
  const relay = connect()
  await create('a')
  await change('a')
  await change('a')
  await create('b')
  await recorder.insert({ type: 'session.ended', id: 's', user_id: 'a', client_id: 'c' })
  await change('b')
  await remove('b')
  await relay.flush()
  const records = await readAll()
  const texts = records.map(toText)
  t.strictSame(records.map(({ id }) => Number(id)), [1, 2, 3, 4, 5, 6, 7])
  t.strictSame(texts.filter((text) => text.includes(' a')), ['user.created a', 'user.updated a 1', 'user.updated a 2'])
  t.strictSame(texts.filter((text) => text.includes(' b')), ['user.created b', 'user.updated b 1', 'user.deleted b'], 'a deletion comes after what was still pending')
  t.ok(texts.includes('session.ended s'))
  t.equal(await countPending(), 0)
  t.strictSame(await inner.collection('users').get('a'), { id: 'a', revision: 2, changes: 2 })
  t.equal(published.length, 7)
  t.match(records.find(({ type }) => type === 'session.ended'), { user: 'a', client: 'c', content: { target: { kind: 'session', id: 's' }, user_id: 'a', outcome: 'success', actor: { via: 'system' } } })
  t.equal(records[0]!.expired_at, new Date(BEGIN + 400 * 24 * 60 * 60 * 1000).toISOString())
  await relay.close()
})

t.test('a document carries 32 events; a further change is refused until they are published', async (t) => {
  const { create, change, connect, readAll } = await openEvents(t)
  await create('a')
  for (let count = 0; count < 31; count++) await change('a')
  await t.rejects(change('a'), { code: 'ErrBusy' })
  await connect().flush()
  t.ok(await change('a'))
  t.equal((await readAll()).length, 32)
})

t.test('events are published while others follow them without a pause', async (t) => {
  const { create, connect, countPending } = await openEvents(t)
  const timers = createTimers()
  const relay = connect({ timers })
  relay.start()
  await create('a')
  for (let notice = 0; notice < 10; notice++) {
    relay.notice(String(notice))
    timers.advance(15)
    // The round goes on between the notices.
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
  }
  t.equal(await countPending(), 0)
  await relay.close()
})

t.test('once its events are published, a process asks nothing until the next poll, and another one may publish', async (t) => {
  let calls = 0
  const { create, connect, countPending, recorder } = await openEvents(t, { around: (_call, run) => { calls++; return run() } })
  const timers = createTimers()
  const [relay, other] = [connect({ timers }), connect()]
  recorder.listen(relay.notice)
  relay.start()
  await pass(timers, 14)
  await create('a')
  await pass(timers, 0.2)
  t.equal(await countPending(), 0)
  calls = 0
  await pass(timers, 5)
  t.equal(calls, 0, 'no round follows')
  await create('b')
  await other.flush()
  t.equal(await countPending(), 0, 'the lease was released')
  await pass(timers, 7)
  await relay.close()
})

t.test('what a process records and never writes, it looks for during six seconds', async (t) => {
  let rounds = 0
  const { connect, recorder } = await openEvents(t, {
    around: ({ collection, method }, run) => {
      if (collection === 'event_inbox' && method === 'page') rounds++
      return run()
    }
  })
  const timers = createTimers()
  const relay = connect({ timers })
  recorder.listen(relay.notice)
  relay.start()
  async function count (seconds: number): Promise<number> {
    rounds = 0
    await pass(timers, seconds)
    return rounds
  }
  await count(7)
  recorder.attach(null, { happened: [{ type: 'user.created', id: 'a' }] })
  t.ok(await count(7) > 8)
  t.ok(await count(12) <= 3, 'afterwards it polls')
  await relay.close()
})

t.test('a process with the lease keeps others out until it releases the lease or the lease expires', async (t) => {
  const { create, connect, countPending, advance } = await openEvents(t)
  const [one, other] = [connect(), connect()]
  await create('a')
  await one.flush()
  await create('b')
  await other.flush()
  t.equal(await countPending(), 1)
  await one.close()
  await other.flush()
  t.equal(await countPending(), 0, 'given up')
  await create('c')
  advance(70_001)
  const third = connect()
  await third.flush()
  t.equal(await countPending(), 0, 'run out')
  await create('d')
  await other.flush()
  t.equal(await countPending(), 1, 'the former holder notices')
})

t.test('a hole that a process left is filled, and its late event comes after', async (t) => {
  const { create, connect, readAll, inner, advance, feed } = await openEvents(t)
  await create('a')
  await create('b')
  await create('c')
  const events = inner.collection<EventRecord>('events')
  let late: (() => Promise<void>) | undefined
  // As the relay of an early release, which wrote the events one by one and at the same time.
  async function stand ([first, second, third]: readonly EventRecord[]): Promise<void> {
    await events.insert(first!)
    await events.insert(third!)
    late = async () => { await events.insert(second!) }
    throw new Error('the process stood still here')
  }
  const around: Around = ({ collection, method, args }, run) =>
    collection === 'events' && method === 'insertMany' && late === undefined ? stand(args[0] as EventRecord[]) : run()
  const failing = connect({ store: wrapStore(inner, around) })
  await t.rejects(failing.flush(), /stood still/)
  t.strictSame((await readAll()).map(toText), ['user.created a', 'user.created c'])
  const start = await feed.first()
  t.strictSame((await feed.read({ after: start })).events.map(({ target }) => target.id), ['a'], 'a reader stops before the hole')
  advance(70_001)
  const next = connect()
  await next.flush()
  t.strictSame((await readAll()).map(toText), ['user.created a', 'gap', 'user.created c', 'user.created b'])
  await t.rejects(late!(), { name: 'DuplicateKeyError' }, 'the late write fails')
  const read = await feed.read({ after: start })
  t.strictSame(read.events.map(({ target }) => target.id), ['a', 'c', 'b'])
  t.match(read.after, /\.4$/)
})

t.test('a deletion that was interrupted is withdrawn, and can be repeated', async (t) => {
  const scheduler = new Scheduler()
  const { create, change, remove, connect, readAll, inner, advance } = await openEvents(t, { around: scheduler.around })
  const relay = connect()
  await create('a')
  scheduler.interrupt = ({ collection, method }) => {
    if (collection === 'users' && method === 'delete') throw new Error('killed')
  }
  await scheduler.run({ remover: async () => await remove('a') }, () => 0)
  const { revision } = (await inner.collection<Document & { revision: number }>('users').get('a'))!
  await relay.flush()
  t.equal(await inner.collection('event_inbox').count(), 1, 'whoever began it has some time')
  advance(10_001)
  await relay.flush()
  t.equal(await inner.collection('event_inbox').count(), 0)
  t.notOk(await inner.collection('users').delete('a', { equal: { revision } }), 'a late write has no effect')
  await change('a')
  await relay.flush()
  t.strictSame((await readAll()).map(toText), ['user.created a', 'user.updated a 1'])
  t.equal(await remove('a'), true)
  await relay.flush()
  t.equal((await readAll()).map(toText).at(-1), 'user.deleted a')
})

t.test('a deletion that a process left whose clock was an hour ahead is withdrawn too', async (t) => {
  const scheduler = new Scheduler()
  const { create, remove, connect, inner, now } = await openEvents(t, { around: scheduler.around })
  const relay = connect()
  await create('a')
  scheduler.interrupt = ({ collection, method }) => {
    if (collection === 'users' && method === 'delete') throw new Error('killed')
  }
  await scheduler.run({ remover: async () => await remove('a') }, () => 0)
  const inbox = inner.collection('event_inbox')
  const [[record]] = await Array.fromAsync(inbox.stream()) as [[Document]]
  for (const [ahead, left] of [[30_000, 1], [3_600_000, 0]] as const) {
    await inbox.update(record.id, { set: { created_at: new Date(now() + ahead).toISOString() } })
    await relay.flush()
    t.equal(await inbox.count(), left, `${ahead} ms ahead`)
  }
})

t.test('a deletion that was interrupted spares a new document with the same id, and both deletions have their events', async (t) => {
  const scheduler = new Scheduler()
  const { create, remove, connect, readAll, inner, advance } = await openEvents(t, { around: scheduler.around })
  const users = inner.collection<Document & { created_at: string }>('users')
  const relay = connect()
  const createAt = async (created_at: string) => {
    await create('a')
    await users.update('a', { set: { created_at } })
  }
  await createAt('2026-11-21')
  scheduler.interrupt = ({ collection, method }) => {
    if (collection === 'users' && method === 'delete') throw new Error('killed')
  }
  await scheduler.run({ remover: async () => await remove('a') }, () => 0)
  await users.delete('a')
  await createAt('2026-11-22')
  advance(10_001)
  await relay.flush()
  t.match(await users.get('a'), { created_at: '2026-11-22' })
  t.equal(await remove('a'), true)
  await relay.flush()
  t.strictSame((await readAll()).map(toText).filter((text) => text.startsWith('user.deleted')), ['user.deleted a', 'user.deleted a'])
})

t.test('concurrent deletions and a change: one of the deletions succeeds, with one event, in any order', async (t) => {
  const scheduler = new Scheduler()
  const { create, change, remove, connect, readAll, countPending, inner } = await openEvents(t, { around: scheduler.around })
  scheduler.isShared = ({ collection, method }) => collection === 'users' || (collection === 'event_inbox' && !isListing(method))
  let number = 0
  async function race (choose: Choose, removers: number, changes: boolean): Promise<string> {
    const id = `user-${number++}`
    await create(id)
    const results: boolean[] = []
    let changed = false
    const actors: Record<string, () => Promise<unknown>> = changes ? { changer: async () => { changed = await change(id) } } : {}
    for (let count = 0; count < removers; count++) actors[`remover ${count}`] = async () => { results.push(await remove(id)) }
    await scheduler.run(actors, choose)
    const relay = connect()
    await relay.flush()
    await relay.close()
    const types = (await readAll()).map(toText).filter((text) => text.split(' ')[1] === id).map((text) => text.split(' ')[0])
    const expected = ['user.created', ...(changed ? ['user.updated'] : []), 'user.deleted']
    if (types.join() !== expected.join()) t.strictSame(types, expected, JSON.stringify(scheduler.log))
    if (results.filter(Boolean).length !== 1) t.strictSame(results, 'one of them true', JSON.stringify(scheduler.log))
    if (await inner.collection('users').get(id) !== null || await countPending() > 0) t.fail('something is left')
    await inner.collection('events').deleteMany({ before: { id: '9' } })
    return changed ? 'changed' : 'not changed'
  }
  await exhaust({ least: 14, outcomes: ['not changed'] }, async (choose) => await race(choose, 2, false))
  await exhaust({ least: 5, outcomes: ['changed', 'not changed'] }, async (choose) => await race(choose, 1, true))
  await exhaust({ least: 130, most: 0, random: 200, outcomes: ['changed', 'not changed'] }, async (choose) => await race(choose, 2, true))
})

interface Made {
  text: string
  /** Positions among all beginnings and acknowledgements. */
  begun: number
  acknowledged: number
}

async function takeOver (t: Test, database: string | undefined, seeds: number): Promise<void> {
  const scheduler = new Scheduler()
  let choose: Choose = () => 0
  let failing = false
  // A process that dies while it writes many documents has written the first ones.
  async function writeSome (collection: string, documents: Document[]): Promise<void> {
    await inner.collection(collection).insertMany(documents.slice(0, choose(documents.length)))
    throw new Error('killed while writing')
  }
  const around: Around = (call, run) => scheduler.around(call, () =>
    call.method === 'insertMany' && failing && choose(4) === 0 ? writeSome(call.collection, call.args[0] as Document[]) : run())
  const { create, change, remove, connect, readAll, countPending, advance, recorder, feed, inner } = await openEvents(t, { around, ...(database !== undefined && { database }) })
  scheduler.interrupt = () => {
    if (failing && choose(40) === 0) throw storeError(new Error('no answer'))
  }
  for (let seed = 1; seed <= seeds; seed++) {
    for (const { name } of COLLECTIONS) await inner.collection(name).deleteMany({ since: { id: '' } })
    choose = createRandom(seed)
    failing = choose(2) === 0
    const made: Made[] = []
    let position = 0
    const record = async (text: string, act: () => Promise<boolean | void>) => {
      const begun = position++
      if (await act() !== false) made.push({ text, begun, acknowledged: position++ })
    }
    const write = (name: string) => async () => {
      await record(`user.created ${name}`, async () => await create(name))
      for (let count = 1; count <= 3; count++) await record(`user.updated ${name} ${count}`, async () => await change(name))
      await record(`session.ended ${name}`, async () => await recorder.insert({ type: 'session.ended', id: name }))
      if (name !== 'a') await record(`user.deleted ${name}`, async () => await remove(name))
    }
    const relays: ReturnType<typeof connect>[] = []
    const open = () => {
      relays.push(connect())
      return relays.at(-1)!
    }
    const relay = () => async () => {
      const own = open()
      for (let round = 0; round < 6; round++) {
        await own.flush().catch(() => {})
        // Longer than the lease, so that a suspended relay loses it.
        if (choose(3) === 0) advance(10_001)
        // The clock is set back.
        if (choose(4) === 0) advance(-4_000)
      }
    }
    await scheduler.run({ a: write('a'), b: write('b'), c: write('c'), one: relay(), other: relay(), third: relay() }, choose)
    failing = false
    const last = open()
    for (let round = 0; round < 8; round++) {
      advance(10_001)
      await last.flush()
    }
    const records = await readAll()
    const texts = records.map(toText).filter((text) => text !== 'gap')
    if (await countPending() > 0) t.fail(`seed ${seed}: something is left`)
    if (new Set(texts).size !== texts.length) t.strictSame(texts, [...new Set(texts)], `seed ${seed}: published twice`)
    for (const { text } of made) if (!texts.includes(text)) t.strictSame(texts, text, `seed ${seed}: lost`)
    for (const one of made) {
      for (const other of made) {
        if (one.acknowledged < other.begun && texts.indexOf(one.text) > texts.indexOf(other.text)) t.strictSame(texts, [one, other], `seed ${seed}: the effect comes before its cause`)
      }
    }
    const times = records.flatMap(({ content }) => content?.time ?? [])
    if (times.join() !== times.toSorted().join()) t.strictSame(times, times.toSorted(), `seed ${seed}: the time goes back`)
    for (const name of ['a', 'b', 'c']) {
      const own = texts.filter((text) => text.split(' ')[1] === name && text.startsWith('user.'))
      const sorted = own.toSorted((x, y) => rank(x) - rank(y))
      if (own.join() !== sorted.join()) t.strictSame(own, sorted, `seed ${seed}: another order`)
    }
    if (records.some(({ id }, index) => Number(id) !== index + 1)) t.fail(`seed ${seed}: a hole`)
    const read = await feed.read({ after: await feed.first() })
    if (read.events.length !== texts.length) t.equal(read.events.length, texts.length, `seed ${seed}: the feed`)
    // One that renewed its lease during the next run would write its own end of the feed there.
    await Promise.all(relays.map(async (one) => await one.close()))
  }
  t.pass(`${seeds} random runs`)
}

t.test('relays that take over from one another at any moment publish each event once, cause before effect', async (t) => await takeOver(t, undefined, 100))

t.test('the same on MongoDB', { skip: MONGODB_URL === undefined && 'MONGODB_URL is not set' }, async (t) => await takeOver(t, createMongoDatabase(t, MONGODB_URL!), 8))

const rank = (text: string) => text.startsWith('user.created') ? 0 : text.startsWith('user.deleted') ? 9 : Number(text.split(' ')[2])

t.test('records of the inbox that are left without events are removed, and stop nothing', async (t) => {
  const { recorder, connect, readAll, inner } = await openEvents(t)
  const inbox = inner.collection('event_inbox')
  for (let count = 0; count < 100; count++) await inbox.insert({ id: `users/${count}`, created_at: BEGIN_TEXT, event_due: BEGIN_TEXT } as Document)
  await recorder.insert({ type: 'session.ended', id: 's', user_id: 'a', client_id: 'c' })
  const relay = connect()
  await relay.flush()
  await relay.flush()
  t.strictSame((await readAll()).map(toText), ['session.ended s'])
  t.equal(await inbox.count(), 0)
  await relay.close()
})
