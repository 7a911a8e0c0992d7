import t, { type Test } from 'tap'
import { type ClientRecord, createClientRecord } from '../../lib/records/client.ts'
import type { TokenRecord } from '../../lib/records/token.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { hashToken } from '../../lib/crypto/random-token.ts'
import { toWayKey } from '../../lib/way.ts'
import { createTestUpstream } from '../../testing/index.ts'
import { TEST_CLIENT } from '../../testing/upstream.ts'
import { type Harness, askCode, atLocalhost, eachStore } from '../oidc/harness.ts'
import { API_SCOPES } from '../helpers/powers.ts'
import { callAs, unique } from '../helpers/people.ts'
import { enrolInSignIn, nextCode } from '../pages/factors.ts'
import { asksPasskey } from '../pages/passkeys.ts'
import { addUser, enter, post, readXsrf } from '../pages/visits.ts'
import { through } from './through.ts'

const START = '/api/v1/auth/upstream/test'
const WIDE = '/api/v1/auth/upstream/wide'
const SHOP = { client_id: 'shop', client_secret: '', redirect_uri: 'https://app.example/cb' }
const TOLD = /works for some apps only/
const REFUSED = { status: 403, body: { code: 'ErrPerm', message: /some apps only/ } }

type Options = Parameters<Parameters<Parameters<typeof eachStore>[2]>[1]>[0]

/** A service with an upstream `test` that is for the app `shop`, and another one that is for all. */
async function open (t: Test, start: (options?: Options) => Promise<Harness>, options: Options = {}) {
  const wide = await createTestUpstream()
  t.teardown(wide.close)
  const harness = await start({
    signUp: true,
    selfDelete: true,
    upstream: { clients: ['shop'] },
    upstreams: [{ id: 'wide', kind: 'oidc', name: 'Wide', issuer: wide.issuer, emails: 'verified', create: true, ...TEST_CLIENT }],
    ...await atLocalhost(),
    ...options
  })
  const { kit, user } = harness
  const { store } = kit.app.identity
  const users = store.collection<UserRecord>('users')
  await store.collection<ClientRecord>('clients').insert(createClientRecord(kit.clock.now(), {
    id: 'shop', userId: user.user_id, redirectUris: [SHOP.redirect_uri], scopes: API_SCOPES, name: 'Shop', first_party: true, revision: 0
  }))
  const read = async (id: string) => (await users.get(id))!
  /** The time of a sign-in at the provider just now. Without it a session is not recent enough for what the pages guard. */
  const present = () => ({ auth_time: Math.floor(kit.clock.now() / 1000) })
  /** What of the record says how somebody signs in. */
  const describe = async (id: string) => {
    const { password, ways, email, email_verified_at, addresses, enrol_ticket } = await read(id)
    return { password, ways, email, email_verified_at, addresses, enrol_ticket }
  }
  return {
    ...harness,
    wide,
    users,
    read,
    describe,
    present,

    /** Makes an account by a provider; the browser is signed in to its pages. */
    async arrive (from = START) {
      const name = unique('person')
      for (const provider of [kit.upstream, wide]) provider({ sub: name, email: `${name}@example.com`, email_verified: true, ...present() })
      const browser = harness.browser()
      const page = await through(browser, from)
      return { page, browser, user: (await users.getBy('account', `${name}@example.com`))! }
    },

    /** A token of the app, with all scopes of the API, after a sign-in with the provider in this browser. */
    async redeem (browser = harness.browser(), from = START) {
      const { url, verifier } = askCode(SHOP, { scope: ['openid', ...API_SCOPES].join(' ') })
      let page = await browser.open(url)
      if (page.title === 'Sign in') page = await through(browser, `${from}?uid=${new URL(page.response.url).pathname.split('/').at(-1)}`)
      const code = page.left?.searchParams.get('code')
      if (typeof code !== 'string') throw new Error(`no code: ${page.title} ${page.text}`)
      const { body } = await harness.post('token', { grant_type: 'authorization_code', code, code_verifier: verifier, redirect_uri: SHOP.redirect_uri }, SHOP)
      const token = String(body.access_token)
      return { token, ...callAs(kit, { authorization: `Bearer ${token}` }) }
    }
  }
}

