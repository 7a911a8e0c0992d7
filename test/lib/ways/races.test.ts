import t from 'tap'
import { type UserRecord, createUserRecord } from '../../../lib/records/user.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'
import type { NewWay } from '../../../lib/ways/credentials.ts'
import type { CredentialRecord } from '../../../lib/way.ts'
import { createHeldFactors } from '../../../lib/accounts/held-factors.ts'
import { createJudge } from '../../../lib/sign-in/may-sign-in.ts'
import { DEFAULT_POLICY } from '../../../lib/ways/words.ts'
import { createSilentRecorder } from '../../helpers/events.ts'
import { race } from '../../helpers/race.ts'
import { Scheduler } from '../../helpers/scheduler.ts'
import { wrapStore } from '../../helpers/wrap-store.ts'
import { createTestNotices } from '../../helpers/mails.ts'
import { openTestWays } from '../../helpers/user-changes.ts'

const NOW = Date.parse('2126-11-23T00:00:00.000Z')
t.setTimeout(180_000)

const scheduler = new Scheduler()
const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS })
t.teardown(() => inner.close())
const store = wrapStore(inner, scheduler.around)
const policy = { ...DEFAULT_POLICY, allowsUpstream: () => true }
const ways = openTestWays({ store, now: () => NOW, recorder: createSilentRecorder(store), tokens: { deleteOfUser: () => {} }, policy, onError: (error) => { throw error } })
const held = createHeldFactors({
  store,
  now: () => NOW,
  ways,
  notices: createTestNotices(() => NOW),
  people: { requireReadable: async () => { throw new Error('unused') } },
  users: { confirm: async () => ({ proofs: [], confirm: () => {}, checkRecord: () => {} }) },
  removeFactor: async (actor, id, options) => await ways.remove(actor, id, options),
  openFactors: async () => {}
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

const listWays = async (id: string) => Object.keys((await users.get(id))?.ways ?? {}).sort()
async function listMaterial (): Promise<string[]> {
  const found: string[] = []
  for await (const batch of credentials.stream()) found.push(...batch.map(({ id }) => id))
  return found.sort()
}

// Old material is removed in the end, of whichever user: its order cannot matter.
scheduler.isShared = ({ collection, method }) => collection === 'users' || (collection === 'credentials' && method !== 'next')

t.test('two users who link one identity at once: one wins, in every order', async (t) => {
  await race(t, scheduler, { least: 50, outcomes: ['ann', 'bob'] }, async () => {
    await setScene(0)
    return {
      actors: { ann: () => ways.add(ANN, identity('one')), bob: () => ways.add(BOB, identity('one')) },
      async check ({ done }) {
        const [named, material] = [[...await listWays('ann'), ...await listWays('bob')], await listMaterial()]
        if (named.length !== 1 || material.join() !== named.join()) return `named ${named.length}, material ${material.length}`
        return (await users.getBy('way_keys', 'one'))?.id === done[0] ? undefined : 'it is found as another user'
      }
    }
  })
})

t.test('two removals of the last two ways at once: one stays, in every order', async (t) => {
  await race(t, scheduler, { least: 38, outcomes: ['one', 'two'] }, async () => {
    const [one = '', two = ''] = (await setScene(2)).ann!
    return {
      actors: { one: () => ways.remove(ANN, one, { isEnd: false }), two: () => ways.remove(ANN, two, { isEnd: false }) },
      async check ({ done }) {
        const left = await listWays('ann')
        if (left.length !== 1) return `${left.length} are left`
        const gone = done[0] === 'one' ? one : two
        return left.includes(gone) || (await listMaterial()).includes(gone) ? 'the other one was removed' : undefined
      }
    }
  })
})

t.test('a way that is added while its user is signed out everywhere: never named after that, in every order', async (t) => {
  await race(t, scheduler, { least: 64, outcomes: ['owner', 'owner, thief'] }, async () => {
    const [first = ''] = (await setScene(2)).ann!
    return {
      actors: { thief: () => ways.add(ANN, identity('thief')), owner: () => ways.remove(ANN, first) },
      check ({ done, order }) {
        const isLate = order.findLast((call) => call.endsWith('users.update'))!.startsWith('thief') && done.includes('thief')
        return isLate ? 'named after the sessions ended' : undefined
      }
    }
  })
})

t.test('a factor that is being added while an administrator resets the factors: none is left, in every order', async (t) => {
  await race(t, scheduler, { least: 42, outcomes: ['admin', 'admin, thief'] }, async () => {
    await setScene(1)
    await ways.add(ANN, { kind: 'totp', material: { step: 0 } })
    return {
      actors: { thief: () => ways.add(ANN, { kind: 'totp', material: { step: 0 } }), admin: () => held.reset('ann', { user_id: 'operator', isAdmin: true }) },
      async check () {
        const user = await users.get('ann')
        return Object.values(user?.ways ?? {}).some(({ kind }) => kind === 'totp') ? 'a factor is left' : undefined
      }
    }
  })
})

t.test('a reset between the steps of a sign-in: nobody gets in by the factor after it, in every order', async (t) => {
  const judge = createJudge({ store, now: () => NOW, ways, policy })
  const proof = (way: string, kind: 'upstream' | 'totp') => ({ way, kind, at: new Date(NOW).toISOString() })
  await race(t, scheduler, { least: 14, outcomes: ['admin', 'admin, ann'] }, async () => {
    const [first = ''] = (await setScene(1)).ann!
    const { id: second } = await ways.add(ANN, { kind: 'totp', material: { step: 0 } })
    const signIn = async () => {
      const way = await ways.get((await store.collection<UserRecord>('users').get('ann'))!, second)
      const judged = way && await judge({ user_id: 'ann', epoch: 0, proofs: [proof(first, 'upstream'), proof(second, 'totp')] })
      if (judged?.may !== true) throw new Error('refused')
    }
    return {
      actors: { ann: signIn, admin: () => held.reset('ann', { user_id: 'operator', isAdmin: true }) },
      check: ({ done, order }) => done.includes('ann') && order.lastIndexOf('ann: users.get') > order.indexOf('admin: users.update') ? 'signed in after the reset' : undefined
    }
  })
})
