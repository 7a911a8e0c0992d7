import t from 'tap'
import { createAccounts } from '../../../lib/accounts/index.ts'
import { createTickets, toHolder } from '../../../lib/accounts/tickets.ts'
import { createSecretBox, generateSecretKey } from '../../../lib/crypto/secrets.ts'
import { type UserRecord, createUserRecord } from '../../../lib/records.ts'
import { DEFAULT_ROLE_NAMES as roles } from '../../../lib/roles.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'
import type { Json } from '../../../lib/store/port.ts'
import { createIdentities } from '../../../lib/upstreams/identities.ts'
import { createStoredUsers } from '../../../lib/users/stored-users.ts'
import type { CredentialRecord } from '../../../lib/way.ts'
import { hashToken } from '../../../lib/crypto/random-token.ts'
import { createWays } from '../../../lib/ways/ways.ts'
import { DEFAULT_POLICY } from '../../../lib/ways/words.ts'
import type { Upstream } from '../../../schemas/upstream.ts'
import { createSilentRecorder } from '../../helpers/events.ts'
import { Scheduler, createRandom, exhaust } from '../../helpers/scheduler.ts'
import { PLAIN_PASSWORDS } from '../../helpers/services.ts'
import { wrapStore } from '../../helpers/wrap-store.ts'

const NOW = Date.parse('2126-11-23T00:00:00.000Z')
const TIME = new Date(NOW).toISOString()
const MOST_ORDERS = 20_000
const RANDOM_ORDERS = 300

t.setTimeout(600_000)

const scheduler = new Scheduler()
const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS })
t.teardown(() => inner.close())
const store = wrapStore(inner, scheduler.around)
const [users, credentials] = [inner.collection<UserRecord>('users'), inner.collection<CredentialRecord>('credentials')]
const fail = (error: unknown) => { throw error }
const now = () => NOW
const tokens = { deleteOfUser: () => {} }
const recorder = createSilentRecorder(store)
const policy = { ...DEFAULT_POLICY, allowsUpstream: () => true }
const ways = createWays({ store, now, recorder, tokens, policy, onError: fail })
const stored = createStoredUsers({ store, now, role: roles.admin, recorder, tokens, onRemove: async () => {}, onError: fail })
const accounts = createAccounts({
  store,
  stored,
  now,
  roles,
  recorder,
  ways,
  passwords: PLAIN_PASSWORDS,
  clients: { removeOwned: async () => [] } as never,
  box: createSecretBox(generateSecretKey()),
  checkNewPassword: async (password) => password,
  openPassword: async () => {},
  findPlace: () => ({}),
  counter: { count: async () => ({ current: 1, ttl: 1 }) },
  onMailFailed: () => {},
  onError: fail
}, { signUp: true, selfDelete: false, accountPath: '/account' })
const identities = createIdentities({ now, roles, stored, ways, accounts, failures: { recordIdentity: () => {} }, findOnly: () => undefined, signUp: true })

const upstream: Upstream = { id: 'corp', kind: 'oidc', issuer: 'https://corp.example', emails: 'verified', clientId: 'c', clientSecret: 's', create: true, link: 'verified', sync: 'first' }
const proven = { upstream, claimed: { issuer: 'https://corp.example', subject: 'one', address: 'ann@example.com', name: '', both: false } }
const { address: _address, ...unproved } = proven.claimed

async function empty (): Promise<void> {
  await credentials.deleteMany({ before: { id: '~' } })
  await users.deleteMany({ before: { id: '~' } })
  await inner.collection('tickets').deleteMany({ before: { id: '~' } })
}

const tickets = createTickets({ store: inner, now })
const who = (subject: string) => ({ upstream, claimed: { ...unproved, subject } })

/** The user `ann`, who was invited, and the link. */
async function invite (id = 'ann'): Promise<string> {
  const account = `${id}@example.com`
  const user = createUserRecord(NOW, { id, account, password: '', roles: {}, name: '', info: {}, invited_at: TIME })
  await users.insert(user)
  return await tickets.issue({ purpose: 'invite', ...toHolder(user), mailed: true, address: account })
}

