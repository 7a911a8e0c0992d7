import { createSilentRecorder } from '../helpers/events.ts'
import fastify from 'fastify'
import t from 'tap'
import identity from '../../index.ts'
import { createLook } from '../../lib/pages/look.ts'
import { createOidc } from '../../lib/oidc/index.ts'
import { createJudge } from '../../lib/sign-in/may-sign-in.ts'
import { storeError } from '../../lib/errors.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { DEFAULT_ROLE_NAMES } from '../../lib/roles.ts'
import { openStore } from '../../lib/store/index.ts'
import { createTokens } from '../../lib/tokens/tokens.ts'
import type { Store } from '../../lib/store/port.ts'
import { startIdentity } from '../../testing/index.ts'
import { askCode, getCode, startHarness } from './harness.ts'
import { createBase } from '../helpers/base.ts'

t.test('a host with a prefix and its own hooks and parsers', async (t) => {
  const app = fastify()
  const answered: string[] = []
  app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_request, body, done) => done(null, { host: body }))
  app.addHook('onRequest', async (_request, reply) => { reply.header('x-host', 'yes') })
  app.addHook('onResponse', async (request) => { answered.push(request.url.split('?')[0] ?? '') })
  app.post('/own', async (request) => request.body)
  const harness = await startHarness(t, { app, prefix: '/id' })
  const { url } = harness
  const discovery = await fetch(`${url}/id/.well-known/openid-configuration`)
  t.equal(discovery.headers.get('x-host'), 'yes')
  const found = await discovery.json() as Record<string, string>
  t.match(found, { issuer: `${url}/id`, token_endpoint: `${url}/id/api/v1/auth/token`, jwks_uri: `${url}/id/api/v1/auth/jwks` })
  t.equal((await fetch(found.jwks_uri ?? '')).status, 200)
  const client = await harness.register()
  const { url: asked, verifier } = askCode(client)
  let page = await harness.browser().open(`/id${asked}`)
  page = await page.submit({ account: harness.user.account, password: harness.user.password })
  const tokens = await fetch(found.token_endpoint ?? '', {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      code: page.left?.searchParams.get('code') ?? '',
      code_verifier: verifier,
      redirect_uri: client.redirect_uri,
      client_id: client.client_id,
      client_secret: client.client_secret
    })
  })
  t.equal(tokens.status, 200)
  t.equal(tokens.headers.get('x-host'), 'yes')
  t.ok(answered.includes('/id/api/v1/auth/token'), "the host's onResponse hooks run")
  t.strictSame(await (await fetch(`${url}/own`, { method: 'POST', body: new URLSearchParams({ a: 'b' }) })).json(), { host: 'a=b' }, "the host's parser is not changed")
})

t.test('URLs and cookies follow the issuer, not the request', async (t) => {
  const kit = await startIdentity({ t, oidc: { issuer: 'https://login.example' } })
  const inject = async (url: string) => await kit.inject({ url, headers: { host: 'evil.example', 'x-forwarded-proto': 'http', 'x-forwarded-host': 'evil.example' } })
  const { body } = await inject('/.well-known/openid-configuration')
  t.notMatch(body, 'evil')
  t.match(JSON.parse(body), { issuer: 'https://login.example', token_endpoint: 'https://login.example/api/v1/auth/token' })
  const { user_id } = await kit.mint()
  const { clientId } = await kit.app.identity.clients.create({ data: { redirectUris: ['https://app.example/cb'], scopes: [], name: 'app' } }, { user_id, isAdmin: false })
  const asked = await inject(askCode({ client_id: clientId, client_secret: '', redirect_uri: 'https://app.example/cb' }, { scope: 'openid' }).url)
  t.equal(asked.statusCode, 303)
  const cookies = [asked.headers['set-cookie'] ?? []].flat()
  t.ok(cookies.length >= 4)
  for (const cookie of cookies) {
    t.match(cookie, /^__(Host|Secure)-/)
    for (const attribute of ['secure', 'httponly', 'samesite=lax']) t.match(cookie.toLowerCase(), `; ${attribute}`)
  }
})

t.test('a proxy that strips a path prefix', async (t) => {
  const kit = await startIdentity({ t, prefix: '/id', oidc: { issuer: 'https://example.com/outer/id' } })
  const { body } = await kit.inject('/id/.well-known/openid-configuration')
  t.match(JSON.parse(body), { issuer: 'https://example.com/outer/id', token_endpoint: 'https://example.com/outer/id/api/v1/auth/token' })
})