eachStore(t, 'a session of a way that is for some apps makes no way for all', async (t, start) => {
  const service = await open(t, start)
  const { kit, arrive, redeem, describe, read, present, users } = service
  const { accounts, heldIdentities } = kit.app.identity
  const { user, browser } = await arrive()
  const other = await addUser(service, 'other')
  const [identity] = await heldIdentities.list(user.id)
  const before = await describe(user.id)
  const unchanged = async (what: string) => t.strictSame(await describe(user.id), before, what)

  await t.test('by no form of the account pages', async (t) => {
    const roads: [path: string, fields: Record<string, string>][] = [
      ['/account/password', { password: 'a stolen horse' }],
      ['/account/factors', { name: 'Phone' }],
      ['/account/factors/passkeys', { name: 'Laptop' }],
      ['/account/factors/codes', {}],
      ['/account/identities/add?upstream=wide', {}],
      ['/account/identities/add?upstream=test', {}],
      [`/account/identities/remove?id=${identity!.identity_id}`, {}],
      ['/account/email', { email: 'mine@private.example' }],
      ['/account/email', { verify: 'yes' }],
      ['/account/delete', {}]
    ]
    for (const [path, fields] of roads) {
      const page = await browser.open(path === '/account/factors' ? '/account/factors/new' : path)
      t.match(page.text, TOLD, `${path} says so`)
      const answer = await post(page, path, fields)
      t.equal(answer.response.status, 403, path)
      t.equal(answer.left, undefined)
      t.match(answer.text, TOLD)
      await unchanged(path)
    }
  })

  await t.test('nor by an answer of another provider that this browser already has', async (t) => {
    const page = await browser.open('/account/methods')
    const { upstreams } = kit.app.identity
    const { epoch } = await read(user.id)
    const proofs = [{ way: Object.keys((await read(user.id)).ways!)[0]!, kind: 'upstream' as const, at: new Date(kit.clock.now()).toISOString() }]
    const proven = { upstream: upstreams!.require('wide'), claimed: { issuer: 'https://wide.example', subject: 'thief', name: '', both: false } }
    await t.rejects(upstreams!.identities.linkOwn(proven, { user_id: user.id, epoch, proofs }), REFUSED.body)
    await t.rejects(upstreams!.identities.confirm(proven, { user_id: user.id, epoch, proofs }), { name: 'UpstreamError', refusal: 'restricted' })
    t.match((await page.browser.open('/account/identities/linked')).text, TOLD)
    await unchanged('linked')
  })

  await t.test('nor by the API', async (t) => {
    const api = await redeem(browser)
    for (const [name, call] of [
      ['password', api.patch('/user', { data: { password: 'a stolen horse' } })],
      ['password, with a guess', api.patch('/user', { data: { password: 'a stolen horse', current_password: 'a guess' } })],
      ['address', api.post('/user/email', { data: { email: 'mine@private.example' } })],
      ['identity', api.delete(`/user/identities/${identity!.identity_id}`)],
      ['deletion', api.delete('/user')]
    ] as const) t.match(await call, name === 'deletion' ? { status: /4\d\d/ } : REFUSED, name)
    t.match(await api.send({ method: 'DELETE', url: '/user', payload: { data: {} } }), REFUSED)
    await unchanged('the API')
    t.match(await api.patch('/user', { data: { name: 'Renamed' } }), { status: 204 })
    t.match(await api.get('/user'), { status: 200, body: { data: { name: 'Renamed' } } })
    t.match(await api.get('/user/identities'), { status: 200 })
    t.match(await api.get('/user/export'), { status: 200 })
    t.match(await api.get('/auth/sessions'), { status: 200 })
  })

  await t.test('nor as an administrator, for themselves or for others', async (t) => {
    await users.update(user.id, { set: { roles: { admin: true }, administers: true } })
    const api = await redeem(browser)
    const theirs = await describe(other.user_id)
    for (const [name, call] of [
      ['own password', () => api.patch(`/user/${user.id}`, { data: { password: 'a stolen horse' } })],
      ['own address', () => api.patch(`/user/${user.id}`, { data: { email: 'mine@private.example', email_verified: true } })],
      ['own recovery', () => api.post(`/user/${user.id}/recovery`)],
      ['password', () => api.patch(`/user/${other.user_id}`, { data: { password: 'a stolen horse' } })],
      ['proof of the address', () => api.patch(`/user/${other.user_id}`, { data: { email_verified: true } })],
      ['recovery', () => api.post(`/user/${other.user_id}/recovery`)],
      ['reset of factors', () => api.post(`/user/${other.user_id}/factors/reset`)],
      ['a new user', () => api.post('/user', { data: { account: 'made', password: 'a stolen horse' } })],
      ['an invitation', () => api.post('/user/invite', { data: { account: 'mine@private.example' } })],
      ['an import', () => api.send({ method: 'POST', url: '/user/import?source=old', headers: { 'content-type': 'application/x-ndjson' }, payload: '{"account":"made","password":"a stolen horse"}\n' })]
    ] as const) t.match(await call(), REFUSED, name)
    await unchanged('administrators')
    t.strictSame(await describe(other.user_id), theirs)
    t.equal(await users.getBy('account', 'made'), null)
    t.match(await api.patch(`/user/${other.user_id}`, { data: { roles: { clerk: true } } }), { status: 204 }, 'what makes no way in they may')
    await users.update(user.id, { set: { roles: {} }, unset: ['administers'] })
  })

  await t.test('its pages show, end sessions and give out own data', async (t) => {
    const { browser: tab } = await arrive()
    for (const path of ['/account', '/account/methods', '/account/factors/new', '/account/sessions', '/account/activity', '/account/data']) t.equal((await tab.open(path)).response.status, 200, path)
    const data = await post(await tab.open('/account/data'), '/account/data')
    t.match(data.response.headers.get('content-disposition'), /account-data\.json/)
    const elsewhere = service.browser()
    await through(elsewhere, START)
    const sessions = await tab.open('/account/sessions')
    t.equal((await post(sessions, '/account/sessions', { others: 'yes' })).response.status, 200)
    t.match((await elsewhere.open('/account')).title, /^Sign in/, 'ended')
  })

  await t.test('a token of before this rule does not say what it came of', async (t) => {
    const tokens = kit.app.identity.store.collection<TokenRecord>('access_tokens')
    const api = await redeem(browser)
    const { auth } = (await tokens.get(hashToken(api.token)))!
    t.strictSame(auth?.upstreams, ['test'])
    const { upstreams: _upstreams, ...old } = auth!
    await tokens.update(hashToken(api.token), { set: { auth: old } })
    t.match(await api.patch('/user', { data: { password: 'a stolen horse' } }), REFUSED)
    await unchanged('old')
  })

  await t.test('who has another way signs in by that, and may do all of it', async (t) => {
    const ann = await addUser(service, 'ann-of-both')
    const { epoch } = await read(ann.user_id)
    await accounts.linkIdentity({ user_id: ann.user_id, epoch }, { kind: 'upstream', upstream: 'test', key: toWayKey('upstream', kit.upstream.issuer, 'both'), material: { issuer: kit.upstream.issuer, subject: 'both' } }, 'Test')
    kit.upstream({ sub: 'both', ...present() })
    const tab = service.browser()
    t.match((await through(tab, START)).text, /ann-of-both/)
    const form = await tab.open('/account/password')
    t.match((await post(form, '/account/password', { current_password: ann.password, password: 'new horse' })).text, TOLD, 'also where the password is typed')
    const page = await enter(service, '/account/password', service.browser(), ann)
    t.notMatch(page.text, TOLD)
    t.match((await post(page, '/account/password', { current_password: ann.password, password: 'new horse' })).text, /role="status"/)
  })

  await t.test('a provider that is for all apps adds ways', async (t) => {
    const { browser: tab, user: person } = await arrive(WIDE)
    const form = await tab.open('/account/password')
    t.notMatch(form.text, TOLD)
    t.match((await post(form, '/account/password', { password: 'new horse' })).text, /role="status"/)
    t.ok((await read(person.id)).password)
  })
})