async function tryOrders (prepare: () => Promise<Record<string, () => Promise<unknown>>>, check: (succeeded: string[], order: string[]) => Promise<string | undefined>) {
  const problems: string[] = []
  const run = async (choose: (count: number) => number) => {
    const succeeded: string[] = []
    const actors = Object.entries(await prepare()).map(([name, act]) => [name, async () => { await act(); succeeded.push(name) }] as const)
    await scheduler.run(Object.fromEntries(actors), choose)
    const order = scheduler.log.map(({ actor, collection, method }) => `${actor}: ${collection}.${method}`)
    const problem = await check(succeeded.sort(), order)
    if (problem !== undefined && problems.length < 3) problems.push(`${problem}\n${order.join('\n')}`)
  }
  const { complete } = await exhaust({ least: 1, most: MOST_ORDERS }, run)
  if (!complete) for (let seed = 0; seed < RANDOM_ORDERS; seed++) await run(createRandom(seed))
  return { complete, problems }
}

scheduler.isShared = ({ collection, method }) => collection === 'users' || (collection === 'credentials' && method !== 'next')

async function listAll <T extends { id: string }> (collection: { stream (): AsyncIterable<T[]> }): Promise<T[]> {
  const found: T[] = []
  for await (const batch of collection.stream()) found.push(...batch)
  return found
}

t.test('two first sign-ins with one identity make one account, in every order', async (t) => {
  const { complete, problems } = await tryOrders(
    async () => {
      await empty()
      return Object.fromEntries(['one', 'two'].map((account) => [account, async () => await identities.create({ upstream, claimed: unproved }, account)]))
    },
    async (succeeded) => {
      const [holders, material] = [await listAll(users), await listAll(credentials)]
      if (holders.length !== 1) return `${holders.length} accounts`
      if (succeeded.length !== 2) return `${succeeded.join()} signed in`
      return material.length === 1 && holders[0]!.ways?.[material[0]!.id] !== undefined ? undefined : `${material.length} credentials`
    }
  )
  t.ok(complete)
  t.strictSame(problems, [])
})

// The rule is decided on the record that the write replaces, and not on the one that was read before.
t.test('an identity never joins by itself an account that has got a role or lost its address, in every order', async (t) => {
  for (const change of [{ roles: { admin: true } }, { email: 'other@example.com', addresses: ['ann@example.com', 'other@example.com'] }, { disabled_at: TIME }] as Record<string, Json>[]) {
    const { problems } = await tryOrders(
      async () => {
        await empty()
        await users.insert(createUserRecord(NOW, { id: 'ann', account: 'ann@example.com', email: 'ann@example.com', email_verified_at: TIME, roles: {}, password: 'x', name: '', info: {} }))
        return {
          person: async () => { if (!('proved' in await identities.settle(proven))) throw new Error('asked') },
          admin: async () => await stored.changeUser('ann', () => ({ set: change }))
        }
      },
      async (succeeded, order) => {
        if (!succeeded.includes('admin')) return 'the administrator was kept from it'
        const isLinked = Object.keys((await users.get('ann'))?.ways ?? {}).length > 0
        if (isLinked !== succeeded.includes('person')) return 'linked, and not told so'
        return isLinked && order.lastIndexOf('admin: users.update') < order.lastIndexOf('person: users.update') ? 'linked after the change' : undefined
      }
    )
    t.strictSame(problems, [], Object.keys(change)[0]!)
  }
})

t.test('an invitation is completed once: by one of two identities, or by a password, in every order', async (t) => {
  for (const others of [['two'], ['password']]) {
    const { complete, problems } = await tryOrders(
      async () => {
        await empty()
        const token = await invite()
        return Object.fromEntries(['one', ...others].map((name) => [name, async () => await (name === 'password' ? accounts.setPassword(token, 'p') : identities.accept(who(name), hashToken(token)))]))
      },
      async (succeeded) => {
        if (succeeded.length !== 1) return `${succeeded.length} have completed it`
        const ann = (await users.get('ann'))!
        const linked = Object.keys(ann.ways ?? {}).length
        const isRight = succeeded[0] === 'password' ? linked === 0 && ann.password !== '' : linked === 1 && ann.password === ''
        if (!isRight || ann.invited_at !== undefined || ann.epoch !== 1 || ann.email_verified_at === undefined) return `${linked} ways, and the record ${JSON.stringify(ann)}`
        return await ways.list(ann).then((held) => held.length === linked ? undefined : 'the identity has no material')
      }
    )
    t.ok(complete, others.join())
    t.strictSame(problems, [], others.join())
  }
})

