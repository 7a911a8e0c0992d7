import t, { type Test } from 'tap'
import { storeError } from '../../lib/errors.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { createTestClock } from '../../testing/index.ts'
import { reuseMongoDatabase } from '../helpers/mongo-database.ts'
import { IS_ELSEWHERE, MONGODB_URL } from '../helpers/mongodb.ts'
import { type Answer, type App, type Harness, askCode, createFile, getCode, startHarness } from './harness.ts'
import type { Page } from './browser.ts'
import { type Interposed, interpose } from './interpose.ts'

// Each order needs a new sign-in, which takes long on a slow machine.
t.setTimeout(480_000)

/** More store operations than any request here makes. */
const MANY = 60

const ADMIN = { user_id: 'nobody', isAdmin: true }

/** Decides on the confirmation page of a device code. A user who approves must also consent. */
async function approve (page: Page, isApproved: boolean): Promise<Page> {
  if (!isApproved) return await page.submit({ abort: 'yes' })
  const next = await page.submit()
  return next.title.startsWith('Continue to') ? await next.submit({ decision: 'allow' }) : next
}

interface Case extends Harness { app: App, interposed: Interposed }

/** Changes that revoke every earlier token. Undoing one must not revive any. */
const ENDINGS: Record<string, { end: (c: Case) => Promise<unknown>, undo?: (c: Case) => Promise<unknown> }> = {
  'a password change': {
    end: ({ kit, user }) => kit.app.identity.users.patchOwn(user.user_id, { data: { password: 'another' } }),
    undo: ({ kit, user }) => kit.app.identity.users.patchOwn(user.user_id, { data: { password: user.password } })
  },
  disabling: {
    end: ({ kit, user }) => kit.app.identity.users.patch(user.user_id, { disable: true }, ADMIN),
    undo: ({ kit, user }) => kit.app.identity.users.patch(user.user_id, { disable: false }, ADMIN)
  },
  'ending all sessions': { end: ({ kit, user }) => kit.app.identity.tokenSessions.end(user.user_id) },
  'a new secret': {
    end: ({ kit, app }) => kit.app.identity.clients.patch(app.client_id, { regen_secret: true }, ADMIN),
    undo: async ({ kit, app }) => { app.client_secret = (await kit.app.identity.clients.require(app.client_id, ADMIN)).clientSecret ?? '' }
  },
  'deleting the client': {
    end: ({ kit, app }) => kit.app.identity.clients.remove(app.client_id, ADMIN),
    undo: async (c) => { c.app = await c.register() }
  },
  'deleting the user': {
    end: ({ kit, user }) => kit.app.identity.users.remove(user.user_id, ADMIN),
    undo: async (c) => {
      const { kit, user } = c
      Object.assign(user, await kit.app.identity.users.create({ data: { account: user.account, password: user.password } }))
      c.app = await c.register()
    }
  }
}

const take = async ({ post, app }: Case, fields: Record<string, string>) => await post('token', fields, app)

/** Requests that race with a revocation. Each is prepared before it, and resolves to its answer. */
const REQUESTS: Record<string, (c: Case) => Promise<() => Promise<Answer>>> = {
  'a code exchange': async (c) => {
    const code = await getCode(c, c.app)
    return async () => await take(c, code)
  },
  'a refresh': async (c) => {
    const { kit: { app: { identity } }, user, app } = c
    const { refresh_token = '' } = await identity.tokens.mint({ user_id: user.user_id, client_id: app.client_id, refresh: true })
    return async () => await take(c, { grant_type: 'refresh_token', refresh_token })
  },
  'a sign-in and its exchange': async (c) => async () => {
    try {
      return await take(c, await getCode(c, c.app))
    } catch {
      return { status: 400, headers: new Headers(), body: {} }
    }
  },
  'client credentials': async (c) => async () => await take(c, { grant_type: 'client_credentials' })
}

/** Pairs in which the request may succeed after the revocation. */
const RENEWED: Record<string, string[]> = {
  'a sign-in and its exchange': ['a new secret', 'ending all sessions'],
  'client credentials': ['a password change', 'ending all sessions']
}

/** Returns the URL of a new database. */
type Place = (t: Test) => string

/** What engines do differently is how they change a record of each kind: on MongoDB, one ending of each kind suffices. */
const OF_EACH_KIND = ['a password change', 'a new secret', 'deleting the client', 'deleting the user']