eachStore(t, 'a factor that is demanded of somebody who came by a way for some apps', async (t, start) => {
  const service = await open(t, start, { factors: 'required' })
  const { kit, browser: make, users, describe, present } = service
  kit.upstream({ sub: 'mia', email: 'mia@example.com', email_verified: true, ...present() })
  const browser = make()
  const why = await through(browser, START)
  t.match(why.title, /two-step verification/)
  t.notOk(asksPasskey(why), 'a sign-in begins with a passkey')
  t.notMatch(why.text, /way=passkey|value="passkey"/)
  const user = (await users.getBy('account', 'mia@example.com'))!
  const { page, seed } = await enrolInSignIn(kit.clock, why)
  t.match(page.title, /Profile/, 'an authenticator app begins none')
  const before = await describe(user.id)
  t.equal(Object.values(before.ways!).filter(({ kind }) => kind === 'totp').length, 1)
  for (const [path, fields] of [['/account/password', { password: 'x' }], ['/account/factors', { name: 'Second' }], ['/account/factors/codes', {}], ['/account/factors/passkeys', { name: 'x' }]] as const) {
    const answer = await post(await browser.open(path), path, { ...fields, code: await nextCode(kit.clock, seed) })
    t.equal(answer.response.status, 403, `${path}: the app proves no other way`)
    t.ok(readXsrf(answer))
  }
  t.strictSame(await describe(user.id), before)
})

eachStore(t, 'what a sign-in came of, by the settings of now', async (t, start) => {
  const { kit, arrive } = await open(t, start)
  const { user } = await arrive(WIDE)
  const { maySignIn, ways } = kit.app.identity
  const proofs = [{ way: Object.keys(user.ways!)[0]!, kind: 'upstream' as const, at: new Date(kit.clock.now()).toISOString() }]
  const judged = await maySignIn({ user_id: user.id, epoch: user.epoch, proofs })
  t.match(judged, { may: true, strength: { upstreams: ['wide'] } })
  t.equal(ways.isRestricted(judged.may ? judged.strength : undefined), false)
  t.equal(ways.isRestricted({ acr: '1', amr: [], time: '', upstreams: ['gone'] }), true, 'a provider that is configured no more')
  t.equal(ways.isRestricted({ acr: '1', amr: [], time: '', upstreams: ['test', 'wide'] }), false, 'one of them is for all')
  t.equal(ways.isRestricted({ acr: '1', amr: ['pwd'], time: '' }), false)
  t.equal(ways.isRestricted(undefined), false, 'a token that comes of no sign-in has to bring a proof')
})
