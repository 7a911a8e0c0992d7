import t, { type Test } from 'tap'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { storeError } from '../../lib/errors.ts'
import { createTestClock } from '../../testing/index.ts'
import { reuseMongoDatabase } from '../helpers/mongo-database.ts'
import { IS_ELSEWHERE, MONGODB_URL } from '../helpers/mongodb.ts'
import type { Browser } from '../oidc/browser.ts'
import { type App, type Harness, askCode, createFile, startHarness } from '../oidc/harness.ts'
import { type Interposed, interpose } from '../oidc/interpose.ts'
import { isSignedOut } from '../pages/visits.ts'
import { agree, answerOf, leave, through } from './through.ts'

// Each order needs a new sign-in, which takes long on a slow machine.
t.setTimeout(480_000)

/** More store calls than any request here makes. */
const MANY = 90

interface Case extends Harness { app: App, interposed: Interposed }

/** What is left of a sign-in: its browser, and what its app has got. */
interface Left { browser: Browser, refresh?: string }

async function start (t: Test, database: string): Promise<Case> {
  const clock = createTestClock()
  const store = await openStore(database, { collections: COLLECTIONS, now: clock.now })
  t.teardown(() => store.close())
  const interposed = interpose(store)
  const harness = await startHarness(t, { store: interposed.store, signUp: true, upstream: { domains: ['corp.example'], only: true } })
  const c = { ...harness, interposed, app: await harness.register() }
  // The account is there before the races: a new person is asked first, and has no session until they have agreed.
  become(c)
  const browser = c.browser()
  await through(browser, '/api/v1/auth/upstream/test')
  if (isSignedOut(await browser.open('/account'))) throw new Error('nothing to end')
  return c
}

let sessions = 0

/** Whoever signs in there, and in which session. */
interface Person { sub: string, sid: string }

/** Says who signs in there next, in a session of their own. */
function become ({ kit }: Case, isNew = false): Person {
  kit.clock.advance(1000)
  const sid = `s${++sessions}`
  const sub = isNew ? `person-${sid}` : 'mia'
  kit.upstream({ sub, email: `${sub}@corp.example`, email_verified: true, sid })
  return { sub, sid }
}

async function redeem ({ post, app }: Case, code: string, verifier: string): Promise<string | undefined> {
  const { body } = await post('token', { code, code_verifier: verifier, redirect_uri: app.redirect_uri, grant_type: 'authorization_code' }, app)
  return body.refresh_token as string | undefined
}

const readCode = ({ left }: { left: URL | undefined }): string => left?.searchParams.get('code') ?? ''

/** The request of a new person, who is asked once. */
const AGREEMENT = 'an agreement to a new account, and its code'

/** Requests that race with a logout token. Each is prepared before it. */
const REQUESTS: Record<string, (c: Case) => Promise<() => Promise<Left>>> = {
  async 'an answer at the account pages' (c) {
    const browser = c.browser()
    const answer = await answerOf(await leave(browser, '/api/v1/auth/upstream/test'))
    return async () => {
      await browser.open(answer)
      return { browser }
    }
  },
  async 'an answer for an app, and its code' (c) {
    const browser = c.browser()
    const { url, verifier } = askCode(c.app, { upstream: 'test' })
    const answer = await answerOf(await leave(browser, url))
    return async () => {
      const refresh = await redeem(c, readCode(await browser.open(answer)), verifier)
      return { browser, ...(refresh !== undefined && { refresh }) }
    }
  },
  async 'a code of a browser that is signed in' (c) {
    const browser = c.browser()
    await browser.open(await answerOf(await leave(browser, '/api/v1/auth/upstream/test')))
    return async () => {
      const { url, verifier } = askCode(c.app)
      const refresh = await redeem(c, readCode(await browser.open(url)), verifier)
      return { browser, ...(refresh !== undefined && { refresh }) }
    }
  },
  async 'a refresh' (c) {
    const browser = c.browser()
    const { url, verifier } = askCode(c.app, { upstream: 'test' })
    const refresh = await redeem(c, readCode(await browser.open(await answerOf(await leave(browser, url)))), verifier)
    if (refresh === undefined) throw new Error('nothing to refresh')
    return async () => {
      const { body } = await c.post('token', { grant_type: 'refresh_token', refresh_token: refresh }, c.app)
      return { browser, refresh: String(body.refresh_token ?? refresh) }
    }
  },
  async [AGREEMENT] (c) {
    const browser = c.browser()
    const { url, verifier } = askCode(c.app, { upstream: 'test' })
    const page = await browser.open(await answerOf(await leave(browser, url)))
    if (page.title !== 'Create your account') throw new Error(`not asked: ${page.title}`)
    return async () => {
      const refresh = await redeem(c, readCode(await agree(page)), verifier)
      return { browser, ...(refresh !== undefined && { refresh }) }
    }
  }
}

/** What the provider says, about the session or about its person. */
const TOKENS: Record<string, (person: Person) => Record<string, string>> = {
  session: ({ sid }) => ({ sid }),
  person: ({ sub }) => ({ sub })
}

async function findSurvivor (c: Case, { browser, refresh }: Left): Promise<string | undefined> {
  if (!isSignedOut(await browser.open('/account'))) return 'a browser'
  if (refresh === undefined) return undefined
  const { status } = await c.post('token', { grant_type: 'refresh_token', refresh_token: refresh }, c.app)
  return status === 200 ? 'an app' : undefined
}

