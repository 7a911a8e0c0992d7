import t from 'tap'
import { toHolder } from '../../../lib/tickets/tickets.ts'
import { toTimestamp } from '../../../lib/clock.ts'
import type { Proof } from '../../../lib/proofs.ts'
import { DEFAULT_ROLE_NAMES as roles } from '../../../lib/roles.ts'
import { createIdentities } from '../../../lib/upstreams/identities.ts'
import { createIdentityStanding } from '../../../lib/upstreams/standing.ts'
import { createHeldFactors } from '../../../lib/accounts/held-factors.ts'
import { createHeldIdentities } from '../../../lib/accounts/held-identities.ts'
import { DEFAULT_POLICY } from '../../../lib/ways/words.ts'
import type { NewWay } from '../../../lib/ways/credentials.ts'
import type { Upstream } from '../../../schemas/upstream.ts'
import { createSilentRecorder } from '../../helpers/events.ts'
import { type HeldRow, checkHolders } from '../../helpers/holders.ts'
import { openRules } from '../../helpers/services.ts'
import { createTestNotices } from '../../helpers/mails.ts'
import { openTestStored, openTestWays } from '../../helpers/user-changes.ts'

// What Ann gives belongs to Bob.

const { store, now, advance, users, tokens, records, tickets, openAccounts } = await openRules(t)
const onError = (error: unknown) => { t.fail(String(error)) }
const recorder = createSilentRecorder(store)
const policy = { ...DEFAULT_POLICY, allowsUpstream: () => true, factors: 'required' as const }
const ways = openTestWays({ store, now, recorder, tokens, policy, onError })
const accounts = openAccounts({}, { ways })
const stored = openTestStored({ store, now, role: roles.admin, recorder, tokens, onRemove: async () => {}, onError })
const confirming = { confirm: async () => ({ proofs: [], confirm: () => {}, checkRecord: () => {} }) }
const heldFactors = createHeldFactors({ store, now, ways, users: confirming, people: users.people, notices: createTestNotices(now), removeFactor: accounts.removeFactor, openFactors: async () => {}, issueEnrolLink: accounts.issueEnrolLink })
const heldIdentities = createHeldIdentities({ store, ways, users: confirming, unlink: accounts.unlinkIdentity, nameUpstream: () => undefined, replace: accounts.replaceIdentity, joins: () => true })
const identities = createIdentities({ now, roles, stored, ways, accounts, failures: { recordIdentity: () => {}, recordRefusedIdentity: () => {}, defer: () => {} }, findOnly: () => undefined, names: { checkChosen: async () => {} }, signUp: true })

const UNKNOWN = { refusal: 'unknown' }
const PASSWORD: Proof[] = [{ way: 'password', kind: 'password', at: '2126-11-21T00:00:00.000Z' }]
const TOTP: NewWay = { kind: 'totp', material: { step: 1 } }
const ISSUER = 'https://corp.example'
const UPSTREAM: Upstream = { id: 'corp', kind: 'oidc', issuer: ISSUER, emails: 'verified', clientId: 'c', clientSecret: 's', create: true, link: 'verified', sync: 'always' }
let count = 0

/** A person with a password, an identity and two factors. */
async function create () {
  const { user_id } = await users.create({ data: { account: `user${count++}@example.com`, password: 'p' } })
  const actor = { user_id, epoch: 0 }
  const { id: identity } = await ways.add(actor, { kind: 'upstream', key: `key ${count}`, upstream: 'corp', material: { issuer: 'i', subject: 's' } })
  const { id: factor } = await ways.add(actor, TOTP)
  // A factor must remain.
  await ways.add(actor, TOTP)
  return { actor, identity, factor, as: { user_id, isAdmin: false, epoch: 0 } }
}

type Person = Awaited<ReturnType<typeof create>>

/** The call, by each with what is Bob's. */
const each = (call: (by: Person, bob: Person) => Promise<unknown>): HeldRow['hold'] => async () => {
  const [ann, bob] = [await create(), await create()]
  return { other: async () => await call(ann, bob), own: async () => await call(bob, bob) }
}

/** The call, by each with what Bob has prepared. */
const eachWith = <T>(prepare: (bob: Person) => Promise<T>, call: (by: Person, prepared: T) => Promise<unknown>): HeldRow['hold'] => async () => {
  const [ann, bob] = [await create(), await create()]
  const prepared = await prepare(bob)
  return { other: async () => await call(ann, prepared), own: async () => await call(bob, prepared) }
}

checkHolders(t, store, {
  'a way that is removed': { refusal: UNKNOWN, hold: each(async ({ actor }, { factor }) => await ways.remove(actor, factor, { isEnd: false })) },
  'a factor that its owner removes': { refusal: UNKNOWN, hold: each(async ({ as }, { factor }) => await heldFactors.remove(as, factor, { isEnd: false })) },
  'a factor that is removed with a mail': { refusal: UNKNOWN, hold: each(async ({ actor }, { factor }) => await accounts.removeFactor(actor, factor, { isEnd: false })) },
  'an identity that is read': { refusal: UNKNOWN, isRead: true, hold: each(async ({ actor }, { identity }) => await heldIdentities.get(actor.user_id, identity)) },
  'an identity that its owner unlinks': { refusal: UNKNOWN, hold: each(async ({ as }, { identity }) => await heldIdentities.remove(as, identity, { isEnd: false })) },
  'an identity that is unlinked with a mail': { refusal: UNKNOWN, hold: each(async ({ actor }, { identity }) => await accounts.unlinkIdentity(actor, identity, { isEnd: false })) },
  'an identity that an administrator unlinks, from the wrong person': {
    refusal: UNKNOWN, hold: each(async ({ actor }, { identity }) => await heldIdentities.removeOf(actor.user_id, identity, { user_id: 'admin', isAdmin: true }))
  },
  'a factor that another person has prepared': {
    refusal: UNKNOWN, hold: eachWith(async ({ actor }) => await ways.prepare(actor, [TOTP]), async ({ actor }, ids) => await ways.name(actor, ids))
  },
  'the codes that come with the factor of another person': {
    refusal: UNKNOWN,
    hold: eachWith(async ({ actor }) => await ways.prepare(actor, [{ kind: 'recovery', material: { hashes: [] } }]), async ({ actor }, [codes]) => await accounts.renewCodes({ ...actor, proofs: [...PASSWORD, { way: 'x', kind: 'totp', at: PASSWORD[0]!.at }] }, codes!))
  }
})

