import t, { type Test } from 'tap'
import type { Accounts } from '../../../lib/accounts/index.ts'
import { type UserRecord, createUserRecord } from '../../../lib/records/user.ts'
import { DEFAULT_ROLE_NAMES as roles } from '../../../lib/roles.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'
import { createIdentities } from '../../../lib/upstreams/identities.ts'
import { createRoleChanges } from '../../../lib/upstreams/role-changes.ts'
import { type CredentialRecord, toWayKey } from '../../../lib/way.ts'
import { DEFAULT_POLICY } from '../../../lib/ways/words.ts'
import type { Upstream } from '../../../schemas/upstream.ts'
import { createSilentRecorder } from '../../helpers/events.ts'
import { reuseMongoDatabase } from '../../helpers/mongo-database.ts'
import { IS_ELSEWHERE, MONGODB_URL } from '../../helpers/mongodb.ts'
import { type Ends, race } from '../../helpers/race.ts'
import { Scheduler } from '../../helpers/scheduler.ts'
import { wrapStore } from '../../helpers/wrap-store.ts'
import { openTestStored, openTestWays } from '../../helpers/user-changes.ts'

// A sign-in whose answer gives roles, with whatever else writes the roles or ends the sessions of the same person, in every order.

t.setTimeout(180_000)

const DAY = 24 * 60 * 60_000
const NOW = Date.parse('2126-11-23T00:00:00.000Z')
const ISSUER = 'https://corp.example'
const upstream: Upstream = {
  id: 'corp', kind: 'oidc', issuer: ISSUER, clientId: 'c', clientSecret: 's', create: false, link: 'confirm', sync: 'first', roles: { claim: 'groups', map: { staff: 'clerk', heads: 'head' } }
}
const toTime = (time: number): string => new Date(time).toISOString()

/** The person before the race: with the role of an answer of ten days ago, and one that the map does not own. */
const KNOWN = { roles: { clerk: true, gardener: true } as UserRecord['roles'], claimed_roles: { corp: { at: toTime(NOW - 10 * DAY), roles: ['clerk'] } }, roles_at: toTime(NOW - 10 * DAY) }

interface Case {
  /** The fields of the person that are other ones. */
  before?: Partial<UserRecord>
  /** The roles of the sign-in. Absent: one that ends the sessions of whoever gets it. */
  gives?: string[]
  other: (services: Services) => Promise<unknown>
  outcomes: string[]
  least: number
  /** What is wrong with the end of an order. @param isLast whether the other actor has written last */
  check: (user: UserRecord, ends: Ends, isLast: boolean) => string | undefined
}

type Services = Awaited<ReturnType<typeof openServices>>

async function openServices (t: Test, database: string, scheduler: Scheduler) {
  const inner = await openStore(database, { collections: COLLECTIONS })
  t.teardown(() => inner.close())
  const store = wrapStore(inner, scheduler.around)
  const now = () => NOW
  const fail = (error: unknown) => { throw error }
  const recorder = createSilentRecorder(store)
  const tokens = { deleteOfUser: () => {} }
  const ways = openTestWays({ store, now, recorder, tokens, policy: { ...DEFAULT_POLICY, allowsUpstream: () => true }, onError: fail })
  const stored = openTestStored({ store, now, role: roles.admin, recorder, tokens, endsSessions: (record, given) => given.head !== undefined && record.roles.head === undefined, onRemove: async () => {}, onError: fail })
  const roleChanges = createRoleChanges({ stored, upstreams: [upstream], roles, now })
  const identities = createIdentities({
    now, roles, stored, ways, accounts: {} as Accounts, failures: { recordIdentity: () => {}, recordRefusedIdentity: () => {}, defer: () => {} }, findOnly: () => undefined, names: { checkChosen: async () => {} }, roleChanges, signUp: false
  })
  const key = toWayKey('upstream', ISSUER, 'ann')
  return {
    users: inner.collection<UserRecord>('users'),
    stored,
    roleChanges,
    /** A sign-in whose answer came a second before the race, or later. */
    enter: async (names: string[], at = NOW - 1000) => await identities.settle({
      upstream, asked_at: toTime(NOW - 2000), claimed: { issuer: ISSUER, subject: 'ann', name: '', both: false, roles: { names, at } }
    }),
    async prepare (before: Partial<UserRecord> = {}): Promise<void> {
      await inner.collection<CredentialRecord>('credentials').put({ id: 'w', user_id: 'ann', way: { kind: 'upstream', upstream: 'corp', issuer: ISSUER, key }, material: { issuer: ISSUER, subject: 'ann' }, created_at: toTime(NOW - DAY), last_used_at: toTime(NOW), revision: 0 })
      await inner.collection<UserRecord>('users').put({
        ...createUserRecord(NOW - DAY, { id: 'ann', account: 'ann', name: '', info: {}, ...KNOWN }), ways: { w: { kind: 'upstream', upstream: 'corp', issuer: ISSUER, key, at: toTime(NOW - DAY) } }, way_keys: [key], upstreams: ' corp ', ...before
      })
    }
  }
}

