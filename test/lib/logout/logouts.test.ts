import t, { type Test } from 'tap'
import { toTimestamp } from '../../../lib/clock.ts'
import type { SignLogout } from '../../../lib/logout/attempt.ts'
import { createLogouts } from '../../../lib/logout/logouts.ts'
import { EVENT_TYPES, type EventRecord, type EventType, type Happening } from '../../../lib/events/types.ts'
import { createAuthorizations } from '../../../lib/oidc/authorizations.ts'
import { type LogoutRecord, nameSid } from '../../../lib/logout/record.ts'
import { type OutboundAnswer, OutboundError, type OutboundRequest } from '../../../lib/outbound/fetcher.ts'
import { DEFAULT_ROLE_NAMES } from '../../../lib/roles.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'
import type { Document, Json } from '../../../lib/store/port.ts'
import { createTokens } from '../../../lib/tokens/tokens.ts'
import { createTestClock } from '../../../testing/clock.ts'
import { recordOutages } from '../../helpers/outages.ts'
import { Scheduler, exhaust } from '../../helpers/scheduler.ts'
import { createTimers } from '../../helpers/timers.ts'
import { type StoreCall, wrapStore } from '../../helpers/wrap-store.ts'

t.setTimeout(120_000)

const SECOND = 1_000
const MINUTE = 60 * SECOND
const USER = 'ann'

/** The events of changes that end all sessions of a user. */
const ENDINGS: EventType[] = [
  'user.password_changed', 'user.password_reset', 'user.migrated', 'user.disabled', 'user.sessions_ended', 'user.email_restored', 'user.email_released', 'user.deleted',
  'factor.undone', 'identity.linked', 'identity.unlinked', 'identity.replaced'
]

type Record_ = Document & { [field: string]: Json }

/** Signs a readable token, which consists of its subject. */
const sign: SignLogout = async ({ client_id, sid }) => ({ uri: `https://${client_id}.example/`, token: `${client_id} ${sid ?? 'all'}` })

async function open (t: Test, { answer = async () => ({ status: 200, time: 0 }) }: { answer?: (request: OutboundRequest) => Promise<OutboundAnswer> } = {}) {
  const clock = createTestClock()
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: clock.now })
  t.teardown(() => inner.close())
  const scheduler = new Scheduler()
  const timers = createTimers()
  const calls: StoreCall[] = []
  const store = wrapStore(inner, (call, run) => {
    calls.push(call)
    return scheduler.around(call, run)
  })
  const { outages, told } = recordOutages()
  const sent: string[] = []
  const failed: string[] = []
  const recorded: Happening[] = []
  const errors: unknown[] = []
  const create = () => createLogouts({
    store,
    now: clock.now,
    recorder: { insert: async (happening) => { recorded.push(happening) } },
    authorizations: createAuthorizations(store),
    async fetch (request) {
      sent.push(new URLSearchParams(request.body).get('logout_token') ?? '')
      return await answer(request)
    },
    outages,
    report: () => (error) => { errors.push(error) },
    onFailed: ({ client_id, attempts, failure }) => { failed.push(`${client_id} ${attempts} ${failure}`) },
    timers
  })
  const logouts = create()
  t.teardown(() => logouts.close())
  const tokens = createTokens({ store, now: clock.now, roles: DEFAULT_ROLE_NAMES, recorder: { end: async () => {} }, report: () => (error) => { errors.push(error) }, logouts })
  const records = (name: string) => inner.collection<Record_>(name)
  const at = () => ({ created_at: toTimestamp(clock.now()), expired_at: toTimestamp(clock.now() + 60 * MINUTE) })
  return {
    clock,
    scheduler,
    calls,
    sent,
    failed,
    told,
    recorded,
    errors,
    logouts,
    tokens,
    records,
    create,
    deliveries: inner.collection<LogoutRecord>('logouts'),
    addUser: async () => await records('users').put({ id: USER, epoch: 0 }),
    addClient: async (id: string, backchannelLogoutUri?: string, fields: { userId?: string, first_party?: boolean } = {}) => await records('clients').put({
      id, userId: USER, name: id, epoch: 0, redirectUris: [], scopes: [], ...fields, ...(backchannelLogoutUri !== undefined && { backchannelLogoutUri, backchannel: true })
    }),
    /** A browser's sign-in session, with a grant at each client. */
    async signIn (uid: string, clients: string[], { user_epoch = 0, grants = true, session = true } = {}): Promise<void> {
      const authorizations = Object.fromEntries(clients.map((id) => [id, { grantId: `${uid} ${id}` }]))
      if (session) await records('sign_in_sessions').put({ id: `hash of ${uid}`, uid, user_id: USER, user_epoch, ...at(), payload: { authorizations } })
      if (grants) for (const client_id of clients) await records('grants').put({ id: `${uid} ${client_id}`, user_id: USER, client_id, user_epoch, client_epoch: 0, session_uid: uid, bound: true, ...at() })
    },
    async reset (): Promise<void> {
      for (const { name } of COLLECTIONS) await records(name).deleteMany({ before: { id: '~' } })
      calls.length = 0
      // What was counted.
      timers.advance(2 * SECOND)
    },
    async list (): Promise<LogoutRecord[]> {
      return (await Array.fromAsync(inner.collection<LogoutRecord>('logouts').stream())).flat()
    }
  }
}

