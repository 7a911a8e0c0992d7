import t from 'tap'
import { storeError } from '../../../lib/errors.ts'
import { createRelay } from '../../../lib/events/relay.ts'
import type { UserRecord } from '../../../lib/records/user.ts'
import type { Change } from '../../../lib/store/port.ts'
import { race } from '../../helpers/race.ts'
import { Scheduler, exhaust } from '../../helpers/scheduler.ts'
import { openRules } from '../../helpers/services.ts'
import { isListing } from '../../helpers/wrap-store.ts'

t.setTimeout(180_000)

const ADMIN = { user_id: 'caller', isAdmin: true }

const scheduler = new Scheduler()
const everyCall: Scheduler['isShared'] = ({ collection }) => collection === 'users' || collection === 'meta'
/** Two requests about two users share the document and the list of administrators. Leaving at once is the worst moment to leave. */
const decisiveCall: Scheduler['isShared'] = ({ collection, method, args: [, change] }) =>
  (collection === 'users' && method !== 'get') || (collection === 'meta' && (change as Change | undefined)?.set !== undefined) || (collection === 'meta' && method !== 'update')
scheduler.isShared = everyCall
const { store, now, users, openAccounts, records, advance, errors } = await openRules(t, { around: scheduler.around })
const accounts = openAccounts({ signUp: false }, { report: () => (error) => { errors.push(error) } })

const isActive = ({ roles, disabled_at, expired_at }: UserRecord) =>
  roles.admin !== undefined && disabled_at === undefined && (expired_at === undefined || Date.parse(expired_at) > now())

async function findAdmins (): Promise<string[]> {
  const found: string[] = []
  for await (const batch of records.users.stream({ sort: [{ key: 'account', direction: 'asc' }] })) found.push(...batch.filter(isActive).map(({ account }) => account))
  return found
}

/** Administrators with these accounts, and nobody else. */
async function reset (...names: string[]): Promise<string[]> {
  for (const name of ['users', 'meta']) await store.collection(name).deleteMany({ before: { id: '~' } })
  return (await Promise.all(names.map((account) => users.create({ data: { account, password: 'p' } }, { roles: { admin: true } })))).map(({ user_id }) => user_id)
}

/** The ways to take an administrator away. */
const ROADS: Record<string, (user_id: string) => Promise<unknown>> = {
  'a deletion': async (user_id) => await users.remove(user_id, ADMIN),
  'other roles': async (user_id) => await users.patch(user_id, { data: { roles: { editor: true } } }, ADMIN),
  'the command that removes a role': async (user_id) => await users.changeRoles(user_id, () => ({}), ADMIN),
  'disabling them': async (user_id) => await users.patch(user_id, { disable: true }, ADMIN),
  'their own deletion': async (user_id) => await accounts.deleteOwn(user_id)
}

for (const [road, take] of Object.entries(ROADS)) {
  t.test(`${road} takes away any administrator but the last one`, async (t) => {
    const [one = '', two = ''] = await reset('one', 'two')
    await users.create({ data: { account: 'plain', password: 'p' } })
    await take(one)
    t.strictSame(await findAdmins(), ['two'])
    await t.rejects(take(two), { code: 'ErrPerm', message: /: the last administrator cannot / })
    t.strictSame(await findAdmins(), ['two'])
    await users.create({ data: { account: 'three', password: 'p' } }, { roles: { admin: true } })
    await take(two)
    t.strictSame(await findAdmins(), ['three'])
  })
}

t.test('whoever is disabled, expired or no administrator does not count, and may always go', async (t) => {
  const [last = '', disabled = '', expired = ''] = await reset('last', 'disabled', 'expired')
  await users.patch(disabled, { disable: true }, ADMIN)
  await records.users.update(expired, { set: { expired_at: new Date(now() + 1_000).toISOString() } })
  await users.patch(last, { disable: true }, ADMIN)
  t.strictSame(await findAdmins(), ['expired'], 'one who will expire counts until then')
  await t.rejects(users.patch(expired, { disable: true }, ADMIN), { code: 'ErrPerm' })
  await users.patch(last, { disable: false }, ADMIN)
  advance(1_001)
  await t.rejects(users.patch(last, { disable: true }, ADMIN), { code: 'ErrPerm', message: 'disable: the last administrator cannot be disabled' })
  await t.rejects(users.patch(last, { data: { roles: {} } }, ADMIN), { code: 'ErrPerm', message: 'roles: the last administrator cannot lose the role admin' })
  await users.remove(disabled, ADMIN)
  await users.remove(expired, ADMIN)
  await users.patch(last, { data: { roles: { admin: { region: 'all' }, editor: true } } }, ADMIN)
  await t.rejects(users.remove(last, ADMIN), { code: 'ErrPerm' })
  for (const take of [ROADS['a deletion']!, ROADS['disabling them']!]) {
    const { user_id } = await users.create({ data: { account: 'plain', password: 'p' } })
    await take(user_id)
    await users.remove(user_id, ADMIN).catch(() => {})
  }
})

