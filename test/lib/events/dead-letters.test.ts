import t from 'tap'
import { StoreBusyError, busyError, storeError } from '../../../lib/errors.ts'
import { type DeadLetterRecord, createDeadLetterList } from '../../../lib/events/dead-letters.ts'
import type { EventRecord } from '../../../lib/events/types.ts'
import type { Document } from '../../../lib/store/port.ts'
import { handleAll } from '../../helpers/events.ts'
import { createTimers } from '../../helpers/timers.ts'
import { isListing, wrapStore } from '../../helpers/wrap-store.ts'
import { BEGIN, openEvents, toText } from './harness.ts'

t.setTimeout(120_000)

const HOUR = 60 * 60_000

/** Relays that cannot publish the events of some documents. */
async function open (t: Parameters<typeof openEvents>[0], database?: string) {
  const events = await openEvents(t, database === undefined ? {} : { database })
  const { inner, connect, create, readAll } = events
  const poisoned = new Set<string>()
  const timers = createTimers()
  const letters = inner.collection<DeadLetterRecord>('event_letters')
  const parts = {
    timers,
    handlers: handleAll(async ({ content }) => { if (poisoned.has(content!.target.id)) throw new TypeError('cannot be handled') })
  }
  let number = 0
  const relay = connect(parts)
  return {
    ...events,
    poisoned,
    timers,
    parts,
    letters,
    list: createDeadLetterList({ store: inner, now: events.now }),
    relay,
    /** Rounds in which the event of another document is published. */
    async publish (rounds: number): Promise<void> {
      for (let round = 0; round < rounds; round++) {
        await create(`other-${number++}`)
        timers.advance(1_000)
        await relay.flush()
      }
    },
    countOthers: () => number,
    /** What was published about a document. */
    readOf: async (id: string) => (await readAll()).map(toText).filter((text) => text.split(' ')[1] === id).map((text) => text.replace(` ${id}`, ''))
  }
}

for (const kind of ['when it is handled', 'when it is stored']) {
  t.test(`150 documents whose events fail ${kind} stop no reader, are set aside, changed 40 times and deleted, and published in order later`, async (t) => {
    const { inner, create, change, remove, connect, readAll, readOf, countPending, feed, poisoned, timers, parts, letters, advance, errors, now } = await open(t)
    const refuse = ({ collection, method, args: [record] }: { collection: string, method: string, args: unknown[] }) => {
      const records = collection !== 'events' ? [] : method === 'insert' ? [record as EventRecord] : method === 'insertMany' ? record as EventRecord[] : []
      if (kind === 'when it is stored' && records.some(({ content }) => poisoned.has(content?.target.id ?? ''))) throw new TypeError('key: wrong type')
    }
    const store = wrapStore(inner, (call, run) => {
      if (isListing(call.method)) return run()
      refuse(call)
      return run()
    })
    const connectPoisoned = () => connect({ ...parts, store, ...(kind === 'when it is stored' && { handlers: {} }) })
    const [one, other] = [connectPoisoned(), connectPoisoned()]
    const ids = Array.from({ length: 150 }, (_, index) => `bad-${index}`)
    for (const id of ids) {
      poisoned.add(id)
      await create(id)
    }
    const after = await feed.first()
    for (let round = 0; round < 5; round++) {
      await create(`good-${round}`)
      timers.advance(1_000)
      await one.flush()
    }
    t.equal(await letters.count(), 150)
    const read = async () => {
      const texts: string[] = []
      for (let cursor = after; ;) {
        const { events, after: next } = await feed.read({ after: cursor })
        if (next === cursor) return texts
        texts.push(...events.map(({ target }) => target.id))
        cursor = next
      }
    }
    t.strictSame(await read(), [0, 1, 2, 3, 4].map((round) => `good-${round}`), 'readers go on')
    t.equal(await countPending(), 0, 'they take no place')
    for (let count = 0; count < 40; count++) {
      await change('bad-7')
      if (count % 10 === 9) await one.flush()
    }
    await remove('bad-7')
    await one.close()
    // Another process goes on.
    await create('good-5')
    await other.flush()
    t.equal(await inner.collection('users').get('bad-7'), null, 'the deletion is carried out')
    t.equal((await read()).at(-1), 'good-5')
    t.equal(await countPending(), 0)
    t.equal(await letters.count(), 150)
    t.notMatch((await readAll()).map(toText), ['user.created bad-7'])
    poisoned.clear()
    await other.flush()
    t.equal(await letters.count(), 150, 'not before an hour')
    const letter = (await Array.fromAsync(letters.stream())).flat()[0]!
    await letters.update(letter.id, { set: { due_at: new Date(now() + 2 * HOUR).toISOString() } })
    await other.flush()
    t.equal(await letters.count(), 149, 'a clock was ahead when it was put off')
    advance(HOUR + 1)
    await other.flush()
    t.equal(await letters.count(), 0)
    t.strictSame(await readOf('bad-7'), ['user.created', ...Array.from({ length: 40 }, (_, index) => `user.updated ${index + 1}`), 'user.deleted'])
    const published = (await readAll()).flatMap(({ key }) => key ?? [])
    t.equal(new Set(published).size, published.length, 'each once')
    await change('bad-3')
    await other.flush()
    t.strictSame(await readOf('bad-3'), ['user.created', 'user.updated 1'])
    t.strictSame(Object.keys((await inner.collection('users').get('bad-3'))!).sort(), ['changes', 'id', 'revision'], 'nothing of it is left')
    t.equal(errors.filter((error) => /were set aside/.test(String(error))).length, 150)
    await other.close()
  })
}

