import { createLocalJWKSet, decodeJwt, type JSONWebKeySet, jwtVerify } from 'jose'
import t, { type Test } from 'tap'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { settleMails } from '../helpers/mails.ts'
import { reuseMongoDatabase } from '../helpers/mongo-database.ts'
import { MONGODB_URL } from '../helpers/mongodb.ts'
import { callAs } from '../helpers/people.ts'
import { type Received, startReceiver } from '../helpers/receiver.ts'
import { wrapStore } from '../helpers/wrap-store.ts'
import { addUser, enter, post as postPage } from '../pages/visits.ts'
import { type App, type Harness, askCode, createFile, getCode, startHarness } from './harness.ts'
import type { Browser } from './browser.ts'

t.setTimeout(180_000)

const EVENT = 'http://schemas.openid.net/event/backchannel-logout'
const ADMIN = { user_id: 'nobody', isAdmin: true }

/** Verifies a logout token as a client does (Back-Channel Logout 1.0, 2.6). */
async function verify ({ url }: Harness, { type, body }: Received) {
  if (type !== 'application/x-www-form-urlencoded') throw new Error(`not a form: ${type}`)
  const token = body.get('logout_token') ?? ''
  const issuer = await (await fetch(`${url}/.well-known/openid-configuration`)).json() as { issuer: string, jwks_uri: string }
  const keys = createLocalJWKSet(await (await fetch(issuer.jwks_uri)).json() as JSONWebKeySet)
  const { payload } = await jwtVerify(token, keys, {
    issuer: issuer.issuer, typ: 'logout+jwt', algorithms: ['RS256'], requiredClaims: ['iat', 'exp', 'jti', 'events', 'aud']
  })
  if ('nonce' in payload || JSON.stringify(payload.events) !== JSON.stringify({ [EVENT]: {} })) throw new Error('not a logout token')
  if (payload.exp! - payload.iat! > 120) throw new Error('lives too long')
  return payload as { sub: string, aud: string, jti: string, sid?: string }
}

async function setUri ({ kit }: Harness, { client_id }: App, backchannelLogoutUri: string | null): Promise<void> {
  await kit.app.identity.clients.patch(client_id, { data: { backchannelLogoutUri } }, ADMIN)
}

/** Signs in to an app; resolves to the claims of the ID token, and the access token. */
async function enterApp (harness: Harness, app: App, browser: Browser, scope = 'openid') {
  const { body } = await harness.post('token', await getCode(harness, app, { scope }, browser), app)
  return { ...decodeJwt<{ sid?: string }>(String(body.id_token)), access_token: String(body.access_token), refresh_token: body.refresh_token as string | undefined }
}

interface Setting extends Harness {
  /** Two apps that receive logout tokens, and one that does not. */
  one: App
  two: App
  deaf: App
  received: Received[]
  browser1: Browser
  browser2: Browser
}

/** A user who is signed in to all apps in one browser, and in another one to the first app. */
async function prepare (t: Test, harness: Harness): Promise<Setting & { sids: Record<'one' | 'two' | 'deaf' | 'elsewhere', string | undefined> }> {
  const { kit, user } = harness
  await kit.reset()
  Object.assign(user, await kit.app.identity.users.create({ data: { account: user.account, password: user.password } }))
  const { received, url } = await startReceiver(t)
  const [one, two, deaf] = [await harness.register({ name: 'One' }), await harness.register({ name: 'Two', public: true }), await harness.register({ name: 'Deaf' })]
  for (const app of [one, two]) await setUri(harness, app, `${url}/${app.client_id}`)
  const [browser1, browser2] = [harness.browser(), harness.browser()]
  const enterOther = async () => {
    harness.kit.clock.advance(1000)
    return await enterApp(harness, one, browser2)
  }
  const sids = {
    one: (await enterApp(harness, one, browser1)).sid,
    two: (await enterApp(harness, two, browser1, 'openid offline_access')).sid,
    deaf: (await enterApp(harness, deaf, browser1)).sid,
    elsewhere: (await enterOther()).sid
  }
  t.notOk(sids.deaf, 'no sid for whoever is not told')
  return { ...harness, one, two, deaf, received, browser1, browser2, sids }
}

/** Returns the notifications of the apps so far, and clears them. */
async function takeTold (setting: Setting): Promise<string[]> {
  await setting.kit.flush()
  const tokens = await Promise.all(setting.received.splice(0).map(async (one) => ({ ...await verify(setting, one), path: one.path })))
  return tokens.map(({ aud, sub, sid, path }) => {
    const name = aud === setting.one.client_id ? 'one' : aud === setting.two.client_id ? 'two' : aud
    if (path !== `/${aud}` || sub !== setting.user.user_id) return `wrong: ${path} ${sub}`
    return `${name} ${sid ?? 'all'}`
  }).sort()
}

t.test('the metadata says so', async (t) => {
  const { url } = await startHarness(t)
  t.match(await (await fetch(`${url}/.well-known/openid-configuration`)).json(), { backchannel_logout_supported: true, backchannel_logout_session_supported: true })
})