/** What runs in the middle of the other: the provider's word in the middle of the request, or the request in the middle of that. */
const NESTED = ['token', 'request'] as const

/** Tries each order of one request and one token. */
async function tryOrders (t: Test, c: Case, [request, about, nested]: readonly [string, string, typeof NESTED[number]]): Promise<void> {
  const what = `${request}, the end of a ${about}, the ${nested} in the middle`
  const survivors: string[] = []
  let orders = 0
  for (let k = 0; k < MANY; k++) {
    const person = become(c, request === AGREEMENT)
    const run = await REQUESTS[request]!(c)
    c.kit.clock.advance(1000)
    let left: Left | undefined
    const go = async () => { left = await run() }
    const end = async () => {
      const response = await fetch(`${c.url}/api/v1/auth/upstream/test/backchannel-logout`, { method: 'POST', body: new URLSearchParams({ logout_token: c.kit.upstream.logoutToken(TOKENS[about]!(person)) }) })
      if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`)
    }
    const fired = nested === 'token' ? await c.interposed.at(k, end, go) : await c.interposed.at(k, go, end)
    if (!fired) await (nested === 'token' ? end() : go())
    await c.kit.flush()
    orders++
    const survivor = await findSurvivor(c, left!)
    if (survivor !== undefined) survivors.push(`${survivor} of order ${k}`)
    if (!fired) break
  }
  t.strictSame(survivors, [], what)
  t.ok(orders > 2 && orders < MANY, `${what}: ${orders} orders`)
  t.comment(`${what}: ${orders} orders`)
}

async function race (t: Test, database: string, tokens = Object.keys(TOKENS), middle: readonly typeof NESTED[number][] = NESTED): Promise<void> {
  const c = await start(t, database)
  for (const request of Object.keys(REQUESTS)) {
    for (const about of tokens) {
      for (const nested of middle) await tryOrders(t, c, [request, about, nested])
    }
  }
}

t.test('a store that fails in the middle: the token is good until everything has ended, and then no more', async (t) => {
  const c = await start(t, createFile(t))
  const survivors: string[] = []
  let failures = 0
  for (let k = 0; k < MANY; k++) {
    const { sub, sid } = become(c)
    const browser = c.browser()
    const { url, verifier } = askCode(c.app, { upstream: 'test' })
    const refresh = await redeem(c, readCode(await browser.open(await answerOf(await leave(browser, url)))), verifier)
    const body = new URLSearchParams({ logout_token: c.kit.upstream.logoutToken({ sid, sub }) })
    t.notOk(isSignedOut(await browser.open('/account')))
    const send = async () => (await fetch(`${c.url}/api/v1/auth/upstream/test/backchannel-logout`, { method: 'POST', body })).status
    let status = 0
    const fired = await c.interposed.failAt(k, storeError('the store fails'), async () => { status = await send() })
    if (status !== 200) {
      failures++
      t.equal(status, 503)
      const again = await send()
      // The relay may have finished it meanwhile.
      if (again === 400) t.ok(isSignedOut(await browser.open('/account')), `order ${k}`)
      else t.equal(again, 200, `order ${k}`)
    }
    await c.kit.flush()
    const survivor = await findSurvivor(c, { browser, ...(refresh !== undefined && { refresh }) })
    if (survivor !== undefined) survivors.push(`${survivor} of order ${k}`)
    t.equal(await send(), 400, 'it is good once')
    if (!fired) break
  }
  t.strictSame(survivors, [])
  t.ok(failures > 3, `${failures} failures`)
})

t.test('a failure after the end was decided: the relay of events finishes it, although nobody sends the token again', async (t) => {
  const c = await start(t, createFile(t))
  const survivors: string[] = []
  let finished = 0
  for (let k = 0; k < MANY; k++) {
    const { sid } = become(c)
    const browser = c.browser()
    await browser.open(await answerOf(await leave(browser, '/api/v1/auth/upstream/test')))
    t.notOk(isSignedOut(await browser.open('/account')))
    const count = async () => (await c.kit.events.list({ type: 'identity.signed_out' })).length
    const before = await count()
    let hasFailed = false
    const fired = await c.interposed.failAt(k, storeError('the store fails'), async () => {
      await c.kit.app.identity.upstreams!.logouts.receive('test', c.kit.upstream.logoutToken({ sid })).catch(() => { hasFailed = true })
    })
    const isDecided = await count() > before
    if (isDecided && !isSignedOut(await browser.open('/account'))) survivors.push(`a browser of order ${k}`)
    if (isDecided && hasFailed) finished++
    if (!fired) break
  }
  t.strictSame(survivors, [])
  t.ok(finished > 0, `${finished} ends were finished later`)
})

if (!IS_ELSEWHERE) t.test('a logout token and a request at once: nothing of the sign-in is left, in any order, on sqlite', async (t) => await race(t, createFile(t)))

t.test('the same on mongodb', { skip: MONGODB_URL === undefined && 'MONGODB_URL is not set' }, async (t) => await race(t, reuseMongoDatabase(t, MONGODB_URL!), ['session'], ['token']))
