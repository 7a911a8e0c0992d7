import Fastify, { type FastifyRequest } from 'fastify'
import t from 'tap'
import identity from '../../index.ts'
import { type App, createFile, eachStore, getCode, startHarness } from './harness.ts'

const FORM = { 'content-type': 'application/x-www-form-urlencoded' }

t.test('hooks of the host run for every introspection, from a page or not', async (t) => {
  const app = Fastify()
  const ran: string[] = []
  for (const hook of ['preParsing', 'preValidation', 'preHandler'] as const) {
    app.addHook(hook, async (request: FastifyRequest) => { ran.push(`${hook} ${request.headers.origin ?? 'none'}`) })
  }
  await app.register(identity, { database: 'sqlite::memory:', bcryptCost: 4, passwordMin: 1 })
  t.teardown(() => app.close())
  for (const origin of [undefined, 'https://evil.example']) {
    ran.length = 0
    const headers = { ...FORM, ...(origin !== undefined && { origin }) }
    await app.inject({ method: 'POST', url: '/api/v1/auth/introspect', headers, payload: 'token=x' })
    t.strictSame(ran, ['preParsing', 'preValidation', 'preHandler'].map((hook) => `${hook} ${origin ?? 'none'}`))
  }
})

t.test('an invalid body gets an OAuth error, without the query', async (t) => {
  const { kit } = await startHarness(t)
  for (const type of ['application/json', 'garbage', 'a/b/c', 'application/x-www-form-urlencoded, application/json']) {
    const reply = await kit.inject({ method: 'POST', url: '/api/v1/auth/introspect?client_secret=abc', headers: { 'content-type': type }, payload: '{}' })
    t.equal(reply.statusCode, 400, type)
    t.equal(reply.json().error, 'invalid_request', type)
    t.notMatch(reply.body, 'abc', type)
  }
  const large = await kit.inject({ method: 'POST', url: '/api/v1/auth/introspect', headers: FORM, payload: `token=${'x'.repeat(100_000)}` })
  t.match([large.statusCode, large.json()], [413, { error: 'invalid_request' }])
  const latin = await kit.inject({ method: 'POST', url: '/api/v1/auth/introspect', headers: FORM, payload: 'token=p%e9' })
  t.match([latin.statusCode, latin.json()], [400, { error: 'invalid_request', error_description: 'body: must be UTF-8' }])
})

t.test('a token that this server never issues is not active, whatever its form', async (t) => {
  const harness = await startHarness(t)
  const app = await harness.register()
  for (const token of ['x', 'a.b.c', 'eyJhbGciOiJub25lIn0.e30.', 'W10.x', ' ']) {
    t.strictSame((await harness.post('introspect', { token }, app)).body, { active: false }, token)
  }
})

t.test('a refresh token that its client may not redeem any more is not active', async (t) => {
  const harness = await startHarness(t)
  const { kit, post } = harness
  const app = await harness.register()
  const { refresh_token } = (await post('token', await getCode(harness, app), app)).body as { refresh_token: string }
  t.match((await post('introspect', { token: refresh_token }, app)).body, { active: true })
  await kit.app.identity.clients.patch(app.client_id, { data: { grants: ['code'] } }, { user_id: 'admin', isAdmin: true })
  t.strictSame((await post('introspect', { token: refresh_token }, app)).body, { active: false })
  t.match((await post('token', { grant_type: 'refresh_token', refresh_token }, app)).body, { error: 'invalid_grant' })
})

t.test('a header that the host has set on the reply is sent', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  app.addHook('onRequest', async (_request, reply) => { reply.header('vary', 'Accept-Language') })
  await app.register(identity, { database: createFile(t), bcryptCost: 4, passwordMin: 1 })
  const reply = await app.inject({ method: 'POST', url: '/api/v1/auth/introspect', headers: FORM, payload: 'token=x' })
  t.equal(reply.headers.vary, 'Accept-Language, Origin')
})

t.test('a refresh token is active for its own client only, an access token for every confidential client that holds it', async (t) => {
  const harness = await startHarness(t)
  const { post } = harness
  const app = await harness.register()
  const other = await harness.register({ first_party: false })
  const { refresh_token, access_token } = (await post('token', await getCode(harness, app), app)).body as Record<string, string>
  t.match((await post('introspect', { token: access_token! }, other)).body, { active: true, client_id: app.client_id })
  t.strictSame((await post('introspect', { token: refresh_token! }, other)).body, { active: false })
  t.match((await post('introspect', { token: refresh_token! }, app)).body, { active: true })
})

const orders = <T>(items: readonly T[]): T[][] => items.length < 2 ? [[...items]] : items.flatMap((one, index) => orders(items.toSpliced(index, 1)).map((rest) => [one, ...rest]))

eachStore(t, 'a kept answer is that of the client that asks, whoever has asked before, and of the time', async (t, start) => {
  const harness = await start()
  const { kit, post } = harness
  const apps = { own: await harness.register(), other: await harness.register({ first_party: false }), open: await harness.register({ public: true }), stranger: await harness.register({ public: true }) }
  const issue = async (app: App) => ((await kit.mint({ user: 'ann@example.com', client: app.client_id })).access_token)
  const tokens = { own: await issue(apps.own), open: await issue(apps.open) }
  type Asking = keyof typeof apps
  const ask = async (token: keyof typeof tokens, by: Asking) => (await post('introspect', { token: tokens[token] }, apps[by])).body
  const mayLearn = (token: keyof typeof tokens, by: Asking): boolean => apps[by].client_secret !== '' || token === by
  // The clock of the kit stands still, so the times of the wall clock go on.
  const withoutTimes = ({ exp: _exp, iat: _iat, ...rest }: Record<string, unknown>) => rest
  const known = { own: await ask('own', 'own'), open: await ask('open', 'own') }
  for (const token of ['own', 'open'] as const) {
    t.match(known[token], { active: true, client_id: apps[token].client_id })
    for (const order of orders(Object.keys(apps) as Asking[])) {
      for (const by of order) t.strictSame(withoutTimes(await ask(token, by)), mayLearn(token, by) ? withoutTimes(known[token]) : { active: false }, `${token} by ${by} in ${order.join(', ')}`)
    }
  }
  const { exp, iat } = known.own as { exp: number, iat: number }
  kit.clock.advance(600_000)
  const later = await ask('own', 'other') as { exp: number, iat: number }
  t.ok(Math.abs(exp - later.exp - 600) <= 60 && Math.abs(iat - later.iat - 600) <= 60, 'times are those of the wall clock')
  await kit.app.identity.clients.patch(apps.own.client_id, { data: { disabled: true } }, { user_id: 'admin', isAdmin: true })
  t.strictSame(await ask('own', 'other'), { active: false }, 'a kept answer goes with what it was made of')
  t.match(await ask('open', 'other'), { active: true })
  kit.clock.advance(3_600_000)
  t.strictSame(await ask('open', 'other'), { active: false }, 'expired')
})