type Setting = Awaited<ReturnType<typeof open>>

/** Increments the user's epoch, and deletes the tokens like the services that do so. */
async function endAll ({ records, tokens }: Setting): Promise<void> {
  const user = await records('users').update(USER, { increment: { epoch: 1 } })
  tokens.deleteOfUser(USER, user!.epoch as number)
  await tokens.settle()
}

const isRemoval = ({ collection, method }: StoreCall) => ['grants', 'sign_in_sessions'].includes(collection) && method.startsWith('delete')

/** What the calls did before the deliveries were stored. */
const isToldFirst = (calls: StoreCall[]) => {
  const [told, removed] = [calls.findIndex(({ collection, method }) => collection === 'logouts' && method === 'insert'), calls.findIndex(isRemoval)]
  return told >= 0 && (removed < 0 || told < removed)
}

interface Race {
  actors: (setting: Setting) => Record<string, () => Promise<unknown>>
  /** The collections where the order of calls decides. */
  shared: string[]
  signIn?: { grants?: boolean, session?: boolean }
  least: number
  /** The logouts that are stored. */
  outcomes: string[]
}

const RACES: Record<string, Race> = {
  'two sign-outs of one session': {
    actors: ({ tokens }) => ({ one: async () => await tokens.endSignIn('s'), two: async () => await tokens.endSignIn('s') }),
    shared: ['sign_in_sessions', 'logouts'],
    least: 67,
    outcomes: ['app session']
  },
  'two changes of the user, which sessions name': {
    actors: (setting) => ({ one: async () => await endAll(setting), two: async () => await endAll(setting) }),
    shared: ['sign_in_sessions', 'logouts'],
    signIn: { grants: false },
    least: 43,
    outcomes: ['app 1']
  },
  'two changes of the user, which grants name': {
    actors: (setting) => ({ one: async () => await endAll(setting), two: async () => await endAll(setting) }),
    shared: ['grants', 'logouts'],
    signIn: { session: false },
    least: 400,
    outcomes: ['app 1']
  },
  'a change, and whoever makes up for a crash': {
    actors: (setting) => ({ one: async () => await endAll(setting), two: async () => await setting.logouts.enqueueForUser(USER, 1) }),
    shared: ['sign_in_sessions', 'grants', 'logouts'],
    least: 80,
    outcomes: ['app 1']
  },
  'a sign-out and a change: two ends': {
    actors: (setting) => ({ one: async () => await setting.tokens.endSignIn('s'), two: async () => await endAll(setting) }),
    shared: ['sign_in_sessions', 'logouts'],
    signIn: { grants: false },
    least: 35,
    // Of two ends, the second may find nothing more.
    outcomes: ['app 1', 'app 1,app session', 'app session']
  }
}