t.test('a sign-up link is completed once: by one of two identities, or by a password, in every order', async (t) => {
  for (const others of [['two'], ['password']]) {
    const { complete, problems } = await tryOrders(
      async () => {
        await empty()
        const token = await tickets.issue({ purpose: 'sign-up', address: 'new@example.com', mailed: true })
        return Object.fromEntries(['one', ...others].map((name) => [name, async () => await (name === 'password' ? accounts.setPassword(token, 'p') : identities.accept(who(name), hashToken(token)))]))
      },
      async (succeeded) => {
        const [holders, material] = [await listAll(users), await listAll(credentials)]
        if (succeeded.length !== 1 || holders.length !== 1) return `${succeeded.length} have completed it, ${holders.length} accounts`
        const isByPassword = succeeded[0] === 'password'
        return Object.keys(holders[0]!.ways ?? {}).length === (isByPassword ? 0 : 1) && material.length === (isByPassword ? 0 : 1) ? undefined : `${material.length} credentials`
      }
    )
    t.ok(complete, others.join())
    t.strictSame(problems, [], others.join())
  }
})

t.test('of two people who complete with one identity, one does, and the link of the other stays good, in every order', async (t) => {
  const { complete, problems } = await tryOrders(
    async () => {
      await empty()
      return Object.fromEntries(await Promise.all(['ann', 'bob'].map(async (id) => {
        const link = hashToken(await invite(id))
        return [id, async () => await identities.accept(who('one'), link)] as const
      })))
    },
    async (succeeded) => {
      if (succeeded.length !== 1) return `${succeeded.length} have completed`
      const other = (await users.get(succeeded[0] === 'ann' ? 'bob' : 'ann'))!
      return other.epoch === 0 && other.invited_at !== undefined && other.ways === undefined ? undefined : 'the other link is spent'
    }
  )
  t.ok(complete)
  t.strictSame(problems, [])
})

t.test('an invitation never links an account that was disabled, in every order', async (t) => {
  const { complete, problems } = await tryOrders(
    async () => {
      await empty()
      const link = hashToken(await invite())
      return { person: async () => await identities.accept(who('one'), link), admin: async () => await stored.changeUser('ann', () => ({ set: { disabled_at: TIME } })) }
    },
    async (succeeded, order) => {
      const isLinked = (await users.get('ann'))?.ways !== undefined
      if (isLinked !== succeeded.includes('person')) return 'linked, and not told so'
      return isLinked && order.lastIndexOf('admin: users.update') < order.lastIndexOf('person: users.update') ? 'linked after the change' : undefined
    }
  )
  t.ok(complete)
  t.strictSame(problems, [])
})

// kratos#3387, supabase#46509: an account that was left without any way in.
t.test('of two unlinks of the last two identities at once one is refused, in every order', async (t) => {
  const { complete, problems } = await tryOrders(
    async () => {
      await empty()
      await users.insert(createUserRecord(NOW, { id: 'ann', account: 'ann', roles: {}, name: '', info: {} }))
      for (const subject of ['one', 'two']) await identities.linkOwn(who(subject), { user_id: 'ann', epoch: 0 })
      const ids = Object.keys((await users.get('ann'))!.ways!)
      return Object.fromEntries(ids.map((id, index) => [`unlink ${index}`, async () => await accounts.unlinkIdentity({ user_id: 'ann', epoch: 0 }, id, { isEnd: false })]))
    },
    async (succeeded) => {
      const ann = (await users.get('ann'))!
      if (succeeded.length !== 1) return `${succeeded.length} were unlinked`
      return Object.keys(ann.ways ?? {}).length === 1 && await ways.hasWayIn(ann) ? undefined : 'no way in is left'
    }
  )
  t.ok(complete)
  t.strictSame(problems, [])
})