/** Every way in which sign-in sessions end, and the notifications of the apps: of one session by its sid, or of all. */
const ENDINGS: Record<string, { end: (setting: Setting) => Promise<unknown>, told: (sids: Record<string, string | undefined>) => string[] }> = {
  'a sign-out that an app asked for': {
    async end ({ browser1, one }) {
      const page = await browser1.open(`/api/v1/auth/session/end?client_id=${one.client_id}`)
      await page.submit({ logout: 'yes' })
    },
    told: ({ one, two }) => [`one ${one}`, `two ${two}`]
  },
  'a sign-out of one app only': {
    async end ({ browser1, one }) {
      const page = await browser1.open(`/api/v1/auth/session/end?client_id=${one.client_id}`)
      await page.submit()
    },
    told: ({ one }) => [`one ${one}`]
  },
  'a sign-out at the account pages': {
    async end ({ browser1 }) {
      const page = await browser1.open('/account')
      await postPage(page, '/account/sign-out')
    },
    told: ({ one, two }) => [`one ${one}`, `two ${two}`]
  },
  'ending a browser at the account pages': {
    async end (setting) {
      const own = await enter(setting, '/account/sessions')
      const uids = (await setting.kit.app.identity.ownSessions.listBrowsers(setting.user.user_id)).entries.map(({ uid }) => uid)
      // The last used first: this session, the other one, and the first one, which has both apps.
      await postPage(own, '/account/sessions', { browser: uids[2] ?? '' })
    },
    told: ({ one, two }) => [`one ${one}`, `two ${two}`]
  },
  "a sign-in of somebody else in the same browser, at an app's": {
    async end (setting) {
      const bob = await addUser(setting, 'bob')
      const page = await setting.browser1.open(askCode(setting.deaf, { prompt: 'login' }).url)
      await page.submit({ account: bob.account, password: bob.password })
    },
    told: ({ one, two }) => [`one ${one}`, `two ${two}`]
  },
  'ending all sessions over the API': {
    async end ({ kit, user }) {
      const { headers } = await kit.mint({ user: user.user_id })
      await kit.inject({ method: 'DELETE', url: '/api/v1/auth/sessions?all=true', headers })
    },
    told: () => ['one all', 'two all']
  },
  'ending all sessions but the own one over the API': {
    async end ({ kit, user }) {
      const { headers } = await kit.mint({ user: user.user_id })
      await kit.inject({ method: 'DELETE', url: '/api/v1/auth/sessions', headers })
    },
    told: () => ['one all', 'two all']
  },
  'ending all other sessions at the account pages': {
    async end ({ browser1 }) {
      const page = await browser1.open('/account/sessions')
      await postPage(page, '/account/sessions', { others: 'yes' })
    },
    // The apps of this browser stay signed in, but the tokens of its grants have ended, as documented.
    told: ({ elsewhere }) => [`one ${elsewhere}`]
  },
  'a password change over the API': {
    end: async ({ kit, user }) => await kit.app.identity.users.patchOwn(user.user_id, { data: { password: 'another horse' } }),
    told: () => ['one all', 'two all']
  },
  'a password that an administrator sets': {
    end: async ({ kit, user }) => await kit.app.identity.users.patch(user.user_id, { data: { password: 'another horse' } }, ADMIN),
    told: () => ['one all', 'two all']
  },
  'a password reset by a link': {
    async end ({ kit, user }) {
      const anybody = callAs(kit)
      await anybody.post('/auth/forgot', { data: { account: user.account } })
      const { token } = await kit.mails.next({ to: user.account })
      await anybody.post('/auth/reset', { data: { token, password: 'another horse' } })
    },
    told: () => ['one all', 'two all']
  },
  'a change of the address that is undone': {
    async end ({ kit, user }) {
      const anybody = callAs(kit)
      const { headers } = await kit.mint({ user: user.user_id })
      const thief = callAs(kit, headers)
      await thief.post('/user/email', { data: { email: 'thief@example.com', current_password: user.password } })
      await thief.post('/auth/verify', { data: { token: (await kit.mails.next({ to: 'thief@example.com' })).token } })
      await anybody.post('/auth/undo', { data: { token: (await kit.mails.next({ to: user.account })).token } })
    },
    told: () => ['one all', 'two all']
  },
  'disabling the user': {
    end: async ({ kit, user }) => await kit.app.identity.users.patch(user.user_id, { disable: true }, ADMIN),
    told: () => ['one all', 'two all']
  },
  'deleting the user': {
    end: async ({ kit, user }) => await kit.app.identity.users.remove(user.user_id, ADMIN),
    told: () => ['one all', 'two all']
  }
}

/** Returns the URL of a new database. */
type Place = (t: Test) => string