for (const [name, { actors, outcomes, least, shared, signIn }] of Object.entries(RACES)) {
  t.test(`${name}: each client is notified once of each end, in every order, before its records are removed`, async (t) => {
    const setting = await open(t)
    const { scheduler, reset, addUser, addClient, list, calls, errors } = setting
    const begun = new WeakSet<object>()
    scheduler.isShared = ({ collection, method, args }) => {
      // Counts decide about capacity only, and these lists have one batch.
      if (!shared.includes(collection) || method === 'count' || method === 'return' || begun.has(args)) return false
      if (method === 'next') begun.add(args)
      return true
    }
    const wrong = new Set<string>()
    await exhaust({ least, outcomes }, async (choose) => {
      await reset()
      await addUser()
      await addClient('app', 'https://app.example/')
      await addClient('deaf')
      await setting.signIn('s', ['app', 'deaf'], signIn)
      calls.length = 0
      await scheduler.run(actors(setting), choose)
      await setting.tokens.settle()
      if (!isToldFirst(calls)) wrong.add('forgotten before it was told')
      return (await list()).map(({ client_id, epoch }) => `${client_id} ${epoch ?? 'session'}`).sort().join()
    })
    t.same([...wrong], [])
    t.same(errors, [])
  })
}

t.test('a crash after the decisive write loses nothing, and the repair may run again', async (t) => {
  const { logouts, addUser, addClient, signIn, records, list, clock, sent, deliveries } = await open(t)
  await addUser()
  for (const id of ['app', 'other']) await addClient(id, `https://${id}.example/`)
  await signIn('s', ['app', 'other'])
  await records('users').update(USER, { increment: { epoch: 1 } })
  for (let count = 0; count < 3; count++) await logouts.enqueueForUser(USER, 1)
  t.equal((await list()).length, 2)
  logouts.attach(sign)
  await logouts.flush()
  t.same(sent, [], 'whoever made the change may still come')
  clock.advance(10 * SECOND)
  await logouts.flush()
  t.same(sent.sort(), ['app all', 'other all'])
  await logouts.enqueueForUser(USER, 1)
  clock.advance(60 * MINUTE)
  await logouts.flush()
  t.equal(sent.length, 2, 'delivered, and remembered')
  t.equal(await deliveries.count({ equal: { state: 'done' } }), 2)
})

t.test('the event of a change that has ended sessions makes up for a crash, and no other event looks for apps', async (t) => {
  const { logouts, reset, addUser, addClient, signIn, records, list, calls } = await open(t)
  for (const type of Object.keys(EVENT_TYPES) as EventType[]) {
    await reset()
    await addUser()
    await addClient('app', 'https://app.example/')
    await signIn('s', ['app'])
    if (type === 'user.deleted') await records('users').delete(USER)
    else await records('users').update(USER, { increment: { epoch: 1 } })
    calls.length = 0
    await logouts.handlers[type]?.({ type, user: USER } as EventRecord)
    if (ENDINGS.includes(type)) t.equal((await list()).length, 1, type)
    else t.equal(calls.length, 0, type)
  }
})

t.test('a session that goes on is not ended with the others, whoever looked first', async (t) => {
  const { logouts, addUser, addClient, signIn, records, clock, sent } = await open(t)
  await addUser()
  await addClient('app', 'https://app.example/')
  await signIn('kept', ['app'])
  await signIn('ended', ['app'])
  await records('users').update(USER, { increment: { epoch: 1 } })
  // Before the session is carried over.
  await logouts.enqueueForUser(USER, 1)
  await records('sign_in_sessions').update('hash of kept', { set: { user_epoch: 1 } })
  await logouts.enqueueForUser(USER, 1, { atOnce: true })
  logouts.attach(sign)
  await logouts.flush()
  t.same(sent, [`app ${nameSid('ended', 'app')}`])
  // Nor a sign-in after the change, when the receiver was down.
  await signIn('s', ['app'], { user_epoch: 1 })
  await records('users').update(USER, { increment: { epoch: 1 } })
  await logouts.enqueueForUser(USER, 2)
  await records('sign_in_sessions').deleteMany({ equal: { user_id: USER } })
  await records('grants').deleteMany({ equal: { user_id: USER } })
  await signIn('fresh', ['app'], { user_epoch: 2 })
  sent.length = 0
  clock.advance(10 * SECOND)
  await logouts.flush()
  t.same(sent.sort(), ['s', 'kept'].map((uid) => `app ${nameSid(uid, 'app')}`).sort())
})