t.test('a record of the inbox that this release cannot handle is set aside, and handled by a later one', async (t) => {
  const { inner, recorder, publish, letters, connect, readAll, list, readOf, countOthers } = await open(t)
  const inbox = inner.collection('event_inbox')
  await recorder.insert({ type: 'session.ended', id: 's' })
  const [record] = await Array.fromAsync(inbox.stream(), (batch) => batch[0]!)
  const target = { collection: 'groups', target: 'g', last: record!.id, created_at: new Date(BEGIN - HOUR).toISOString() }
  await inbox.update(record!.id, { set: target })
  await inbox.insert({ id: 'broken', created_at: '', 'event:no-ulid': null, event_due: 'no-ulid no-ulid' } as Document)
  await publish(5)
  t.equal((await readAll()).length, countOthers())
  t.equal(await inbox.count(), 0)
  t.same((await Array.fromAsync(list.list('failed'))).flat().map(({ id, failure }) => ({ id, failure })).sort((one, other) => one.id < other.id ? -1 : 1), [
    { id: record!.id, failure: 'ERROR' }, { id: 'broken', failure: 'ERROR' }
  ])
  await letters.update(record!.id, { set: { collection: 'webhooks' } })
  await t.rejects(list.retry('unknown'), { code: 'ErrNotFound' })
  await list.retry(record!.id)
  const later = connect()
  await publish(1)
  await later.flush()
  t.strictSame(await readOf('s'), ['session.ended'])
  t.equal(await letters.count(), 1)
  await later.close()
})

t.test('what all documents share sets nothing aside', async (t) => {
  const { create, change, timers, connect, letters, countPending, readOf } = await open(t)
  for (const error of [storeError(new Error('no answer')), new StoreBusyError('writes')]) {
    let isFailing = true
    const relay = connect({ timers, handlers: handleAll(async ({ content }) => { if (isFailing && content!.target.id === 'a') throw error }) })
    if (error.code === 'ErrDb') await create('a')
    else await change('a')
    for (let round = 0; round < 8; round++) {
      await create(`${error.code}-${round}`)
      timers.advance(1_000)
      await t.rejects(relay.flush(), { code: error.code })
    }
    t.equal(await letters.count(), 0)
    isFailing = false
    await relay.flush()
    t.equal(await countPending(), 0)
    await relay.close()
  }
  t.strictSame(await readOf('a'), ['user.created', 'user.updated 1'])
})