t.test('invalid options are named', async (t) => {
  for (const [oidc, message] of [
    [{ issuer: 'https://example.com/other' }, 'option oidc.issuer: must end with the prefix /id'],
    [{ issuer: 'ftp://example.com/id' }, 'option oidc.issuer'],
    [{ accessTtl: 1 }, 'option oidc.accessTtl'],
    [{ nonsense: true }, 'option oidc.nonsense']
  ] as const) {
    const app = fastify()
    t.teardown(() => app.close())
    const registered = app.register(identity, { database: 'sqlite::memory:', prefix: '/id', oidc: oidc as object })
    t.match(await Promise.resolve(registered).then(() => 'no error', ({ message }: Error) => message), message)
  }
})

t.test('without an authorization server', async (t) => {
  const kit = await startIdentity({ t, oidc: false })
  for (const url of ['/.well-known/openid-configuration', '/api/v1/auth/authorize', '/api/v1/auth/jwks']) t.equal((await kit.inject(url)).statusCode, 404)
})

t.test('two services on one store share codes, sign-ins and keys', async (t) => {
  const store = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: Date.now })
  t.teardown(() => store.close())
  const first = await startHarness(t, { store })
  const second = await startIdentity({ t, store, oidc: { issuer: first.url } })
  const { url } = await second.listen()
  const client = await first.register()
  const browser = first.browser()
  const code = await getCode(first, client, {}, browser)
  const tokens = await fetch(`${url}/api/v1/auth/token`, {
    method: 'POST', body: new URLSearchParams({ ...code, client_id: client.client_id, client_secret: client.client_secret })
  })
  t.equal(tokens.status, 200, 'the second redeems a code of the first')
  const again = await browser.fetch(`${url}${askCode(client, { prompt: 'none' }).url}`)
  t.match(again.headers.get('location'), /[?&]code=/, 'a user who signed in at the first is signed in at the second')
  const keys = await Promise.all([first.url, url].map(async (base) => await (await fetch(`${base}/api/v1/auth/jwks`)).text()))
  t.equal(keys[0], keys[1])
})

t.test('an unavailable store', async (t) => {
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: Date.now })
  t.teardown(() => inner.close())
  let away = false
  const store: Store = {
    engine: inner.engine,
    state: inner.state,
    ping: () => inner.ping(),
    close: () => inner.close(),
    collection: (name) => new Proxy(inner.collection(name), {
      get: (target, method) => {
        const value = Reflect.get(target, method, target) as (...args: unknown[]) => unknown
        return (...args: unknown[]) => {
          if (!away) return value.apply(target, args)
          const failed = async () => { throw storeError(new Error('a secret cause')) }
          return method === 'page' ? { [Symbol.asyncIterator]: () => ({ next: failed }) } : failed()
        }
      }
    }) as never
  }
  const harness = await startHarness(t, { store })
  const app = await harness.register()
  const code = await getCode(harness, app)
  away = true
  const answer = await harness.post('token', code, app)
  t.match(answer, { status: 503, body: { error: 'server_error' } })
  t.equal(answer.headers.get('retry-after'), '1')
  t.notMatch(JSON.stringify(answer.body), 'secret cause')
  const page = await harness.browser().open(askCode(app).url)
  t.equal(page.response.status, 503)
  t.notMatch(page.text, 'secret cause')
  away = false
  t.match(await harness.post('token', code, app), { status: 200 }, 'the store is available again')
})

t.test('a running service notices new keys', async (t) => {
  const store = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: Date.now })
  t.teardown(() => store.close())
  let time = 0
  const recorder = createSilentRecorder(store)
  const tokens = createTokens({ store, now: Date.now, roles: DEFAULT_ROLE_NAMES, recorder, report: () => () => {} })
  const maySignIn = createJudge({ store, now: Date.now, ways: { withExisting: async (user) => user } })
  const parts = { ...createBase({ store, recorder }), tokens, maySignIn, addresses: 'full' as const, uses: { note: () => {} } }
  const settings = { accessTtl: 60, refreshTtl: 60, sessionTtl: 60, sessionMax: 60, refreshMax: 60, refreshGrace: 0 }
  const running = createOidc({ ...parts, uptime: () => time }).createSource({ issuer: new URL('http://127.0.0.1:1'), prefix: '', settings, look: createLook(), onError: (error) => { throw error } })
  const before = await running()
  t.equal(await running(), before)
  await createOidc(parts).rotateKeys()
  t.equal(await running(), before)
  time += 15_001
  const after = await running()
  t.not(after, before)
  t.equal(await running(), after)
})