t.test('of many ended sessions one token ends all', async (t) => {
  const { tokens, logouts, addUser, addClient, signIn, sent, ...setting } = await open(t)
  await addUser()
  await addClient('app', 'https://app.example/')
  for (let count = 0; count < 25; count++) await signIn(`s${count}`, ['app'])
  await signIn('fresh', ['app'], { user_epoch: 1 })
  logouts.attach(sign)
  await endAll({ tokens, logouts, ...setting } as Setting)
  await logouts.flush()
  t.same(sent, ['app all'])
})

t.test('a client that was disabled, deleted or lost its URL meanwhile is not notified', async (t) => {
  const { logouts, tokens, addUser, addClient, signIn, records, sent, list } = await open(t)
  await addUser()
  for (const id of ['app', 'disabled', 'deleted']) await addClient(id, `https://${id}.example/`)
  await signIn('s', ['app', 'disabled', 'deleted', 'unknown'])
  await records('clients').update('disabled', { set: { disabled_at: toTimestamp(0) } })
  await tokens.endSignIn('s')
  t.same((await list()).map(({ client_id }) => client_id).sort(), ['app', 'deleted'])
  logouts.attach(async (claims) => claims.client_id === 'deleted' ? null : await sign(claims))
  await logouts.flush()
  t.same(sent, [`app ${nameSid('s', 'app')}`])
  t.ok((await list()).every(({ state }) => state === 'done'))
})

t.test('without a client to notify, a change costs one look-up by an index', async (t) => {
  const setting = await open(t)
  const { addUser, addClient, signIn, calls } = setting
  await addUser()
  await addClient('deaf')
  await signIn('s', ['deaf'])
  calls.length = 0
  await endAll(setting)
  const lists = calls.filter(({ method }) => method === 'page').map(({ collection, args }) => [collection, args[0]])
  t.strictSame(lists[0], ['clients', { filter: { equal: { backchannel: true } }, urgent: true, limit: 1 }])
  t.equal(lists.filter(([collection]) => collection === 'clients').length, 1)
  t.equal(lists.filter(([collection]) => collection === 'sign_in_sessions').length, 1, 'which is the removal')
  t.notOk(calls.some(({ collection }) => collection === 'logouts'))
})