async function start (t: Test, place: Place): Promise<Case> {
  const clock = createTestClock()
  const store = await openStore(place(t), { collections: COLLECTIONS, now: clock.now })
  t.teardown(() => store.close())
  const interposed = interpose(store)
  const harness = await startHarness(t, { store: interposed.store })
  return { ...harness, interposed, app: await harness.register() }
}

async function findSurvivor (c: Case, { body }: Answer): Promise<string | undefined> {
  const { access_token, refresh_token } = body as Record<string, string | undefined>
  if (access_token !== undefined && (await c.get('tokeninfo', access_token)).status !== 401) return 'an access token'
  if (refresh_token === undefined) return
  const again = await take(c, { grant_type: 'refresh_token', refresh_token })
  if (again.status === 200) return 'a refresh token'
}

/** Whoever comes in time is answered, and whoever comes too late is refused. */
const BOTH = ['answered', 'refused']

const nameOutcome = (answer: Answer | undefined): string => answer?.status === 200 ? 'answered' : 'refused'

function race (t: Test, place: Place, endings = Object.keys(ENDINGS)): void {
  for (const [request, prepare] of Object.entries(REQUESTS)) {
    t.test(`${request} during a revocation: no valid token in any order`, async (t) => {
      const c = await start(t, place)
      // The cleanup may be interrupted anywhere: the one write must suffice.
      c.interposed.stopSweeping()
      for (const ending of endings) {
        if (RENEWED[request]?.includes(ending)) continue
        const { end, undo } = ENDINGS[ending]!
        const survivors: string[] = []
        const outcomes = new Set<string>()
        let orders = 0
        for (let k = 0; k < MANY; k++) {
          const run = await prepare(c)
          await c.kit.app.identity.tokens.settle()
          // With too many pending events, a change of the user would be refused.
          await c.kit.app.identity.events.flush()
          let answer: Answer | undefined
          const fired = await c.interposed.at(k, () => end(c), async () => { answer = await run() })
          if (!fired) await end(c)
          await undo?.(c)
          orders++
          outcomes.add(nameOutcome(answer))
          const survivor = await findSurvivor(c, answer as Answer)
          if (survivor !== undefined) survivors.push(`${survivor} of order ${k}`)
          if (!fired) break
        }
        t.strictSame(survivors, [], `${ending}: ${request}`)
        t.strictSame([...outcomes].sort(), BOTH, `${ending}: ${request}`)
        t.ok(orders > 2 && orders < MANY, `${ending}: ${orders} orders`)
      }
    })
  }

  t.test('a logout during a refresh: no valid token in any order', async (t) => {
    const c = await start(t, place)
    const { tokens } = c.kit.app.identity
    const outcomes = new Set<string>()
    let k = 0
    for (let fired = true; fired; k++) {
      const { access_token, refresh_token = '' } = await tokens.mint({ user_id: c.user.user_id, client_id: c.app.client_id, refresh: true })
      const { token } = await tokens.authenticate(access_token)
      let answer: Answer | undefined
      fired = await c.interposed.at(k, () => tokens.revoke(token), async () => { answer = await take(c, { grant_type: 'refresh_token', refresh_token }) })
      if (!fired) await tokens.revoke(token)
      outcomes.add(nameOutcome(answer))
      t.equal(await findSurvivor(c, answer as Answer), undefined, `order ${k}`)
    }
    t.ok(k > 5, `${k} orders`)
    t.strictSame([...outcomes].sort(), BOTH)
  })

  // Two browsers have the confirmation page of one code open. The first decision counts, and the other browser says so.
  for (const [name, answers] of Object.entries({ 'two users approve': ['yes', 'yes'], 'one user approves and one refuses': ['yes', 'no'] })) {
    t.test(`${name} one device code: one decision counts, in any order`, async (t) => {
      const c = await start(t, place)
      const DONE = { yes: 'Device connected', no: 'The device was refused' }

      const browsers = [c.browser(), c.browser()]
      for (const browser of browsers) await getCode(c, c.app, {}, browser)

      /** Opens the confirmation page in a signed-in browser. The returned function decides and resolves to the result shown. */
      async function prepare (user_code: string, which: 0 | 1) {
        const browser = browsers[which]!
        const typed = await (await browser.open('/api/v1/auth/device')).submit({ user_code })
        return async () => {
          const page = await approve(typed, answers[which] === 'yes')
          const result = [DONE.yes, DONE.no, 'The code was used already'].find((text) => `${page.title} ${page.text}`.includes(text))
          return result ?? page.text
        }
      }

      let k = 0
      for (let fired = true; fired; k++) {
        const { user_code, device_code } = (await c.post('device_authorization', { scope: 'openid' }, c.app)).body as Record<string, string>
        const [one, two] = [await prepare(user_code ?? '', 0), await prepare(user_code ?? '', 1)]
        const results: string[] = []
        const second = async () => { results.push(await two()) }
        fired = await c.interposed.at(k, second, async () => { results.push(await one()) })
        if (!fired) await second()
        const [done, other] = results.sort((a) => a === DONE.yes || a === DONE.no ? -1 : 1)
        t.equal(other, 'The code was used already', `order ${k}`)
        const { status, body } = await take(c, { grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code: device_code ?? '' })
        if (done === DONE.yes) t.equal(status, 200, `order ${k}: the device is connected`)
        else t.match([done, body], [DONE.no, { error: 'access_denied' }], `order ${k}: the device is refused`)
      }
      t.ok(k > 3, `${k} orders`)
    })
  }

  t.test('a store failure during the approval of a device code is shown as a failure', async (t) => {
    const c = await start(t, place)
    const browser = c.browser()
    await getCode(c, c.app, {}, browser)
    const outcomes = new Set<string>()
    for (let [k, fired] = [0, true]; fired; k++) {
      const { user_code = '' } = (await c.post('device_authorization', { scope: 'openid' }, c.app)).body as Record<string, string>
      const typed = await (await browser.open('/api/v1/auth/device')).submit({ user_code })
      fired = await c.interposed.failAt(k, storeError(new Error('broken')), async () => {
        const page = await approve(typed, true)
        outcomes.add(`${page.response.status} ${page.text.includes('used already') ? 'used already' : page.title}`)
      })
    }
    t.match([...outcomes].sort(), [/^200 Device connected/, ...Array(outcomes.size - 1).fill(/^503 (?!used already)/)], [...outcomes].join())
  })

  t.test('a sign-out during an authorization of the same browser: no sign-in and no valid token in any order', async (t) => {
    const c = await start(t, place)
    const { store } = c.kit.app.identity
    const outcomes = new Set<string>()
    let k = 0
    for (let fired = true; fired; k++) {
      const browser = c.browser()
      await getCode(c, c.app, { scope: 'openid' }, browser)
      const page = await browser.open('/api/v1/auth/session/end')
      const { url, verifier } = askCode(c.app, { scope: 'openid', prompt: 'none' })
      let code: string | null | undefined
      const signOut = async () => { t.equal((await page.submit({ logout: 'yes' })).title, 'Signed out') }
      fired = await c.interposed.at(k, signOut, async () => { code = (await browser.open(url)).left?.searchParams.get('code') })
      if (!fired) await signOut()
      t.equal(await store.collection('sign_in_sessions').count({ equal: { user_id: c.user.user_id } }), 0, `order ${k}: no sign-in is left`)
      outcomes.add(typeof code === 'string' ? 'a code' : 'none')
      if (typeof code !== 'string') continue
      const answer = await take(c, { grant_type: 'authorization_code', code, code_verifier: verifier, redirect_uri: c.app.redirect_uri })
      t.equal(await findSurvivor(c, answer), undefined, `order ${k}`)
    }
    t.ok(k > 5, `${k} orders`)
    t.strictSame([...outcomes].sort(), ['a code', 'none'])
  })

  t.test('two concurrent uses of a code: no valid token in any order', async (t) => {
    const c = await start(t, place)
    let k = 0
    for (let fired = true; fired; k++) {
      const code = await getCode(c, c.app)
      let first: Answer | undefined
      let second: Answer | undefined
      const again = async () => { second = await take(c, code) }
      fired = await c.interposed.at(k, again, async () => { first = await take(c, code) })
      if (!fired) await again()
      for (const answer of [first, second]) t.equal(await findSurvivor(c, answer as Answer), undefined, `order ${k}`)
    }
    t.ok(k > 5)
  })
}

if (!IS_ELSEWHERE) t.test('on sqlite', async (t) => race(t, createFile))

t.test('on mongodb', { skip: MONGODB_URL === undefined && 'MONGODB_URL is not set' }, async (t) => race(t, (t) => reuseMongoDatabase(t, MONGODB_URL!), OF_EACH_KIND))
