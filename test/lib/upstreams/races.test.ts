import t from 'tap'
import { createAccounts } from '../../../lib/accounts/index.ts'
import { createTickets, toHolder } from '../../../lib/tickets/tickets.ts'
import { createSecretBox, generateSecretKey } from '../../../lib/crypto/secrets.ts'
import { type UserRecord, createUserRecord } from '../../../lib/records/user.ts'
import { DEFAULT_ROLE_NAMES as roles } from '../../../lib/roles.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'
import type { Json } from '../../../lib/store/port.ts'
import { createIdentities } from '../../../lib/upstreams/identities.ts'
import { proveAddress } from '../../../lib/user-changes/address-proof.ts'
import { createFormerNames } from '../../../lib/users/former-names.ts'
import type { CredentialRecord } from '../../../lib/way.ts'
import { hashToken } from '../../../lib/crypto/random-token.ts'
import { DEFAULT_POLICY } from '../../../lib/ways/words.ts'
import type { Upstream } from '../../../schemas/upstream.ts'
import { createBase } from '../../helpers/base.ts'
import { createSilentRecorder } from '../../helpers/events.ts'
import { race } from '../../helpers/race.ts'
import { Scheduler } from '../../helpers/scheduler.ts'
import { PLAIN_PASSWORDS } from '../../helpers/services.ts'
import { wrapStore } from '../../helpers/wrap-store.ts'
import { createTestNotices } from '../../helpers/mails.ts'
import { openTestStored, openTestWays } from '../../helpers/user-changes.ts'

const NOW = Date.parse('2126-11-23T00:00:00.000Z')
const TIME = new Date(NOW).toISOString()

t.setTimeout(180_000)

const scheduler = new Scheduler()
const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS })
t.teardown(() => inner.close())
const store = wrapStore(inner, scheduler.around)
const [users, credentials] = [inner.collection<UserRecord>('users'), inner.collection<CredentialRecord>('credentials')]
const fail = (error: unknown) => { throw error }
const now = () => NOW
/** The epochs before which tokens were removed. */
const ended: unknown[] = []
const tokens = { deleteOfUser: (_user_id: string, epoch?: number) => { ended.push(epoch) } }
const recorder = createSilentRecorder(store)
const policy = { ...DEFAULT_POLICY, allowsUpstream: () => true }
const ways = openTestWays({ store, now, recorder, tokens, policy, onError: fail })
const box = createSecretBox(generateSecretKey())
const names = createFormerNames({ store, now, box, roles: Object.values(roles) })
const stored = openTestStored({ store, now, role: roles.admin, recorder, tokens, onLeave: names.remember, onRemove: async () => {}, onError: fail })
const accounts = createAccounts({
  ...createBase({ store, now, box, recorder, roles, onError: fail }),
  stored,
  tickets: createTickets({ store, now }),
  ways,
  passwords: PLAIN_PASSWORDS,
  clients: { removeOwned: async () => [] } as never,
  checkNewPassword: async (password) => password,
  openPassword: async () => {},
  notices: createTestNotices(now),
  counter: { count: async () => ({ current: 1, ttl: 1 }) },
  onMailFailed: () => {}
}, { signUp: true, selfDelete: false, accountPath: '/account' })
const identities = createIdentities({ now, roles, stored, ways, accounts, failures: { recordIdentity: () => {}, recordRefusedIdentity: () => {}, defer: () => {} }, findOnly: () => undefined, names, signUp: true })

const upstream: Upstream = { id: 'corp', kind: 'oidc', issuer: 'https://corp.example', emails: 'verified', clientId: 'c', clientSecret: 's', create: true, link: 'verified', sync: 'first' }
const proven = { upstream, claimed: { issuer: 'https://corp.example', subject: 'one', address: 'ann@example.com', name: '', both: false } }
const { address: _address, ...unproved } = proven.claimed

