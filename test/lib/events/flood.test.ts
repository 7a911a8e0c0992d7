import { createSecretKey } from 'node:crypto'
import t, { type Test } from 'tap'
import { createFailures } from '../../../lib/events/failures.ts'
import { runFor } from '../../../lib/events/origin.ts'
import { listPending } from '../../../lib/events/pending.ts'
import { createRecorder } from '../../../lib/events/recorder.ts'
import type { EventContent, Happening } from '../../../lib/events/types.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'
import type { Store } from '../../../lib/store/port.ts'
import { scan } from '../../../lib/store/scan.ts'
import { forEachEngine } from '../../helpers/stores.ts'
import { createTimers } from '../../helpers/timers.ts'

const MINUTE = 60_000
const KIB = 1024

/** What docs/security.md promises: single events, six times the summaries of ten minutes, and as often one event for all. */
const STRANGERS = (1024 + 6 * 20 + 6 * 8) * KIB

const REFUSAL = { rule: 'host', value: 'evil.example' }

type Failures = ReturnType<typeof createFailures>

/** The failures of a service, and the events that they leave in the store. */
function open (t: Test, store: Store) {
  const timers = createTimers()
  const recorder = createRecorder({ store, now: Date.now, via: 'system', addresses: 'full' })
  let bytes = 0
  const insert = async (happening: Happening) => {
    bytes += recorder.measure(happening)
    await recorder.insert(happening)
  }
  const failures = createFailures({ recorder: { ...recorder, insert }, getKey: () => createSecretKey(Buffer.alloc(32)), onError: (error) => { throw error }, timers })
  t.teardown(() => failures.close())
  return {
    timers,
    failures,
    getBytes: () => bytes,
    from: (address: string, work: (failures: Failures) => void) => runFor({ via: 'page', address, request_id: 'a' }, () => work(failures)),
    async list (): Promise<EventContent[]> {
      await failures.settle()
      const events: EventContent[] = []
      for await (const records of scan(store.collection('event_inbox'), {})) events.push(...records.flatMap(listPending).map(({ content }) => content))
      return events
    }
  }
}

const sum = (events: readonly EventContent[]): number => events.reduce((total, { count = 1 }) => total + count, 0)

const inMemory = async (t: Test) => {
  const store = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: Date.now, onError: (error) => { throw error } })
  t.teardown(() => store.close())
  return open(t, store)
}

t.test('ten thousand made-up hosts leave less than a thousand events, and failures of others are recorded', async (t) => {
  await forEachEngine(t, { collections: COLLECTIONS }, async (t, store) => {
    const { from, list, timers, getBytes } = open(t, store)
    for (let index = 0; index < 10_050; index++) {
      from(`192.0.2.${index % 11}`, (failures) => failures.recordDocument(`https://h${index}.example/x`, undefined, REFUSAL))
    }
    for (let count = 0; count < 9; count++) from('198.51.100.1', (failures) => failures.recordSignIn('ben', 'ben', { reason: 'wrong_password' }))
    from('198.51.100.1', (failures) => failures.recordFactor('ann', { reason: 'wrong_code' }))
    timers.advance(50 * MINUTE)
    from('198.51.100.1', (failures) => failures.recordSignIn('ben', 'ben', { reason: 'wrong_password' }))
    const events = await list()
    t.ok(events.length < 1_000, `${events.length} events`)
    t.ok(getBytes() < STRANGERS)
    t.equal(events.filter(({ type, user_id, address }) => type === 'sign_in.failed' && user_id === 'ben' && address === '198.51.100.1').length, 10)
    t.match(events.find(({ type }) => type === 'factor.failed'), { user_id: 'ann' })
    t.equal(sum(events.filter(({ type }) => type === 'client.document_refused')), 10_050, 'every refusal is counted')
  })
})

t.test('one wrong password each for ten thousand people: fewer than a thousand events, and those at a victim are seen', async (t) => {
  await forEachEngine(t, { collections: COLLECTIONS }, async (t, store) => {
    const { from, list, timers, getBytes } = open(t, store)
    for (let index = 0; index < 10_000; index++) from(`192.0.2.${index % 8}`, (failures) => failures.recordSignIn(`person ${index}`, '', { reason: 'wrong_password' }))
    for (let count = 0; count < 50; count++) from('192.0.2.1', (failures) => failures.recordSignIn('victim', '', { reason: 'wrong_password' }))
    from('198.51.100.1', (failures) => failures.recordFactor('other', { reason: 'wrong_code', isKnown: false }))
    from('192.0.2.1', (failures) => failures.recordSignIn('at home', '', { reason: 'wrong_password', isKnown: true }))
    timers.advance(10 * MINUTE)
    const events = await list()
    t.ok(events.length < 1_000, `${events.length} events`)
    t.ok(getBytes() < STRANGERS)
    t.equal(sum(events.filter(({ user_id }) => user_id === 'victim')), 50)
    t.match(events.filter(({ type }) => type === 'factor.failed'), [{ user_id: 'other', address: '198.51.100.1' }], 'a network that has written nothing writes single events')
    t.match(events.filter(({ user_id }) => user_id === 'at home'), [{ address: '192.0.2.1' }], 'as does a browser in which the person has signed in')
    t.equal(sum(events), 10_052, 'every failure is counted')
    const all = events.filter(({ type }) => type === 'events.counted')
    t.equal(all.length, 1)
    t.equal(all[0]!.counts!['sign_in.failed'], all[0]!.count)
    t.equal(all[0]!.accounts!.length, 100)
    timers.advance(60 * MINUTE)
    from('192.0.2.1', (failures) => failures.recordSignIn('person 1', '', { reason: 'wrong_password' }))
    t.match((await list()).at(-1), { type: 'sign_in.failed', user_id: 'person 1', address: '192.0.2.1', count: undefined }, 'an hour later there are single events again')
  })
})

