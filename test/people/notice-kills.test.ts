import t, { type Test } from 'tap'
import { storeError } from '../../lib/errors.ts'
import type { Services } from '../../lib/identity.ts'
import type { DeliveryRecord } from '../../lib/mail/delivery.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { createMongoDatabase } from '../helpers/mongo-database.ts'
import { IS_ELSEWHERE, MONGODB_URL } from '../helpers/mongodb.ts'
import { empty, openProcesses } from '../helpers/mail-processes.ts'
import { settleMails } from '../helpers/mails.ts'
import { waitUntil } from '../helpers/wait.ts'
import type { Store } from '../../lib/store/port.ts'

t.setTimeout(300_000)

const ADMIN = { user_id: 'admin', isAdmin: true }
const OLD = 'ann@example.com'
const NEW = 'new@example.com'

/** A change, and the mails that it causes. */
interface Scene {
  act: (services: Services, user_id: string) => Promise<unknown>
  isDone: (store: Store, user_id: string) => Promise<boolean>
  mails: string[]
  /** What another process does after the kill, before anything is published, and its mails. */
  later?: { act: Scene['act'], mails: string[] }
}

const read = async (store: Store, user_id: string) => await store.collection<{ id: string, epoch: number, undos?: object[] }>('users').get(user_id)

const SCENES: Record<string, Scene> = {
  'a password and an address of an administrator': {
    act: async ({ users }, user_id) => await users.patch(user_id, { data: { password: 'another', email: NEW } }, ADMIN),
    isDone: async (store, user_id) => (await read(store, user_id))?.epoch === 1,
    mails: [`${OLD}: your password was changed`, `${OLD}: the address of your account was replaced`]
  },
  'a deletion by its owner': {
    act: async ({ accounts }, user_id) => await accounts.deleteOwn(user_id),
    isDone: async (store, user_id) => await read(store, user_id) === null,
    mails: [`${OLD}: your account was deleted`]
  },
  'a password, whose account another process deletes after the kill': {
    act: async ({ users }, user_id) => await users.patchOwn(user_id, { data: { password: 'another', current_password: 'first' } }),
    isDone: async (store, user_id) => (await read(store, user_id))?.epoch === 1,
    mails: [`${OLD}: your password was changed`],
    later: { act: async ({ accounts }, user_id) => await accounts.deleteOwn(user_id), mails: [`${OLD}: your account was deleted`] }
  },
  'a change of the address': {
    act: async ({ accounts }, user_id) => await accounts.verifyAddress(links.get(user_id)!, user_id),
    isDone: async (store, user_id) => (await read(store, user_id))?.undos?.length === 1,
    mails: [`${OLD}: the address of your account was changed`]
  },
  'an invitation': {
    act: async ({ accounts }) => await accounts.inviteUser({ account: NEW }, ADMIN),
    isDone: async (store) => await store.collection('users').getBy('account', NEW) !== null,
    mails: [`${NEW}: an account for you`]
  }
}

/** The links that were mailed before the change. */
const links = new Map<string, string>()

/** @param most of the changes that are tried */
async function checkAll (t: Test, store: Store, most = Infinity): Promise<void> {
  for (const [name, { act, isDone, mails, later }] of Object.entries(SCENES).slice(0, most)) {
    await t.test(`${name}: a kill at any write from the decision to the sent mail loses no mail, and sends none twice`, async (t) => {
      const { open, openOne, openMortal, sent, listSent } = openProcesses(t, store)
      // A process without a mail server publishes, and another one sends. All leases of the killed one are over.
      const skew = 30 * 60_000
      const [maker, sender] = [await open({ mail: true }), await open({ mail: true, skew })]
      const publish = async () => {
        const { events, close } = await openOne({ mail: false, skew })
        await events.flush()
        await close()
      }
      let isKilled = true
      let [decided, undecided] = [0, 0]
      for (let write = 0; isKilled; write++) {
        await empty(store)
        const { user_id } = await maker.users.create({ data: { account: OLD, password: 'first' } })
        if (name === 'a change of the address') {
          await maker.accounts.changeAddress(user_id, NEW)
          await maker.accounts.outbox!.flush()
          links.set(user_id, /token=([\w-]+)/.exec(sent.pop()!.text)![1]!)
        }
        await publish()
        sent.length = 0
        const { services, killAt, bury } = await openMortal()
        const end = async () => {
          await act(services, user_id)
          await settleMails(services)
          return false
        }
        isKilled = await Promise.race([killAt(write).then(() => true), end()])
        const isChanged = await isDone(store, user_id)
        if (isChanged) decided++
        else undecided++
        await later?.act(maker, user_id)
        await publish()
        await sender.accounts.outbox!.flush()
        const found = listSent()
        t.strictSame([...found.keys()].sort(), [...isChanged ? mails : [], ...later?.mails ?? []].sort(), `killed at write ${write}`)
        for (const [what, copies] of found) {
          if (copies.length > 2 || new Set(copies.map(({ id }) => id)).size > 1) t.fail(`${what}: ${copies.length} copies, killed at write ${write}`)
        }
        const rest = (await Array.fromAsync(store.collection<DeliveryRecord>('deliveries').stream())).flat()
        t.strictSame(rest.filter(({ state }) => state !== 'done'), [], 'nothing is left to send')
        await bury()
      }
      t.ok(decided > 4 && undecided > 0, `${decided} kills after the decision, ${undecided} before it`)
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
    const later = await open({ mail: true, skew: 30 * 60_000 })
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
      t.equal(listSent().has(`${NEW}: ${isOutage ? 'the address of your account was replaced' : 'your address is confirmed'}`), true, 'the other one is sent')
      t.equal(await count(), before + 1, 'the event is published')
      delete failing.error
      await settleMails(services)
      t.equal(listSent().get(`${OLD}: your password was changed`)?.length, isOutage ? 2 : 1, 'it is sent as soon as it can be stored')
      t.equal(await count(), before + 1, 'the event is there once')
    }
  })
}

const ENGINES: [name: string, url: (t: Test) => string, skip: string | false, most?: number][] = [
  ['SQLite', () => 'sqlite::memory:', IS_ELSEWHERE && 'another run has these'],
  ['MongoDB', (t) => createMongoDatabase(t, MONGODB_URL!), MONGODB_URL === undefined && 'MONGODB_URL is not set', 2]
]

for (const [name, url, skip, most] of ENGINES) {
  t.test(`on ${name}`, { skip }, async (t) => {
    const store = await openStore(url(t), { collections: COLLECTIONS, now: Date.now, onError: (error) => { throw error } })
    t.teardown(() => store.close())
    await checkAll(t, store, most)
  })
}