async function empty (): Promise<void> {
  ended.length = 0
  await credentials.deleteMany({ before: { id: '~' } })
  await users.deleteMany({ before: { id: '~' } })
  for (const name of ['tickets', 'former_names']) await inner.collection(name).deleteMany({ before: { id: '~' } })
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

scheduler.isShared = ({ collection, method }) => collection === 'users' || collection === 'former_names' || (collection === 'credentials' && method !== 'next')

async function listAll <T extends { id: string }> (collection: { stream (): AsyncIterable<T[]> }): Promise<T[]> {
  const found: T[] = []
  for await (const batch of collection.stream()) found.push(...batch)
  return found
}

t.test('two first sign-ins with one identity make one account, in every order', async (t) => {
  await race(t, scheduler, { least: 5, outcomes: ['one, two'] }, async () => {
    await empty()
    const create = (account: string) => async () => await identities.create({ upstream, claimed: unproved }, account)
    return {
      actors: { one: create('one'), two: create('two') },
      async check () {
        const [holders, material] = [await listAll(users), await listAll(credentials)]
        if (holders.length !== 1) return `${holders.length} accounts`
        return material.length === 1 && holders[0]!.ways?.[material[0]!.id] !== undefined ? undefined : `${material.length} credentials`
      }
    }
  })
})

t.test('nobody chooses the name of somebody who is deleted meanwhile, in every order', async (t) => {
  await race(t, scheduler, { least: 20, outcomes: ['deletion'] }, async () => {
    await empty()
    await users.insert(createUserRecord(NOW, { id: 'former', account: 'former', roles: {}, password: '', name: '', info: {} }))
    return {
      actors: {
        stranger: async () => await identities.create({ upstream, claimed: unproved }, 'former'),
        deletion: async () => await stored.removeUser('former')
      },
      async check () {
        const holders = await listAll(users)
        return holders.length === 0 ? undefined : `${holders.map(({ id, account }) => `${id} is called ${account}`).join()}`
      }
    }
  })
})

const CHANGES: Record<string, Record<string, Json>> = {
  'has got a role': { roles: { admin: true } },
  'has lost its address': { ...proveAddress('other@example.com', 'mail', NOW), addresses: ['ann@example.com', 'other@example.com'] },
  'was disabled': { disabled_at: TIME }
}

/** Whoever is linked has been told so, and before the change. */
async function checkLink (done: string[], order: string[]): Promise<string | undefined> {
  const isLinked = Object.keys((await users.get('ann'))?.ways ?? {}).length > 0
  if (isLinked !== done.includes('person')) return 'linked, and not told so'
  return isLinked && order.lastIndexOf('admin: users.update') < order.lastIndexOf('person: users.update') ? 'linked after the change' : undefined
}

// The rule is decided on the record that the write replaces, and not on the one that was read before.
for (const [what, change] of Object.entries(CHANGES)) {
  t.test(`an identity never joins by itself an account that ${what}, in every order`, async (t) => {
    await race(t, scheduler, { least: 13, outcomes: ['admin', 'admin, person'] }, async () => {
      await empty()
      await users.insert(createUserRecord(NOW, {
        id: 'ann', account: 'ann@example.com', email: 'ann@example.com', email_verified_at: TIME, roles: {}, password: 'x', operator_password: false, name: '', info: {}
      }))
      return {
        actors: {
          person: async () => { if (!('proved' in await identities.settle(proven))) throw new Error('asked') },
          admin: async () => await stored.changeUser('ann', () => ({ set: change }))
        },
        check: async ({ done, order }) => await checkLink(done, order)
      }
    })
  })
}

/** Uses a link with an identity, and with another one or a password. */
const complete = (token: string, second: 'two' | 'password') => ({
  one: async () => await identities.accept(who('one'), hashToken(token)),
  [second]: async () => second === 'password' ? await accounts.setPassword(token, 'p') : await identities.accept(who(second), hashToken(token))
})

for (const [second, least] of [['two', 102], ['password', 16]] as const) {
  t.test(`an invitation is completed once: by an identity, or by ${second === 'two' ? 'another one' : 'a password'}, in every order`, async (t) => {
    await race(t, scheduler, { least, outcomes: ['one', second] }, async () => {
      await empty()
      return {
        actors: complete(await invite(), second),
        async check ({ done }) {
          const ann = (await users.get('ann'))!
          if (ended.splice(0).join() !== '1') return 'the tokens from before were not removed once'
          const linked = Object.keys(ann.ways ?? {}).length
          const isRight = done[0] === 'password' ? linked === 0 && ann.password !== '' : linked === 1 && ann.password === ''
          if (!isRight || ann.invited_at !== undefined || ann.epoch !== 1 || ann.email_verified_at === undefined) return `${linked} ways, and the record ${JSON.stringify(ann)}`
          return (await ways.list(ann)).length === linked ? undefined : 'the identity has no material'
        }
      }
    })
  })
}

for (const [second, least] of [['two', 27], ['password', 13]] as const) {
  t.test(`a sign-up link is completed once: by an identity, or by ${second === 'two' ? 'another one' : 'a password'}, in every order`, async (t) => {
    await race(t, scheduler, { least, outcomes: ['one', second] }, async () => {
      await empty()
      return {
        actors: complete(await tickets.issue({ purpose: 'sign-up', address: 'new@example.com', mailed: true }), second),
        async check ({ done }) {
          const [holders, material] = [await listAll(users), await listAll(credentials)]
          if (holders.length !== 1) return `${holders.length} accounts`
          const expected = done[0] === 'password' ? 0 : 1
          return Object.keys(holders[0]!.ways ?? {}).length === expected && material.length === expected ? undefined : `${material.length} credentials`
        }
      }
    })
  })
}

t.test('of two people who complete with one identity, one does, and the link of the other stays good, in every order', async (t) => {
  await race(t, scheduler, { least: 102, outcomes: ['ann', 'bob'] }, async () => {
    await empty()
    const links = { ann: hashToken(await invite('ann')), bob: hashToken(await invite('bob')) }
    return {
      actors: { ann: async () => await identities.accept(who('one'), links.ann), bob: async () => await identities.accept(who('one'), links.bob) },
      async check ({ done }) {
        const other = (await users.get(done[0] === 'ann' ? 'bob' : 'ann'))!
        return other.epoch === 0 && other.invited_at !== undefined && other.ways === undefined ? undefined : 'the other link is spent'
      }
    }
  })
})

t.test('an invitation never links an account that was disabled, in every order', async (t) => {
  await race(t, scheduler, { least: 11, outcomes: ['admin', 'admin, person'] }, async () => {
    await empty()
    const link = hashToken(await invite())
    return {
      actors: { person: async () => await identities.accept(who('one'), link), admin: async () => await stored.changeUser('ann', () => ({ set: { disabled_at: TIME } })) },
      check: async ({ done, order }) => await checkLink(done, order)
    }
  })
})

// kratos#3387, supabase#46509: an account that was left without any way in.
t.test('of two unlinks of the last two identities at once one is refused, in every order', async (t) => {
  await race(t, scheduler, { least: 44, outcomes: ['unlink 0', 'unlink 1'] }, async () => {
    await empty()
    await users.insert(createUserRecord(NOW, { id: 'ann', account: 'ann', roles: {}, name: '', info: {} }))
    for (const subject of ['one', 'two']) await identities.linkOwn(who(subject), { user_id: 'ann', epoch: 0 })
    const ids = Object.keys((await users.get('ann'))!.ways!)
    const unlink = (id: string) => async () => await accounts.unlinkIdentity({ user_id: 'ann', epoch: 0 }, id, { isEnd: false })
    return {
      actors: Object.fromEntries(ids.map((id, index) => [`unlink ${index}`, unlink(id)])),
      async check () {
        const ann = (await users.get('ann'))!
        return Object.keys(ann.ways ?? {}).length === 1 && await ways.hasWayIn(ann) ? undefined : 'no way in is left'
      }
    }
  })
})
