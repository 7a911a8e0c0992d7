import { generateKeySync } from 'node:crypto'
import t from 'tap'
import { type UserRecord, createUserRecord } from '../../../lib/records.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'
import { createSignIns } from '../../../lib/sign-in/sign-ins.ts'
import { createPasskeyStep } from '../../../lib/sign-in/steps/passkey.ts'
import type { Step } from '../../../lib/sign-in/steps/step.ts'
import { createChallenges } from '../../../lib/ways/challenges.ts'
import { createJudge } from '../../../lib/ways/may-sign-in.ts'
import { createPasskeys } from '../../../lib/ways/passkeys.ts'
import { createWays } from '../../../lib/ways/ways.ts'
import { DEFAULT_POLICY } from '../../../lib/ways/words.ts'
import { createAuthenticator } from '../../../testing/authenticator.ts'
import { createSilentRecorder } from '../../helpers/events.ts'
import { Scheduler, exhaust } from '../../helpers/scheduler.ts'
import { wrapStore } from '../../helpers/wrap-store.ts'

const NOW = Date.parse('2126-11-23T00:00:00.000Z')
const ORIGIN = 'http://localhost'
/** The most orders of one pair. */
const MOST_ORDERS = 20_000

t.setTimeout(600_000)

const scheduler = new Scheduler()
const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS })
t.teardown(() => inner.close())
const store = wrapStore(inner, scheduler.around)
const policy = { ...DEFAULT_POLICY, relyingParty: 'localhost' }
const now = () => NOW
const ways = createWays({ store, now, recorder: createSilentRecorder(store), tokens: { deleteOfUser: () => {} }, policy, onError: (error) => { throw error } })
const passkeys = createPasskeys({
  store,
  now,
  ways,
  policy,
  party: { id: 'localhost', origin: ORIGIN },
  challenges: createChallenges({ store, now, key: generateKeySync('hmac', { length: 256 }) }),
  serviceName: 'Northwind',
  failures: { recordFactor: () => {}, recordSignIn: () => {} },
  openFactors: async () => {},
  findPlace: () => ({}),
  onAdd: async () => {},
  onWarning: () => {}
})
const users = inner.collection<UserRecord>('users')
const password: Step = { kind: 'password', page: 'sign-in', verify: async () => ({ refused: { reason: 'wrong-password' } }) }
const signIns = createSignIns({ store, now, places: [[password, createPasskeyStep(passkeys).first]], maySignIn: createJudge({ store, now, ways, policy }) })
const ANN = { user_id: 'ann', epoch: 0 }

// Old material is removed in the end, of whichever user: its order cannot matter.
// A signature is verified outside this thread.
scheduler.waitsForAll = true
scheduler.isShared = ({ collection, method }) => collection === 'users' || collection === 'sign_ins' || (collection === 'credentials' && method !== 'next')

/** A user with a passkey, and a sign-in of theirs that only has to be sent. */
async function setScene (settings: Parameters<typeof createAuthenticator>[1] = {}) {
  for (const name of ['credentials', 'users', 'sign_ins']) await inner.collection(name).deleteMany({ before: { id: '~' } })
  await users.insert(createUserRecord(NOW, { id: 'ann', account: 'ann', roles: {}, password: 'hash', name: '', info: {} }))
  const key = createAuthenticator(ORIGIN, settings)
  const id = await passkeys.prepare(ANN, 'enrolment', key.create(await passkeys.askNew((await users.get('ann'))!, 'enrolment')))
  await ways.name(ANN, [id])
  const form = new URLSearchParams({ assertion: key.get(await passkeys.ask('begin', 'a browser')) })
  const outcomes: Record<string, boolean> = {}
  const signIn = (name: string) => async () => {
    const outcome = await signIns.submit('a browser', { form, turn: {}, limit: async () => undefined }, { choice: 'passkey' })
    outcomes[name] = 'done' in outcome
  }
  return { id, signIn, outcomes }
}

const describe = () => scheduler.log.map(({ actor, collection, method }) => `${actor}: ${collection}.${method}`)

/** The position of the last call of this kind. */
const lastOf = (order: string[], call: string) => order.lastIndexOf(call)

t.test('a sign-in beside the removal of its passkey: whoever is let in was judged before the removal, in every order', async (t) => {
  const problems: string[] = []
  const seen = new Set<string>()
  for (const isEnd of [true, false]) {
    const { orders: runs, complete } = await exhaust({ least: 1, most: MOST_ORDERS }, async (choose) => {
      const { id, signIn, outcomes } = await setScene({ counter: 3 })
      let isRemoved = false
      await scheduler.run({ person: signIn('person'), owner: async () => { await ways.remove(ANN, id, { isEnd }); isRemoved = true } }, choose)
      const order = describe()
      const left = Object.keys((await users.get('ann'))?.ways ?? {})
      seen.add(String(outcomes['person']))
      const isLate = outcomes['person'] === true && lastOf(order, 'person: users.get') > lastOf(order, 'owner: users.update')
      if ((!isRemoved || left.length > 0 || isLate) && problems.length < 3) problems.push(`${isRemoved} ${left.length} ${outcomes['person']}\n${order.join('\n')}`)
    })
    t.ok(complete, `${runs} orders`)
  }
  t.strictSame(problems, [])
  t.strictSame([...seen].sort(), ['false', 'true'], 'both happen')
})

t.test('one assertion that is sent twice at once signs in once, in every order', async (t) => {
  const problems: string[] = []
  const { orders: runs, complete } = await exhaust({ least: 1, most: MOST_ORDERS }, async (choose) => {
    const { signIn, outcomes } = await setScene()
    await scheduler.run({ one: signIn('one'), two: signIn('two') }, choose)
    const count = Object.values(outcomes).filter(Boolean).length
    if (count !== 1 && problems.length < 3) problems.push(`${count}\n${describe().join('\n')}`)
  })
  t.ok(complete, `${runs} orders`)
  t.strictSame(problems, [])
})

t.test('two removals of the last two ways in, both passkeys: one stays, in every order', async (t) => {
  const problems: string[] = []
  const { orders: runs, complete } = await exhaust({ least: 1, most: MOST_ORDERS }, async (choose) => {
    const { id } = await setScene()
    const other = createAuthenticator(ORIGIN)
    const second = await passkeys.prepare(ANN, 'enrolment', other.create(await passkeys.askNew((await users.get('ann'))!, 'enrolment')))
    await ways.name(ANN, [second])
    await users.update('ann', { unset: ['password'] })
    const remove = (way: string) => async () => { await ways.remove(ANN, way, { isEnd: false }) }
    await scheduler.run({ one: remove(id), two: remove(second) }, choose)
    const left = Object.keys((await users.get('ann'))?.ways ?? {})
    if (left.length !== 1 && problems.length < 3) problems.push(`${left.length}\n${describe().join('\n')}`)
  })
  t.ok(complete, `${runs} orders`)
  t.strictSame(problems, [])
})
