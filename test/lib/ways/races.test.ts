import t from 'tap'
import { type UserRecord, createUserRecord } from '../../../lib/records.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'
import type { NewWay } from '../../../lib/ways/credentials.ts'
import type { CredentialRecord } from '../../../lib/way.ts'
import { createHeldFactors } from '../../../lib/ways/held-factors.ts'
import { createJudge } from '../../../lib/ways/may-sign-in.ts'
import { createWays } from '../../../lib/ways/ways.ts'
import { DEFAULT_POLICY } from '../../../lib/ways/words.ts'
import { createSilentRecorder } from '../../helpers/events.ts'
import { Scheduler, createRandom, exhaust } from '../../helpers/scheduler.ts'
import { wrapStore } from '../../helpers/wrap-store.ts'

const NOW = Date.parse('2126-11-23T00:00:00.000Z')
/** The most orders of one pair, and the random ones where there are more. */
const MOST_ORDERS = 20000
const RANDOM_ORDERS = 300

t.setTimeout(600_000)

const scheduler = new Scheduler()
const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS })
t.teardown(() => inner.close())
const store = wrapStore(inner, scheduler.around)
const policy = { ...DEFAULT_POLICY, allowsUpstream: () => true }
const ways = createWays({ store, now: () => NOW, recorder: createSilentRecorder(store), tokens: { deleteOfUser: () => {} }, policy, onError: (error) => { throw error } })
const held = createHeldFactors({
  store,
  ways,
  users: { confirm: async () => ({ proofs: [], confirm: () => {}, checkRecord: () => {} }) },
  removeFactor: async (actor, id, options) => await ways.remove(actor, id, options),
  prepareReset: async () => ({ finish: async () => ({}) })
})
const users = inner.collection<UserRecord>('users')
const credentials = inner.collection<CredentialRecord>('credentials')

const identity = (subject: string): NewWay => ({ kind: 'upstream', key: subject, upstream: 'corp', material: {} })
const ANN = { user_id: 'ann', epoch: 0 }
const BOB = { user_id: 'bob', epoch: 0 }

/** Two users: without a password, and each with as many identities as `count`. */
async function setScene (count: number): Promise<{ [user: string]: string[] }> {
  await credentials.deleteMany({ before: { id: '~' } })
  await users.deleteMany({ before: { id: '~' } })
  for (const id of ['ann', 'bob']) await users.insert(createUserRecord(NOW, { id, account: id, roles: {}, password: '', name: '', info: {} }))
  const ids: { [user: string]: string[] } = { ann: [], bob: [] }
  for (const actor of [ANN, BOB]) {
    for (let number = 0; number < count; number++) ids[actor.user_id]!.push((await ways.add(actor, identity(`${actor.user_id} ${number}`))).id)
  }
  return ids
}

type Actors = Record<string, () => Promise<unknown>>

/** Runs the actors in every order of their store calls, or in many random ones. `check` gets those that succeeded. */
async function tryOrders (prepare: () => Promise<Actors>, check: (succeeded: string[], order: string) => Promise<string | undefined>) {
  const problems: string[] = []
  const run = async (choose: (count: number) => number) => {
    const actors = await prepare()
    const succeeded: string[] = []
    const watched = Object.fromEntries(Object.entries(actors).map(([name, act]) => [name, async () => { await act(); succeeded.push(name) }]))
    await scheduler.run(watched, choose)
    const order = scheduler.log.map(({ actor, collection, method }) => `${actor}: ${collection}.${method}`).join('\n')
    const problem = await check(succeeded.sort(), order)
    if (problem !== undefined && problems.length < 3) problems.push(`${problem}\n${order}`)
  }
  const { orders: runs, complete } = await exhaust({ least: 1, most: MOST_ORDERS }, run)
  if (!complete) for (let seed = 0; seed < RANDOM_ORDERS; seed++) await run(createRandom(seed))
  return { runs, complete, problems }
}

const listWays = async (id: string) => Object.keys((await users.get(id))?.ways ?? {}).sort()
async function listMaterial (): Promise<string[]> {
  const found: string[] = []
  for await (const batch of credentials.stream()) found.push(...batch.map(({ id }) => id))
  return found.sort()
}

// Old material is removed in the end, of whichever user: its order cannot matter.
scheduler.isShared = ({ collection, method }) => collection === 'users' || (collection === 'credentials' && method !== 'next')