t.test('a reset takes the factors and recovery codes of one person, and leaves their identity and the ways of others', async (t) => {
  const list = async (user_id: string) => (await ways.list((await records.users.get(user_id))!)).map(({ way }) => way.kind).sort()
  const [ann, bob] = [await create(), await create()]
  for (const { actor } of [ann, bob]) await ways.add(actor, { kind: 'recovery', material: { hashes: [] } })
  const all = ['recovery', 'totp', 'totp', 'upstream']
  t.strictSame([await list(ann.actor.user_id), await list(bob.actor.user_id)], [all, all])
  t.match(await heldFactors.reset(bob.actor.user_id, { user_id: 'admin', isAdmin: true }), { removed: 2 })
  t.strictSame([await list(ann.actor.user_id), await list(bob.actor.user_id)], [all, ['upstream']])
  t.strictSame((await Array.fromAsync(store.collection('credentials').stream({ filter: { equal: { user_id: bob.actor.user_id } } }))).flat().length, 1, 'their material too')
})

t.test('what a provider said of a person counts for its own bound, and for that of no other provider', async (t) => {
  const upstreams = ['corp', 'partners'].map((id): Upstream => ({ ...UPSTREAM, id, sessionMax: 60, refreshMax: 60 }))
  const bounded = { findUpstream: () => ({}), findOnly: () => undefined } as never
  const standing = createIdentityStanding({ store, now, ends: { isEnded: async () => false }, upstreams, policy: bounded })
  const { actor, identity } = await create()
  const { id: partner } = await ways.add(actor, { kind: 'upstream', key: `partner ${count}`, upstream: 'partners', material: { issuer: 'i', subject: 's' } })
  const user = (await records.users.get(actor.user_id))!
  const grantOf = (way: string) => ({ session_uid: 'browser', upstream_proof: { kind: 'upstream', way, at: PASSWORD[0]!.at } }) as never
  /** Whether what came of each identity is over: its session, and its apps. */
  const isOver = async () => {
    const over: boolean[] = []
    for (const way of [identity, partner]) over.push(await standing.isOver(user, { kind: 'upstream', way, at: PASSWORD[0]!.at }), await standing.isPastRefresh(user, grantOf(way)))
    return over
  }
  const answer = async (id: string) => { await store.collection('credentials').update(id, { set: { last_used_at: toTimestamp(now()) } }) }
  t.strictSame(await isOver(), [false, false, false, false])
  advance(61_000)
  t.strictSame(await isOver(), [true, true, true, true])
  await answer(partner)
  t.strictSame(await isOver(), [true, true, false, false])
  await answer(identity)
  t.strictSame(await isOver(), [false, false, false, false])
})

checkHolders(t, store, {
  'the link of a change of the address, used by another person': {
    refusal: { code: 'ErrPerm' },
    hold: eachWith(async ({ actor: { user_id } }) => {
      const user = (await records.users.get(user_id))!
      return await tickets.issue({ purpose: 'change', ...toHolder(user), address: `new${count}@example.com`, former: user.account, has_factor: true, mailed: true })
    }, async ({ actor }, link) => await accounts.verifyAddress(link, actor.user_id))
  },
  'the link with which a person adds a factor after a reset': {
    refusal: { code: 'ErrTicket' },
    async hold () {
      const links: string[] = []
      const people = [await create(), await create()]
      for (const { actor: { user_id } } of people) {
        const { link = '' } = await heldFactors.reset(user_id, { user_id: 'admin', isAdmin: true })
        links.push((await accounts.inspectEnrolLink(new URL(link).searchParams.get('token')!)).enrolment)
      }
      const add = async ({ actor }: Person, link: string) => {
        const again = { ...actor, epoch: 1 }
        const ids = prepared.get(actor.user_id)!
        await accounts.addFactor({ ...again, proofs: PASSWORD, link }, ids)
      }
      const prepared = new Map<string, string[]>()
      for (const { actor } of people) prepared.set(actor.user_id, await ways.prepare({ ...actor, epoch: 1 }, [TOTP, { kind: 'recovery', material: { hashes: [] } }]))
      return { other: async () => await add(people[0]!, links[1]!), own: async () => await add(people[1]!, links[1]!) }
    }
  }
})

/** What a provider says about somebody, in the answer to one of its configurations. */
const says = (id: string, subject: string) => ({ upstream: { ...UPSTREAM, id }, claimed: { issuer: ISSUER, subject, name: 'As the provider says', both: false } })

checkHolders(t, store, {
  'an identity that another configuration of the same provider has linked': {
    refusal: { refusal: 'taken' },
    async hold () {
      const subject = `subject ${count++}`
      await identities.linkOwn(says('corp', subject), (await create()).actor)
      return { other: async () => await identities.settle(says('partners', subject)), own: async () => await identities.settle(says('corp', subject)) }
    }
  }
})
