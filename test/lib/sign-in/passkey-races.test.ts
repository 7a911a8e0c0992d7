import { generateKeySync } from 'node:crypto'
import t from 'tap'
import { type UserRecord, createUserRecord } from '../../../lib/records/user.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'
import { createSignIns } from '../../../lib/sign-in/sign-ins.ts'
import { createPasskeyStep } from '../../../lib/sign-in/steps/passkey.ts'
import type { Step } from '../../../lib/sign-in/steps/step.ts'
import { createChallenges } from '../../../lib/ways/challenges.ts'
import { createJudge } from '../../../lib/sign-in/may-sign-in.ts'
import { createPasskeys } from '../../../lib/ways/passkeys.ts'
import { DEFAULT_POLICY } from '../../../lib/ways/words.ts'
import { createAuthenticator } from '../../../testing/authenticator.ts'
import { createSilentRecorder } from '../../helpers/events.ts'
import { race } from '../../helpers/race.ts'
import { Scheduler } from '../../helpers/scheduler.ts'
import { wrapStore } from '../../helpers/wrap-store.ts'
import { openTestWays } from '../../helpers/user-changes.ts'

const NOW = Date.parse('2126-11-23T00:00:00.000Z')
const ORIGIN = 'http://localhost'

t.setTimeout(180_000)

const scheduler = new Scheduler()
const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS })
t.teardown(() => inner.close())
const store = wrapStore(inner, scheduler.around)
const policy = { ...DEFAULT_POLICY, relyingParty: 'localhost' }
const now = () => NOW
const ways = openTestWays({ store, now, recorder: createSilentRecorder(store), tokens: { deleteOfUser: () => {} }, policy, onError: (error) => { throw error } })
const passkeys = createPasskeys({
  store,
  now,
  ways,
  policy,
  party: { id: 'localhost', origin: ORIGIN },
  challenges: createChallenges({ store, now, keys: [generateKeySync('hmac', { length: 256 })] }),
  serviceName: 'Northwind',
  failures: { recordFactor: () => {}, recordSignIn: () => {} },
  openFactors: async () => {},
  findDevice: () => ({}),
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
  const signIn = async () => {
    const outcome = await signIns.submit('a browser', { form, turn: {}, limit: async () => undefined }, { choice: 'passkey' })
    if (!('done' in outcome)) throw new Error('refused')
  }
  return { id, signIn }
}

const listWays = async () => Object.keys((await users.get('ann'))?.ways ?? {})

for (const [isEnd, least] of [[true, 47], [false, 47]] as const) {
  t.test(`a sign-in beside the removal of its passkey${isEnd ? ', which ends all sessions' : ''}: whoever is let in was judged before the removal, in every order`, async (t) => {
    await race(t, scheduler, { least, outcomes: ['owner', 'owner, person'] }, async () => {
      const { id, signIn } = await setScene({ counter: 3 })
      return {
        actors: { person: signIn, owner: async () => { await ways.remove(ANN, id, { isEnd }) } },
        async check ({ done, order }) {
          if ((await listWays()).length > 0) return 'it is left'
          return done.includes('person') && order.lastIndexOf('person: users.get') > order.lastIndexOf('owner: users.update') ? 'judged after the removal' : undefined
        }
      }
    })
  })
}

t.test('one assertion that is sent twice at once signs in once, in every order', async (t) => {
  await race(t, scheduler, { least: 54, outcomes: ['one', 'two'] }, async () => {
    const { signIn } = await setScene()
    return { actors: { one: signIn, two: signIn } }
  })
})

t.test('two removals of the last two ways in, both passkeys: one stays, in every order', async (t) => {
  await race(t, scheduler, { least: 38, outcomes: ['one', 'two'] }, async () => {
    const { id } = await setScene()
    const other = createAuthenticator(ORIGIN)
    const second = await passkeys.prepare(ANN, 'enrolment', other.create(await passkeys.askNew((await users.get('ann'))!, 'enrolment')))
    await ways.name(ANN, [second])
    await users.update('ann', { unset: ['password'] })
    const remove = (way: string) => async () => { await ways.remove(ANN, way, { isEnd: false }) }
    return {
      actors: { one: remove(id), two: remove(second) },
      async check ({ done }) {
        const left = await listWays()
        return left.join() === (done[0] === 'one' ? second : id) ? undefined : `${left.length} are left`
      }
    }
  })
})