t.test('two users who link one identity at once: one wins, in every order', async (t) => {
  const { runs, complete, problems } = await tryOrders(
    async () => {
      await setScene(0)
      return { ann: () => ways.add(ANN, identity('one')), bob: () => ways.add(BOB, identity('one')) }
    },
    async (succeeded) => {
      if (succeeded.length !== 1) return `${succeeded.length} have linked it`
      const [named, material] = [[...await listWays('ann'), ...await listWays('bob')], await listMaterial()]
      if (named.length !== 1 || material.join() !== named.join()) return `named ${named.length}, material ${material.length}`
      return (await users.getBy('way_keys', 'one'))?.id === succeeded[0] ? undefined : 'it is found as another user'
    }
  )
  t.comment(`${runs} orders`)
  t.ok(complete)
  t.strictSame(problems, [])
})

t.test('two removals of the last two ways at once: one stays, in every order', async (t) => {
  let ids: string[] = []
  const { runs, complete, problems } = await tryOrders(
    async () => {
      ids = (await setScene(2)).ann!
      return { one: () => ways.remove(ANN, ids[0]!, { isEnd: false }), two: () => ways.remove(ANN, ids[1]!, { isEnd: false }) }
    },
    async (succeeded) => {
      const left = await listWays('ann')
      if (succeeded.length !== 1 || left.length !== 1) return `${succeeded.length} were removed, ${left.length} are left`
      const gone = ids[succeeded[0] === 'one' ? 0 : 1]!
      return left.includes(gone) || (await listMaterial()).includes(gone) ? 'the other one was removed' : undefined
    }
  )
  t.comment(`${runs} orders`)
  t.ok(complete)
  t.strictSame(problems, [])
})

t.test('a way that is added while its user is signed out everywhere: never named after that, in every order', async (t) => {
  let ids: string[] = []
  const { complete, problems } = await tryOrders(
    async () => {
      ids = (await setScene(2)).ann!
      return { thief: () => ways.add(ANN, identity('thief')), owner: () => ways.remove(ANN, ids[0]!) }
    },
    async (succeeded, order) => {
      if (!succeeded.includes('owner')) return 'the owner was kept from it'
      const writes = order.split('\n').filter((call) => call.endsWith('users.update'))
      const isLate = writes.at(-1)?.startsWith('thief') === true && succeeded.includes('thief')
      return isLate ? 'named after the sessions ended' : undefined
    }
  )
  t.ok(complete)
  t.strictSame(problems, [])
})

t.test('a factor that is being added while an administrator resets the factors: none is left, in every order', async (t) => {
  const { complete, problems } = await tryOrders(
    async () => {
      await setScene(1)
      await ways.add(ANN, { kind: 'totp', material: { step: 0 } })
      return { thief: () => ways.add(ANN, { kind: 'totp', material: { step: 0 } }), admin: () => held.reset('ann', { user_id: 'operator', isAdmin: true }) }
    },
    async (succeeded) => {
      if (!succeeded.includes('admin')) return 'the administrator was kept from it'
      const user = await users.get('ann')
      return Object.values(user?.ways ?? {}).some(({ kind }) => kind === 'totp') ? 'a factor is left' : undefined
    }
  )
  t.ok(complete)
  t.strictSame(problems, [])
})

t.test('a reset between the steps of a sign-in: nobody gets in by the factor after it, in every order', async (t) => {
  const judge = createJudge({ store, now: () => NOW, ways, policy })
  const proof = (way: string, kind: 'upstream' | 'totp') => ({ way, kind, at: new Date(NOW).toISOString() })
  let [first, second] = ['', '']
  const { complete, problems } = await tryOrders(
    async () => {
      first = (await setScene(1)).ann![0]!
      second = (await ways.add(ANN, { kind: 'totp', material: { step: 0 } })).id
      return {
        ann: async () => {
          const held = await ways.get((await store.collection<UserRecord>('users').get('ann'))!, second)
          const judged = held && await judge({ user_id: 'ann', epoch: 0, proofs: [proof(first, 'upstream'), proof(second, 'totp')] })
          if (judged?.may !== true) throw new Error('refused')
        },
        admin: () => held.reset('ann', { user_id: 'operator', isAdmin: true })
      }
    },
    async (succeeded, order) => {
      if (!succeeded.includes('admin')) return 'the administrator was kept from it'
      const calls = order.split('\n')
      const judgedAt = calls.lastIndexOf('ann: users.get')
      return succeeded.includes('ann') && judgedAt > calls.indexOf('admin: users.update') ? 'signed in after the reset' : undefined
    }
  )
  t.ok(complete)
  t.strictSame(problems, [])
})