t.test('with force the last administrator goes too', async (t) => {
  const forced = { ...ADMIN, isForced: true }
  for (const take of [
    async (user_id: string) => await users.remove(user_id, forced),
    async (user_id: string) => await users.patch(user_id, { disable: true }, forced),
    async (user_id: string) => { await users.changeRoles(user_id, () => ({}), forced) }
  ]) {
    const [one = ''] = await reset('one')
    await take(one)
    t.strictSame(await findAdmins(), [])
  }
})

t.test('no road reads users who are no administrators', async (t) => {
  const [one = '', two = ''] = await reset('one', 'two')
  for (let number = 0; number < 150; number++) await users.create({ data: { account: `plain-${number}`, password: 'p' } })
  for (const take of Object.values(ROADS)) {
    await scheduler.run({ actor: async () => { await take(one).catch(() => {}) } }, () => 0)
    const batches = scheduler.log.filter(({ collection, method }) => collection === 'users' && method === 'next')
    t.ok(batches.every(({ args }) => (args[0] as { filter?: { equal?: object } }).filter?.equal !== undefined && Object.hasOwn((args[0] as { filter: { equal: object } }).filter.equal, 'administers')))
    t.ok(batches.length <= 4)
    await users.create({ data: { account: 'again', password: 'p' } }, { roles: { admin: true } }).catch(() => {})
  }
  t.ok(two)
})

t.test('a deletion looks at the token of the caller again, and withdraws if it was revoked', async (t) => {
  const [one = '', two = ''] = await reset('one', 'two')
  const confirm = async () => { throw Object.assign(new Error('revoked'), { code: 'ErrUnknown' }) }
  await t.rejects(users.remove(one, { ...ADMIN, confirm }), { code: 'ErrUnknown' })
  t.strictSame(await findAdmins(), ['one', 'two'])
  await users.remove(two, ADMIN)
  t.strictSame(await findAdmins(), ['one'], 'nobody counts as leaving any more')
})

t.test('a request that takes too long starts again, and sees that its administrator is the last one', async (t) => {
  const [one = '', two = ''] = await reset('one', 'two')
  let isFirst = true
  const confirm = async () => {
    if (!isFirst) return
    isFirst = false
    advance(59_000)
    await t.rejects(users.remove(two, ADMIN), { code: 'ErrPerm' }, 'the other one is leaving')
    advance(1_001)
    await users.remove(two, ADMIN)
  }
  await t.rejects(users.remove(one, { ...ADMIN, confirm }), { code: 'ErrPerm' })
  t.strictSame(await findAdmins(), ['one'])
  t.same(Object.keys((await store.collection('meta').get('administrators'))!).sort(), ['id', 'revision'], 'nothing of it is left')
})

t.test('after a failure of the store an administrator counts as leaving for a minute, because the write may happen yet', async (t) => {
  const [one = '', two = ''] = await reset('one', 'two')
  scheduler.interrupt = ({ collection, method }) => { if (collection === 'users' && method === 'delete') throw storeError(new Error('no answer')) }
  await scheduler.run({ actor: async () => { await t.rejects(users.remove(one, ADMIN), { code: 'ErrDb' }) } }, () => 0)
  scheduler.interrupt = () => {}
  await t.rejects(users.remove(two, ADMIN), { code: 'ErrPerm' })
  const { revision } = (await records.users.get(one))!
  advance(60_001)
  await users.remove(two, ADMIN)
  t.notOk(await records.users.delete(one, { equal: { revision } }), 'the late write has no effect')
  t.strictSame(await findAdmins(), ['one'])
})