t.test('whatever strangers send for an hour, the bytes are bounded and every failure is counted', async (t) => {
  const { from, list, timers, getBytes } = await inMemory(t)
  const LONG = { rule: 'redirect_host', value: 'x'.repeat(1_000) }
  let total = 0
  for (let minute = 0; minute < 60; minute++) {
    for (let index = 0; index < (minute === 0 ? 4_000 : 100); index++) {
      const address = `2001:db8:${index % 300}:${index}::1`
      from(address, (failures) => failures.recordSignIn(`person ${minute * 4_000 + index}`, '', { reason: 'wrong_password' }))
      from(address, (failures) => failures.recordFactor(`person ${index}`, { reason: 'wrong_code', isKnown: false }))
      from(address, (failures) => failures.recordDocument(`https://h${minute}-${index}.example/${'y'.repeat(80)}`, index % 2 === 0 ? `known${index}.example` : undefined, LONG))
      from(address, (failures) => failures.recordIdentity(undefined, { upstream: 'a', subject: `${minute} ${index}` }, { reason: 'stale' }))
      total += 4
    }
    if (minute < 59) timers.advance(MINUTE)
  }
  t.ok(getBytes() < STRANGERS, `${getBytes()} bytes`)
  timers.advance(10 * MINUTE)
  const events = await list()
  t.equal(sum(events), total)
  const known = getBytes()
  for (let index = 0; index < 20_000; index++) from('192.0.2.1', (failures) => failures.recordConfirmation(`account ${index}`, 'wrong_password'))
  for (let index = 0; index < 20_000; index++) from('192.0.2.1', (failures) => failures.recordRefusal('listUsers', { via: 'api', readCaller: () => ({ client_id: `client ${index}` }) }))
  t.ok(getBytes() - known < STRANGERS / 2, 'what many accounts of strangers do is bounded too')
})

t.test('a full map evicts the account with the least, after its summary', async (t) => {
  const { from, list } = await inMemory(t)
  for (let network = 0; network < 100; network++) for (let index = 0; index < 10; index++) from(`192.0.2.${network}`, (failures) => failures.recordSignIn(`busy ${network}`, '', { reason: 'wrong_password' }))
  for (let count = 0; count < 3; count++) from('192.0.2.1', (failures) => failures.recordSignIn('few', '', { reason: 'wrong_password' }))
  for (let index = 0; index < 9_899; index++) for (let count = 0; count < 4; count++) from('192.0.2.1', (failures) => failures.recordSignIn(`person ${index}`, '', { reason: 'wrong_password' }))
  const before = await list()
  t.notOk(before.some(({ user_id }) => user_id === 'few'), 'counted, because its network has written enough')
  from('192.0.2.2', (failures) => failures.recordSignIn('one more', '', { reason: 'wrong_password' }))
  const events = (await list()).slice(before.length)
  t.match(events.find(({ user_id }) => user_id === 'few'), { type: 'sign_in.failed', reason: 'wrong_password', count: 3, addresses: 1, address: '192.0.2.1' })
})

t.test('all series of an account are one entry, so nobody doubles them by other failures', async (t) => {
  const { from, list, timers } = await inMemory(t)
  const via = { upstream: 'a', subject: 'b' }
  for (let index = 0; index < 10_000; index++) {
    from('192.0.2.1', (failures) => {
      failures.recordSignIn(`person ${index}`, '', { reason: 'wrong_password' })
      failures.recordIdentity(`person ${index}`, via, { reason: 'taken' })
      failures.recordRefusedIdentity(`person ${index}`, via)
      failures.recordFactor(`person ${index}`, { reason: 'wrong_code', isKnown: false })
    })
  }
  const before = await list()
  timers.advance(10 * MINUTE)
  const events = await list()
  t.equal(events.length - before.length < 100, true)
  t.equal(sum(events), 40_000, 'none was evicted, and none was lost')
})

t.test('five hundred people behind one address: each of them is named', async (t) => {
  const { from, list, timers } = await inMemory(t)
  for (let index = 0; index < 500; index++) from('192.0.2.1', (failures) => failures.recordSignIn(`person ${index}`, '', { reason: 'wrong_password' }))
  timers.advance(10 * MINUTE)
  const events = await list()
  const named = new Set(events.flatMap(({ user_id, accounts = [] }) => [user_id, ...accounts.map((account) => account.user_id)]).filter((id) => id !== undefined))
  t.equal(named.size, 500)
  t.equal(sum(events), 500)
})