t.test('200 and 204 are success; temporary failures are retried on a schedule, and all others are final', async (t) => {
  const refuse = (code: string) => async () => { throw new OutboundError(code) }
  const answers: Record<string, () => Promise<OutboundAnswer>> = {}
  for (const status of [200, 204, 202, 301, 400, 404, 410, 408, 429, 500, 503]) answers[`s${status}`] = async () => ({ status, time: 1, ...(status === 503 && { retryAfter: 10 * MINUTE }) })
  for (const code of ['EREFUSED', 'ETIMEDOUT', 'ECONNREFUSED']) answers[code] = refuse(code)
  const { logouts, tokens, addUser, addClient, signIn, clock, sent, failed, told } = await open(t, {
    answer: async ({ url }) => await answers[Object.keys(answers).find((id) => id.toLowerCase() === new URL(url).hostname.split('.')[0]) ?? '']!()
  })
  await addUser()
  for (const id of Object.keys(answers)) await addClient(id, `https://${id}.example/`)
  await signIn('s', Object.keys(answers))
  logouts.attach(sign)
  await tokens.endSignIn('s')
  await logouts.flush()
  t.same(failed.sort(), ['s202 1 202', 's301 1 301', 's400 1 400', 's404 1 404', 's410 1 410'])
  const attempts = new Map<string, number[]>()
  const count = (minute: number) => {
    for (const token of sent.splice(0)) {
      const [client = ''] = token.split(' ')
      attempts.set(client, [...attempts.get(client) ?? [], minute])
    }
  }
  count(0)
  failed.length = 0
  for (let quarter = 1; quarter <= 4 * 60 * 3; quarter++) {
    clock.advance(15 * SECOND)
    await logouts.flush()
    count(quarter / 4)
  }
  const schedule = [0, 0.25, 1.25, 6.25, 21.25, 51.25, 111.25]
  for (const id of ['s408', 's429', 's500', 'EREFUSED', 'ETIMEDOUT', 'ECONNREFUSED']) t.strictSame(attempts.get(id), schedule, id)
  t.strictSame(attempts.get('s503'), [0, 10, 20, 30, 45, 75], 'Retry-After is heeded, within two hours')
  for (const id of ['s200', 's204', 's400']) t.strictSame(attempts.get(id), [0], id)
  t.strictSame(told.map((line) => line.split(':')[0]).sort(), Object.keys(answers).filter((id) => id !== 's200' && id !== 's204').map((id) => `logout ${id}`).sort(), 'one line for each app, whatever fails meanwhile')
  t.same(failed.sort(), ['ECONNREFUSED 7 ECONNREFUSED', 'EREFUSED 7 EREFUSED', 'ETIMEDOUT 7 ETIMEDOUT', 's408 7 408', 's429 7 429', 's500 7 500', 's503 6 503'])
})

t.test('a receiver that hangs takes two slots, and other owners are notified', async (t) => {
  const hanging = Promise.withResolvers<OutboundAnswer>()
  const told = Promise.withResolvers<void>()
  const { logouts, tokens, addUser, addClient, signIn, sent, deliveries } = await open(t, {
    async answer ({ url, signal }) {
      if (!url.includes('slow')) {
        told.resolve()
        return { status: 200, time: 0 }
      }
      signal?.addEventListener('abort', () => hanging.reject(new OutboundError('EABORTED')))
      return await hanging.promise
    }
  })
  await addUser()
  await addClient('slow', 'https://slow.example/')
  await addClient('quick', 'https://quick.example/', { userId: 'bob' })
  logouts.attach(sign)
  for (let count = 0; count < 30; count++) {
    await signIn(`s${count}`, ['slow'])
    await tokens.endSignIn(`s${count}`)
  }
  await signIn('s', ['quick'])
  await tokens.endSignIn('s')
  await told.promise
  t.equal(sent.filter((token) => token.startsWith('slow')).length, 2)
  t.equal(await deliveries.count({ equal: { state: 'due', client_id: 'slow' } }), 30)
  hanging.resolve({ status: 200, time: 0 })
  await logouts.settle()
  t.equal(await deliveries.count({ equal: { state: 'done' } }), 31)
})

t.test('a hundred receivers that hang take two slots of their owner, and sixteen such owners none of the operator', async (t) => {
  const waiting = Promise.withResolvers<OutboundAnswer>()
  const { logouts, tokens, addUser, addClient, signIn, sent } = await open(t, {
    answer: async ({ url }) => url.includes('hang') ? await waiting.promise : { status: 200, time: 0 }
  })
  await addUser()
  logouts.attach(sign)
  const isTold = async (id: string) => {
    for (let turn = 0; turn < 200 && !sent.includes(`${id} ${nameSid(id, id)}`); turn++) await new Promise(setImmediate)
    return sent.includes(`${id} ${nameSid(id, id)}`)
  }
  const signOut = async (uid: string, clients: string[]) => {
    await signIn(uid, clients)
    await tokens.endSignIn(uid)
  }
  const hang = async (owner: string, count: number) => {
    const clients = Array.from({ length: count }, (_, number) => `hang-${owner}-${number}`)
    for (const id of clients) await addClient(id, `https://${id}.example/`, { userId: owner })
    await signOut(owner, clients)
  }
  await hang('mallory', 100)
  await addClient('bob', 'https://bob.example/', { userId: 'bob' })
  await signOut('bob', ['bob'])
  t.ok(await isTold('bob'), "another user's client")
  for (let number = 0; number < 16; number++) await hang(`mallory${number}`, 3)
  for (const id of ['bank', 'shop']) {
    await addClient(id, `https://${id}.example/`, { first_party: true })
    await signOut(id, [id])
    t.ok(await isTold(id), 'a client that the operator vouches for')
  }
  t.equal(sent.filter((token) => token.startsWith('hang')).length, 4, 'the slots of everybody')
  waiting.resolve({ status: 200, time: 0 })
  await logouts.settle()
})