async function walk (t: Test, place: Place): Promise<void> {
  const inner = await openStore(place(t), { collections: COLLECTIONS, now: Date.now })
  t.teardown(() => inner.close())
  let log: string[] = []
  const store = wrapStore(inner, ({ collection, method }, run) => {
    if (collection === 'logouts' ? method === 'insert' : collection === 'grants' && method.startsWith('delete')) log.push(`${collection}.${method}`)
    return run()
  })
  const harness = await startHarness(t, { store })
  for (const [name, { end, told }] of Object.entries(ENDINGS)) {
    await t.test(name, async (t) => {
      const setting = await prepare(t, harness)
      t.ok(setting.sids.one && setting.sids.two && setting.sids.elsewhere)
      t.equal(new Set(Object.values(setting.sids)).size, 4, 'a sid for each session and app')
      setting.kit.clock.advance(1000)
      log = []
      await end(setting)
      t.strictSame(await takeTold(setting), told(setting.sids).sort())
      t.equal(log[0], 'logouts.insert', 'stored before anything that names the apps is removed')
      setting.kit.clock.advance(60 * 60 * 1000)
      t.strictSame(await takeTold(setting), [], 'and no more')
    })
  }
}

t.test('every ending notifies each app that the session signed in to, once', async (t) => {
  await t.test('on sqlite', async (t) => await walk(t, createFile))
  await t.test('on mongodb', { skip: MONGODB_URL === undefined && 'MONGODB_URL is not set' }, async (t) => await walk(t, (t) => reuseMongoDatabase(t, MONGODB_URL!)))
})

t.test('every ID token has the sid of the session, and none once the client is no longer notified', async (t) => {
  const harness = await startHarness(t)
  const app = await harness.register()
  const browser = harness.browser()
  t.notOk((await enterApp(harness, app, browser)).sid)
  await setUri(harness, app, 'https://app.example/logout')
  const first = await enterApp(harness, app, browser, 'openid offline_access')
  const { body } = await harness.post('token', { grant_type: 'refresh_token', refresh_token: first.refresh_token ?? '' }, app)
  t.equal(decodeJwt(String(body.id_token)).sid, first.sid)
  t.equal((await enterApp(harness, app, browser)).sid, first.sid, 'the same for the life of the session')
  t.not((await enterApp(harness, app, harness.browser())).sid, first.sid)
  await setUri(harness, app, null)
  t.notOk((await enterApp(harness, app, browser)).sid)
})

t.test('a receiver that hangs delays nothing: sign-outs, password changes and mails go on', async (t) => {
  const harness = await startHarness(t)
  const [slow, quick] = [await harness.register({ name: 'Slow' }), await harness.register({ name: 'Quick' })]
  const hanging = Promise.withResolvers<number>()
  const told = Promise.withResolvers<void>()
  const { url, received } = await startReceiver(t, async ({ path }) => {
    if (path === '/slow') return await hanging.promise
    told.resolve()
    return 204
  })
  await setUri(harness, slow, `${url}/slow`)
  await setUri(harness, quick, `${url}/quick`)
  const { kit, user } = harness
  const { users, logouts, store } = kit.app.identity
  for (let count = 0; count < 12; count++) {
    const browser = harness.browser()
    await enterApp(harness, slow, browser)
    const page = await browser.open('/api/v1/auth/session/end')
    t.equal((await page.submit({ logout: 'yes' })).title, 'Signed out')
  }
  const browser = harness.browser()
  await enterApp(harness, slow, browser)
  await enterApp(harness, quick, browser)
  await users.patchOwn(user.user_id, { data: { password: 'another horse' } })
  await kit.app.identity.tokens.settle()
  await settleMails(kit.app.identity)
  await told.promise
  t.equal(received.filter(({ path }) => path === '/slow').length, 2, 'at most two at once')
  t.equal(await store.collection('logouts').count({ equal: { state: 'due', client_id: slow.client_id } }), 13)
  hanging.resolve(200)
  await logouts.settle()
  t.equal(await store.collection('logouts').count({ equal: { state: 'done' } }), 14)
})

t.test('where a client is notified: at a public https URL, or a host that outboundHosts allows', async (t) => {
  const harness = await startHarness(t, { production: true, createDatabase: true, outboundHosts: ['10.1.0.0/16', 'logout.internal'] })
  const app = await harness.register()
  const wrong = {
    'http://app.example/': /must be an https URL/,
    'ftp://app.example/': /must be an https URL/,
    '/logout': /absolute URL/,
    'https://user:pass@app.example/': /user information/,
    'https://app.example/#x': /fragment/,
    'https://127.0.0.1/': /public address/,
    'https://[::ffff:127.0.0.1]/': /public address/,
    'https://169.254.169.254/': /public address/,
    'https://10.2.0.1/': /public address/
  }
  for (const [uri, message] of Object.entries(wrong)) await t.rejects(setUri(harness, app, uri), { code: 'ErrParam', message: new RegExp(`^backchannelLogoutUri: .*${message.source}`) }, uri)
  for (const uri of ['https://app.example/logout?a=b', 'http://10.1.2.3/logout', 'http://logout.internal/']) {
    await setUri(harness, app, uri)
    t.equal((await harness.kit.app.identity.clients.require(app.client_id, ADMIN)).backchannelLogoutUri, uri)
  }
  await setUri(harness, app, null)
  const shown = await harness.kit.app.identity.clients.require(app.client_id, ADMIN)
  t.notOk(shown.backchannelLogoutUri)
  t.strictSame((await harness.kit.app.identity.store.collection('clients').get(app.client_id) as { backchannel?: boolean } | null)?.backchannel, undefined)
})