const listRoles = ({ roles: held }: UserRecord): string => Object.keys(held).sort().join()

const CASES: Record<string, Case> = {
  'an administrator who gives other roles': {
    other: async ({ stored }) => await stored.changeUser('ann', () => ({ set: { roles: { florist: true } } })),
    outcomes: ['other last', 'sign-in last'],
    least: 5,
    check: (user, _ends, isLast) => listRoles(user) === (isLast ? 'florist' : 'florist,head') ? undefined : `the roles ${listRoles(user)}`
  },
  'a later answer with another claim': {
    before: { roles: { gardener: true } },
    gives: ['clerk'],
    other: async ({ enter }) => await enter([], NOW),
    outcomes: ['other last', 'sign-in last'],
    least: 5,
    check: (user) => listRoles(user) === 'gardener' && user.claimed_roles?.corp?.at === toTime(NOW) ? undefined : `the roles ${listRoles(user)}`
  },
  'the sweep of roles that have lasted': {
    before: { claimed_roles: { corp: { at: toTime(NOW - 31 * DAY), roles: ['clerk'] } }, roles_at: toTime(NOW - 31 * DAY) },
    other: async ({ roleChanges }) => await roleChanges.sweep(),
    outcomes: ['other last', 'sign-in last'],
    least: 5,
    check: (user) => listRoles(user) === 'gardener,head' && user.roles_at === toTime(NOW - 1000) ? undefined : `the roles ${listRoles(user)}`
  },
  'disabling, which ends the sessions': {
    other: async ({ stored }) => await stored.changeUser('ann', () => ({ set: { disabled_at: toTime(NOW) }, increment: { epoch: 1 } })),
    outcomes: ['other only', 'other last'],
    least: 5,
    check (user, { results, done }) {
      const { proved } = (results['sign-in'] ?? {}) as { proved?: { user_epoch: number } }
      if (done.includes('sign-in') && proved!.user_epoch >= user.epoch) return 'the sign-in goes on after the end'
      return user.disabled_at === undefined ? 'not disabled' : undefined
    }
  }
}

async function play (t: Test, services: Services, scheduler: Scheduler, { other, before, gives = ['head'], outcomes, least, check }: Case, search: { most?: number } = {}): Promise<void> {
  const isLast = ({ order }: Ends) => order.lastIndexOf('other: users.update') > order.lastIndexOf('sign-in: users.update')
  const name = (ends: Ends) => !ends.done.includes('sign-in') ? 'other only' : isLast(ends) ? 'other last' : 'sign-in last'
  await race(t, scheduler, { least, ...(search.most === undefined && { outcomes }), ...search, name }, async () => {
    await services.prepare(before)
    return {
      actors: { 'sign-in': async () => await services.enter(gives), other: async () => await other(services) },
      check: async (ends) => ends.done.includes('other') ? check((await services.users.get('ann'))!, ends, isLast(ends)) : `the other failed: ${String(ends.results.other)}`
    }
  })
}

async function openScheduled (t: Test, database: string): Promise<{ services: Services, scheduler: Scheduler }> {
  const scheduler = new Scheduler()
  scheduler.isShared = ({ collection, method }) => collection === 'users' && method !== 'next' && method !== 'return'
  return { services: await openServices(t, database, scheduler), scheduler }
}

if (!IS_ELSEWHERE) {
  const { services, scheduler } = await openScheduled(t, 'sqlite::memory:')
  for (const [what, one] of Object.entries(CASES)) t.test(`roles by a claim, and ${what}, in every order`, async (t) => await play(t, services, scheduler, one))
}

t.test('the same on mongodb', { skip: MONGODB_URL === undefined && 'MONGODB_URL is not set' }, async (t) => {
  const { services, scheduler } = await openScheduled(t, reuseMongoDatabase(t, MONGODB_URL!))
  for (const [what, one] of Object.entries(CASES)) await t.test(what, async (t) => await play(t, services, scheduler, { ...one, least: 3 }, { most: 4 }))
})