t.test('after a receiver timed out, its other deliveries wait for the next attempt', async (t) => {
  const { logouts, tokens, addUser, addClient, signIn, sent, clock } = await open(t, {
    answer: async () => { throw new OutboundError('ETIMEDOUT') }
  })
  await addUser()
  await addClient('slow', 'https://slow.example/')
  for (let count = 0; count < 20; count++) {
    await signIn(`s${count}`, ['slow'])
    await tokens.endSignIn(`s${count}`)
  }
  logouts.attach(sign)
  await logouts.flush()
  t.ok(sent.length <= 2, 'the attempts of its lane that had begun')
  clock.advance(14 * SECOND)
  await logouts.flush()
  t.ok(sent.length <= 2)
  clock.advance(SECOND)
  await logouts.flush()
  t.ok(sent.length > 2)
})

t.test('too many due deliveries of an owner are not stored, and sign-outs still succeed', async (t) => {
  const { tokens, logouts, addUser, addClient, signIn, failed, records, deliveries, clock } = await open(t)
  await addUser()
  await addClient('slow', 'https://slow.example/')
  await addClient('quick', 'https://quick.example/', { userId: 'bob' })
  for (let count = 0; count < 1_000; count++) {
    const time = toTimestamp(clock.now())
    await records('logouts').insert({ id: `of slow ${count}`, state: 'due', due_at: time, claim: 0, client_id: `slow ${count}`, owner: USER, expired_at: toTimestamp(clock.now() + MINUTE) })
  }
  await signIn('s', ['slow', 'quick'])
  await tokens.endSignIn('s')
  t.same(failed, ['slow 0 BUSY'])
  t.equal(await deliveries.count({ equal: { client_id: 'quick' } }), 1)
  t.equal(await records('sign_in_sessions').count(), 0)
  t.ok(logouts)
})

t.test('an operator retries a failed delivery, for two hours more', async (t) => {
  let status = 404
  const { logouts, tokens, addUser, addClient, signIn, clock, sent, recorded, list } = await open(t, { answer: async () => ({ status, time: 0 }) })
  await addUser()
  await addClient('app', 'https://app.example/')
  await signIn('s', ['app'])
  logouts.attach(sign)
  await tokens.endSignIn('s')
  await logouts.flush()
  const [{ id } = { id: '' }] = await list()
  t.match(await Array.fromAsync(logouts.list('failed')), [[{ id, failure: '404', attempts: 1 }]])
  t.strictSame(recorded, [])
  clock.advance(20 * 60 * MINUTE)
  status = 503
  await logouts.retry(id)
  await logouts.flush()
  t.match(await list(), [{ state: 'due', attempts: 1, ends_at: toTimestamp(clock.now() + 120 * MINUTE), expired_at: toTimestamp(clock.now() + 26 * 60 * MINUTE) }])
  t.notOk('failure' in (await list())[0]!)
  t.strictSame(recorded, [{ type: 'logout.retried', id, user_id: USER, client_id: 'app' }])
  await t.rejects(logouts.retry('unknown'), { code: 'ErrNotFound', message: 'id: no such failed logout' })
  status = 200
  await logouts.retry(id)
  await logouts.flush()
  t.equal(sent.length, 3, 'what waits for its next attempt too')
  t.match(await list(), [{ state: 'done', attempts: 2 }])
  t.equal(recorded.length, 2)
  await t.rejects(logouts.retry(id), { code: 'ErrNotFound' }, 'what is done is not repeated')
})
