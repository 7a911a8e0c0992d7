import t, { type Test } from 'tap'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { createTestClock } from '../../testing/index.ts'
import { reuseMongoDatabase } from '../helpers/mongo-database.ts'
import { IS_ELSEWHERE, MONGODB_URL } from '../helpers/mongodb.ts'
import type { Browser } from '../oidc/browser.ts'
import { type Harness, createFile, startHarness } from '../oidc/harness.ts'
import { type Interposed, interpose } from '../oidc/interpose.ts'
import { addUser, isSignedOut } from '../pages/visits.ts'
import { answerOf, leave, through } from './through.ts'

// What was proved before an end of sessions or a new password does not finish a sign-in after it: the end comes before each store operation
// of the request that finishes the sign-in.

t.setTimeout(480_000)

/** More store calls than any request here makes. */
const MANY = 90

const START = '/api/v1/auth/upstream/test'
const OPERATOR = { user_id: 'operator', isAdmin: true }

interface Case extends Harness { interposed: Interposed }

interface Person { user_id: string, account: string, password: string }

let people = 0

const makePerson = async (c: Case): Promise<Person> => await addUser(c, `person-${++people}@corp.example`)

function become ({ kit }: Case, { user_id, account }: Person): void {
  kit.clock.advance(1000)
  kit.upstream({ sub: user_id, email: account, email_verified: true })
}

/** The form that waits for the password of somebody who comes with a new identity. */
async function askToConfirm (c: Case, person: Person, browser: Browser) {
  become(c, person)
  const page = await through(browser, START)
  if (!/An account with your email address already exists/.test(page.text)) throw new Error(`not asked: ${page.title}`)
  return page
}

/** A road to a sign-in: what was done before the race, and the request that finishes it. */
interface Road {
  /** Whether the request itself proves who the person is: then an end that comes before the proof is none of this sign-in. */
  isProof?: true
  prepare: (c: Case, person: Person, browser: Browser) => Promise<() => Promise<unknown>>
}

const ROADS: Record<string, Road> = {
  'a password': {
    isProof: true,
    async prepare (_c, { account, password }, browser) {
      const page = await browser.open('/account/sign-in')
      return async () => await page.submit({ account, password })
    }
  },
  'a second factor': {
    async prepare ({ kit }, { user_id, account, password }, browser) {
      const { code } = await kit.totp(user_id)
      kit.clock.advance(30_000)
      const second = await (await browser.open('/account/sign-in')).submit({ account, password })
      const typed = await code()
      return async () => await second.submit({ code: typed })
    }
  },
  "a provider's answer": {
    async prepare (c, person, browser) {
      const { account, password } = person
      await (await askToConfirm(c, person, c.browser())).submit({ account, password })
      become(c, person)
      const answer = await answerOf(await leave(browser, START))
      return async () => await browser.open(answer)
    }
  },
  'the password for an identity that waits': {
    isProof: true,
    async prepare (c, person, browser) {
      const { account, password } = person
      const page = await askToConfirm(c, person, browser)
      return async () => await page.submit({ account, password })
    }
  }
}

const ENDS: Record<string, (c: Case, person: Person) => Promise<unknown>> = {
  'an end of sessions': async ({ kit }, { user_id }) => await kit.app.identity.tokenSessions.end(user_id),
  'a new password': async ({ kit }, { user_id }) => await kit.app.identity.users.patch(user_id, { data: { password: 'another long password' } }, OPERATOR)
}

async function start (t: Test, database: string): Promise<Case> {
  const clock = createTestClock()
  const store = await openStore(database, { collections: COLLECTIONS, now: clock.now })
  t.teardown(() => store.close())
  const interposed = interpose(store)
  return { ...await startHarness(t, { store: interposed.store, signUp: true, rateLimit: 100_000, oidc: { signInLimit: 10_000 }, upstream: {} }), interposed }
}

/** Tries each order of one road and one end. */
async function tryOrders (t: Test, c: Case, road: string, what: string): Promise<void> {
  const { isProof = false, prepare } = ROADS[road]!
  const survivors: number[] = []
  let k = 0
  for (let fired = true; fired && k < MANY; k++) {
    const person = await makePerson(c)
    const browser = c.browser()
    const run = await prepare(c, person, browser)
    c.kit.clock.advance(1000)
    const end = async () => await ENDS[what]!(c, person)
    fired = await c.interposed.at(k, end, run)
    const isIn = async () => !isSignedOut(await browser.open('/account'))
    if (!fired) {
      t.ok(await isIn(), `${road}: without ${what} it signs in`)
      await end()
    }
    if (await isIn()) survivors.push(k)
  }
  t.ok(k > 2 && k < MANY, `${road}, ${what}: ${k} orders`)
  if (!isProof || what === 'a new password') {
    t.strictSame(survivors, [], `${road}, ${what}`)
    return
  }
  // Before the record is read that the proof is about, and never after it.
  t.strictSame(survivors, survivors.map((_order, index) => index), `${road}, ${what}`)
  t.ok(survivors.length > 0 && survivors.length < k - 1, `${survivors.length} of ${k} sign-ins are later than the end`)
}

async function play (t: Test, database: string, roads = Object.keys(ROADS), ends = Object.keys(ENDS)): Promise<void> {
  const c = await start(t, database)
  for (const road of roads) for (const what of ends) await t.test(`${road}, ${what}`, async (t) => await tryOrders(t, c, road, what))
}

if (!IS_ELSEWHERE) t.test('what was proved before an end does not finish after it, in any order, on sqlite', async (t) => await play(t, createFile(t)))

t.test('the same on mongodb', { skip: MONGODB_URL === undefined && 'MONGODB_URL is not set' }, async (t) => await play(t, reuseMongoDatabase(t, MONGODB_URL!), ["a provider's answer"], ['an end of sessions']))