t.test('an administrator whose deletion gave up counts again at once', async (t) => {
  const [one = '', two = ''] = await reset('one', 'two')
  const confirm = async () => { await records.users.update(one, { increment: { revision: 1 } }) }
  await t.rejects(users.remove(one, { ...ADMIN, confirm }), { code: 'ErrBusy' })
  await users.remove(two, ADMIN)
  t.strictSame(await findAdmins(), ['one'])
})

/** Deletes users with their events, as the service does. */
const deleteOwn = async (user_id: string) => await accounts.deleteOwn(user_id)

const withEvents: Scheduler['isShared'] = (call) => decisiveCall(call) || (call.collection === 'event_inbox' && !isListing(call.method))

const connectRelay = () => createRelay({
  store, now: () => now() + 20_000, days: 1, onPublished: () => {}, onError: (error) => { t.fail(String(error)) }
})

t.test('a process that is killed while it deletes an administrator, and a relay that runs long after, leave one', async (t) => {
  t.teardown(() => { scheduler.isShared = everyCall })
  scheduler.isShared = (call) => everyCall(call) || call.collection === 'event_inbox'
  const stays = new Set<string>()
  for (let call = 0, isOver = false; !isOver; call++) {
    const [one = '', two = ''] = await reset('one', 'two')
    let count = 0
    scheduler.interrupt = () => { if (count++ >= call) throw storeError(new Error('killed')) }
    await scheduler.run({ actor: async () => { await deleteOwn(one) } }, () => 0)
    isOver = count < call
    scheduler.interrupt = () => {}
    advance(60_001)
    await deleteOwn(two).catch(() => {})
    const relay = connectRelay()
    await relay.flush()
    await relay.flush()
    await relay.close()
    stays.add((await findAdmins()).join())
  }
  t.same([...stays], ['one', 'two'])
  // Of the killed process.
  errors.length = 0
})

t.test('of two administrators who are deleted at once, beside a relay that withdraws deletions, one stays, in random orders', async (t) => {
  t.teardown(() => { scheduler.isShared = everyCall })
  scheduler.isShared = withEvents
  await exhaust({ least: 80, most: 0, random: 100, outcomes: ['one', 'two'] }, async (choose) => {
    const [one = '', two = ''] = await reset('one', 'two')
    const relay = connectRelay()
    await scheduler.run({ one: async () => await deleteOwn(one), two: async () => await deleteOwn(two), relay: relay.flush }, choose)
    await relay.flush()
    await relay.close()
    return (await findAdmins()).join()
  })
})

interface Setting {
  least: number
  outcomes: string[]
  isShared?: Scheduler['isShared']
  isFirst?: boolean
}

/** Runs two actors in every order; `roads` are theirs. */
async function play (name: string, roads: [string, string], pick: (admins: string[]) => string[], { isShared = decisiveCall, isFirst = false, ...expected }: Setting): Promise<void> {
  await t.test(name, async (t) => {
    t.teardown(() => { scheduler.isShared = everyCall })
    scheduler.isShared = isShared
    await race(t, scheduler, { ...expected, refusals: ['ErrPerm', 'ErrNotFound'] }, async () => {
      const targets = pick(await reset('one', 'two'))
      if (!isFirst) await store.collection('meta').insert({ id: 'administrators', revision: 0 } as never)
      return {
        actors: Object.fromEntries(targets.map((target, index) => [`actor ${index}`, async () => await ROADS[roads[index]!]!(target)])),
        async check () {
          const { length } = await findAdmins()
          return length === 1 ? undefined : `${length} stay`
        }
      }
    })
  })
}

const BOTH = (admins: string[]): string[] => admins
const SAME = ([one = '']: string[]): string[] => [one, one]

await play('of two administrators who delete each other at once, one stays, in every order', ['a deletion', 'a deletion'], BOTH, { least: 35, outcomes: ['actor 0', 'actor 1'] })
await play('of two who demote each other at once, one stays', ['other roles', 'other roles'], BOTH, { least: 35, outcomes: ['actor 0', 'actor 1'] })
await play('of two of whom one is deleted and one is disabled at once, one stays', ['a deletion', 'disabling them'], BOTH, { least: 35, outcomes: ['actor 0', 'actor 1'] })
await play('of two who demote each other first of all, one stays', ['other roles', 'other roles'], BOTH, { isFirst: true, least: 308, outcomes: ['actor 0', 'actor 1'] })
await play('two requests that take away the same administrator leave the other one', ['other roles', 'disabling them'], SAME, { least: 48, outcomes: ['actor 0, actor 1'] })
t.same(errors, [])
