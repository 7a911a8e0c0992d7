import t, { type Test } from 'tap'
import { storeError } from '../../lib/errors.ts'
import type { DeliveryRecord } from '../../lib/mail/delivery.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { createMongoDatabase } from '../helpers/mongo-database.ts'
import { IS_ELSEWHERE, MONGODB_URL } from '../helpers/mongodb.ts'
import { empty, openProcesses } from '../helpers/mail-processes.ts'
import { settleMails } from '../helpers/mails.ts'
import { waitUntil } from '../helpers/wait.ts'
import { ADMIN, LATER, type Mode, NEW, OLD, killEach } from './notice-kills.ts'
import type { Store } from '../../lib/store/port.ts'

t.setTimeout(600_000)

/** What follows the kills of each scene: every one on SQLite, and the first on MongoDB. test/long/notices.ts has all scenes in all modes. */
const MODES: Record<string, Mode> = {
  'a password and an address of an administrator': { publisher: 'other' },
  'a deletion by its owner': { publisher: 'other', every: 2 },
  'a password, whose account another process deletes after the kill': { publisher: 'sender', every: 3 },
  'a change of the address': { publisher: 'sender', isFull: true, every: 3 },
  'an undo of that': { publisher: 'other', isFull: true, every: 3 },
  'an unlock by support staff': { publisher: 'other', every: 2 },
  'an invitation': { publisher: 'other', every: 2 }
}

async function checkAll (t: Test, store: Store, isFew: boolean): Promise<void> {
  for (const [name, mode] of Object.entries(MODES).slice(0, isFew ? 2 : Infinity)) {
    await t.test(`${name}: a kill at any write from the decision to the sent mail loses no mail, and sends none twice`, async (t) => {
      const { decided, undecided, problems } = await killEach(t, { store, database: '' }, name, isFew ? { ...mode, every: 4 } : mode)
      t.strictSame(problems, [])
      t.ok(decided > 1 && undecided > 0, `${decided} kills after the decision, ${undecided} before it`)
    })
  }

  await t.test('a kill after the mail was sent, and before its event leaves the record, sends nothing twice', async (t) => {
    await empty(store)
    const { open, sent } = openProcesses(t, store)
    const deliveries = store.collection<DeliveryRecord>('deliveries')
    const isDone = async () => await deliveries.count({ equal: { state: 'done' } }) === 1 || (sent.length > 0 && await deliveries.count({}) === 0)
    const services = await open({
      mail: true,
      around ({ method, args }, run) {
        const { unset = [] } = Object(args[1]) as { unset?: string[] }
        if (method !== 'update' || !unset.some((field) => field.startsWith('event_notice:'))) return run()
        return waitUntil('the mail is sent', isDone).then(() => { throw storeError('the process was killed') })
      }
    })
    const { user_id } = await services.users.create({ data: { account: OLD, password: 'first' } })
    await services.users.patch(user_id, { data: { password: 'another' } }, ADMIN)
    await t.rejects(settleMails(services), { code: 'ErrDb' })
    const later = await open({ mail: true, skew: LATER })
    await settleMails(later)
    t.equal(sent.length, 1)
    const [kept] = (await Array.fromAsync(deliveries.stream())).flat()
    t.match(kept, { state: 'done', kind: 'password-changed', sealed: undefined }, 'it is remembered without its content')
    t.ok(kept!.expired_at > new Date(Date.now() + 23 * 3_600_000).toISOString())
  })

  await t.test('a full queue refuses no mail about a change, and holds up nobody', async (t) => {
    await empty(store)
    const { open, listSent } = openProcesses(t, store)
    const services = await open({ mail: true, around: ({ collection, method }, run) => collection === 'deliveries' && method === 'count' ? Promise.resolve(10_000) : run() })
    const { user_id } = await services.users.create({ data: { account: OLD, password: 'first' } })
    await t.rejects(services.accounts.forgotPassword(OLD, { ip: '192.0.2.1' }), { code: 'ErrBusy' })
    await services.users.patch(user_id, { data: { password: 'another' } }, ADMIN)
    await services.users.create({ data: { account: 'bob', password: 'first' } })
    await settleMails(services)
    t.strictSame([...listSent().keys()], [`${OLD}: your password was changed`])
    const events = (await Array.fromAsync(services.events.list())).flat().map(({ type }) => type)
    t.ok(events.includes('user.password_changed') && events.filter((type) => type === 'user.created').length === 2, String(events))
  })

  await t.test('a mail that cannot be stored keeps its event, and holds up no other; an outage of the store does not count', async (t) => {
    await empty(store)
    const { open, listSent } = openProcesses(t, store)
    const failing: { error?: Error } = {}
    const services = await open({
      mail: true,
      around ({ collection, method, args }, run) {
        const { kind } = Object(args[0]) as { kind?: string }
        return collection === 'deliveries' && method === 'insert' && kind === 'password-changed' && failing.error !== undefined ? Promise.reject(failing.error) : run()
      }
    })
    const [ann, bob] = [await services.users.create({ data: { account: OLD, password: 'first' } }), await services.users.create({ data: { account: NEW, password: 'first' } })]
    await settleMails(services)
    const count = async () => (await Array.fromAsync(services.events.list({ type: 'user.password_changed' }))).flat().length
    for (const [error, isOutage] of [[new TypeError('too large'), false], [storeError('down'), true]] as const) {
      failing.error = error
      const before = await count()
      await services.users.patch(ann.user_id, { data: { password: `another ${isOutage}` } }, ADMIN)
      await services.users.patch(bob.user_id, { data: isOutage ? { email: 'bob@example.com' } : { email_verified: true } }, ADMIN)
      if (isOutage) await t.rejects(settleMails(services), { code: 'ErrDb' })
      else await settleMails(services)
      await services.accounts.outbox!.flush()
      t.notOk(listSent().has(`${OLD}: your password was changed`) && !isOutage, 'it is not stored')
      t.equal(listSent().has(`${NEW}: ${isOutage ? 'your email address was replaced' : 'your email address is confirmed'}`), true, 'the other one is sent')
      t.equal(await count(), before + 1, 'the event is published')
      delete failing.error
      await settleMails(services)
      t.equal(listSent().get(`${OLD}: your password was changed`)?.length, isOutage ? 2 : 1, 'it is sent as soon as it can be stored')
      t.equal(await count(), before + 1, 'the event is there once')
    }
  })
}