t.test('mails move with the events that are set aside, and are stored when these are published', async (t) => {
  const { store, recorder, connect, parts, create, timers, poisoned, letters, inner } = await open(t)
  const stored: string[] = []
  const relay = connect({ ...parts, acceptMails: async ({ key, notices = [] }) => { stored.push(...notices.map(({ to }) => `${key} ${to}`)) } })
  poisoned.add('a')
  const notices = [{ kind: 'password-changed' as const, user_id: 'a', to: 'ann@example.com', time: '2126-11-21T00:00:00.000Z' }]
  await store.collection<Document & { revision: number }>('users').insert({ id: 'a', revision: 0, ...recorder.attach(null, { happened: [{ type: 'user.password_changed', id: 'a' }], notices }) })
  for (let round = 0; round < 5; round++) {
    await create(`beside-${round}`)
    timers.advance(1_000)
    await relay.flush()
  }
  t.match((await Array.fromAsync(letters.stream())).flat().map((letter) => Object.keys(letter).filter((field) => field.startsWith('event_notice:')).length), [1])
  t.strictSame([stored, Object.keys((await inner.collection('users').get('a'))!).some((field) => field.startsWith('event_notice:'))], [[], false])
  poisoned.clear()
  await createDeadLetterList({ store: inner, now: () => BEGIN }).retry()
  await relay.flush()
  t.match(stored, [/^\w{26} ann@example\.com$/])
  t.equal(await letters.count(), 0)
  await relay.close()
})

t.test('a queue that is full holds up its own events only', async (t) => {
  const { create, timers, connect, readOf } = await open(t)
  let isFull = true
  const relay = connect({ timers, handlers: handleAll(async ({ content }) => { if (isFull && content!.target.id === 'a') throw busyError('logout tokens') }) })
  await create('a')
  await create('b')
  await relay.flush()
  t.strictSame([await readOf('a'), await readOf('b')], [[], ['user.created']])
  isFull = false
  await relay.flush()
  t.strictSame(await readOf('a'), ['user.created'])
  await relay.close()
})

t.test('while nothing else is published, and while failures are rare, nothing is set aside', async (t) => {
  const { create, relay, timers, publish, poisoned, letters } = await open(t)
  poisoned.add('a')
  await create('a')
  for (let round = 0; round < 20; round++) {
    timers.advance(1_000)
    await relay.flush()
  }
  t.equal(await letters.count(), 0, 'all documents fail')
  for (let round = 0; round < 10; round++) {
    timers.advance(60_000)
    await publish(1)
  }
  t.equal(await letters.count(), 0, 'few in a minute')
  await publish(5)
  t.equal(await letters.count(), 1)
})

t.test('letters are tried at the start, and a process that dies while it sets a document aside loses and repeats nothing', async (t) => {
  const { inner, create, change, poisoned, timers, parts, connect, letters, readOf, now } = await open(t)
  poisoned.add('a')
  for (let call = 0; call < 4; call++) {
    let [writes, isDead] = [0, false]
    const store = wrapStore(inner, (call_, run) => {
      const { collection, method, args } = call_
      if (isDead) throw new Error('killed')
      const isOfMove = (collection === 'event_letters' && ['insert', 'update'].includes(method)) || (collection === 'users' && method === 'update' && args[0] === 'a')
      if (isOfMove && writes++ >= call) {
        isDead = true
        throw new Error('killed')
      }
      return run()
    })
    if (call === 0) await create('a')
    else await change('a')
    const dying = connect({ ...parts, store })
    for (let round = 0; round < 6; round++) {
      await create(`other-${call}-${round}`)
      timers.advance(1_000)
      await dying.flush().catch(() => {})
    }
    // Its lease ends.
    await inner.collection('feed').update('feed', { set: { leased_until: '' } })
  }
  poisoned.clear()
  const next = connect({ now: () => now() + 60_000 })
  next.start()
  for (let turn = 0; turn < 200 && await letters.count() > 0; turn++) {
    await new Promise((resolve) => { setTimeout(resolve, 5) })
    await next.flush()
  }
  await next.flush()
  t.equal(await letters.count(), 0)
  t.strictSame(await readOf('a'), ['user.created', 'user.updated 1', 'user.updated 2', 'user.updated 3'])
  await next.close()
})