t.test('what a restored backup has not sent fails, and an operator sends it once', { skip: IS_ELSEWHERE && 'another run has these' }, async (t) => {
  const directory = t.testdir()
  const database = `sqlite:${directory}/identity.db`
  const store = await openStore(database, { collections: COLLECTIONS, now: Date.now })
  t.teardown(() => store.close())
  for (const [name, mode] of Object.entries({ 'a password and an address of an administrator': { every: 3 }, 'a deletion by its owner': { every: 4, first: 1 } })) {
    const { decided, problems } = await killEach(t, { store, database }, name, { publisher: 'sender', restoreIn: directory, ...mode })
    t.strictSame(problems, [])
    t.ok(decided > 1, `${decided} kills after the decision`)
  }
})

const ENGINES: [name: string, url: (t: Test) => string, skip: string | false, isFew: boolean][] = [
  ['SQLite', () => 'sqlite::memory:', IS_ELSEWHERE && 'another run has these', false],
  ['MongoDB', (t) => createMongoDatabase(t, MONGODB_URL!), MONGODB_URL === undefined && 'MONGODB_URL is not set', true]
]

for (const [name, url, skip, isFew] of ENGINES) {
  t.test(`on ${name}`, { skip }, async (t) => {
    const store = await openStore(url(t), { collections: COLLECTIONS, now: Date.now, onError: (error) => { throw error } })
    t.teardown(() => store.close())
    await checkAll(t, store, isFew)
  })
}
