import * as openid from 'openid-client'
import t from 'tap'
import type { TokenRecord } from '../../lib/records/token.ts'
import { hashToken } from '../../lib/crypto/random-token.ts'
import type { Proof } from '../../lib/proofs.ts'
import { type App, type Harness, askCode, atLocalhost, eachStore, getCode, signIn } from './harness.ts'

type Claims = Record<string, unknown>

const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code'
const MINUTE = 60_000

function readIdToken (token: unknown): Claims {
  return JSON.parse(Buffer.from(String(token).split('.')[1] ?? '', 'base64url').toString())
}

const pick = ({ acr, amr, auth_time }: Claims): Claims => ({ acr, amr, auth_time })

/** What tokeninfo and introspection say of the sign-in of a token. They must agree. */
async function ask ({ get, post }: Harness, app: App, token: unknown): Promise<Claims> {
  const told = pick((await get('tokeninfo', String(token))).body.data as Claims)
  const introspected = pick((await post('introspect', { token: String(token) }, app)).body)
  if (Math.abs(Number(told.auth_time ?? 0) - Number(introspected.auth_time ?? 0)) > 1) throw new Error('tokeninfo and introspection disagree')
  return { ...told, ...(introspected.acr !== told.acr && { acr: 'they disagree' }) }
}

/** The age of a sign-in in seconds. */
const age = (time: unknown): number => Math.round(Date.now() / 1000) - Number(time)

eachStore(t, 'the strength of a sign-in', async (t, start) => {
  const harness = await start()
  const { kit, browser, post, register, user, url } = harness
  const app = await register()
  const accessTokens = kit.app.identity.store.collection<TokenRecord>('access_tokens')

  await t.test('tokeninfo, introspection and the ID token agree about a sign-in with a password', async (t) => {
    const { body } = await post('token', await getCode(harness, app, { acr_values: '1', max_age: '600' }), app)
    const told = await ask(harness, app, body.access_token)
    t.match(told, { acr: '1', amr: ['pwd'], auth_time: Number })
    t.ok(age(told.auth_time) < 30)
    const id = pick(readIdToken(body.id_token))
    t.match(id, { acr: '1', amr: ['pwd'] })
    t.ok(Math.abs(Number(id.auth_time) - Number(told.auth_time)) < 30)
    const plain = readIdToken((await post('token', await getCode(harness, app), app)).body.id_token)
    t.notOk('acr' in plain || 'amr' in plain || 'auth_time' in plain, 'unless it was asked for')
  })

  await t.test('a refresh keeps the time of the sign-in, and so does another app in the same browser', async (t) => {
    const tab = browser()
    const first = (await post('token', await getCode(harness, app, {}, tab), app)).body
    kit.clock.advance(20 * MINUTE)
    const again = (await post('token', { grant_type: 'refresh_token', refresh_token: String(first.refresh_token) }, app)).body
    const other = await register()
    const single = (await post('token', await getCode(harness, other, { prompt: 'none' }, tab), other)).body
    for (const [name, owner, { access_token }] of [['refreshed', app, again], ['single sign-on', other, single]] as const) {
      const { auth_time, ...rest } = await ask(harness, owner, access_token)
      t.strictSame(rest, { acr: '1', amr: ['pwd'] }, name)
      t.ok(Math.abs(age(auth_time) - 20 * 60) < 60, `${name}: ${age(auth_time)} s ago`)
    }
    const records = await Promise.all([again, single].map(async ({ access_token }) => await accessTokens.get(hashToken(String(access_token)))))
    t.equal(records[0]?.auth?.time, records[1]?.auth?.time)
  })

  await t.test('a device has the strength of the browser that approved it', async (t) => {
    const device = await register({ public: true })
    const { body: code } = await post('device_authorization', { scope: 'openid' }, device)
    const tab = browser()
    await signIn(harness, askCode(device).url, tab)
    kit.clock.advance(5 * MINUTE)
    let page = await (await tab.open('/api/v1/auth/device')).submit({ user_code: String(code.user_code) })
    page = await page.submit({ decision: 'allow' })
    t.equal(page.title, 'Device connected')
    const { body } = await post('token', { grant_type: DEVICE, device_code: String(code.device_code) }, device)
    const { auth_time, ...rest } = await ask(harness, app, body.access_token)
    t.strictSame(rest, { acr: '1', amr: ['pwd'] })
    t.ok(Math.abs(age(auth_time) - 5 * 60) < 60)
  })

  await t.test('tokens that come from no sign-in answer as before, byte for byte', async (t) => {
    const own = await post('token', { grant_type: 'client_credentials' }, app)
    const minted = await kit.mint({ user: user.account, client: app.client_id, refresh: true })
    const again = await post('token', { grant_type: 'refresh_token', refresh_token: minted.refresh_token! }, app)
    const of = { user_id: user.user_id, account: user.account, name: 'Ann', roles: {}, client_id: app.client_id, scopes: ['read', 'write'] }
    for (const [name, token, expected] of [
      ['client credentials', own.body.access_token, { ...of, subject: 'client' }],
      ['minted', minted.access_token, of],
      ['minted and refreshed', again.body.access_token, of]
    ] as const) {
      const reply = await fetch(`${url}/api/v1/auth/tokeninfo`, { headers: { authorization: `Bearer ${String(token)}` } })
      t.equal(await reply.text(), JSON.stringify({ data: expected }), name)
      const { body } = await post('introspect', { token: String(token) }, app)
      t.notOk('acr' in body || 'amr' in body || 'auth_time' in body, `${name}: introspection`)
    }
  })

  await t.test('a minted token has the strength that the operator names, and a refresh keeps it', async (t) => {
    for (const [acr, amr] of [['1', ['pwd']], ['mfa', ['pwd', 'otp', 'mfa']], ['phr', ['pop', 'mfa']]] as const) {
      const minted = await kit.mint({ user: user.account, client: app.client_id, refresh: true, acr })
      t.match(await ask(harness, app, minted.access_token), { acr, amr: [...amr] })
      kit.clock.advance(MINUTE)
      const { body } = await post('token', { grant_type: 'refresh_token', refresh_token: minted.refresh_token! }, app)
      const { auth_time, ...rest } = await ask(harness, app, body.access_token)
      t.strictSame(rest, { acr, amr: [...amr] })
      t.ok(age(auth_time) >= 60)
    }
    await t.rejects(kit.mint({ user: 'ann', acr: 'mfaa' as 'mfa' }), { code: 'ErrParam', message: 'acr: must be one of 1, mfa, phr' })
  })

  await t.test('a token in the name of a user shows who uses it, and no request can say so', async (t) => {
    const { access_token } = await kit.mint({ user: user.account, client: app.client_id })
    await accessTokens.update(hashToken(access_token), { set: { act: { client_id: 'agent', act: { client_id: 'other' } } } })
    t.match((await post('introspect', { token: access_token }, app)).body, { active: true, act: { client_id: 'agent', act: { client_id: 'other' } } })
    const exchange = { grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange', subject_token: access_token, actor_token: access_token, act: '{"client_id":"agent"}' }
    t.match((await post('token', exchange, app)).body, { error: 'unsupported_grant_type' })
    const { body } = await post('token', { grant_type: 'client_credentials', act: '{"client_id":"agent"}' }, app)
    t.notOk('act' in (await post('introspect', { token: String(body.access_token) }, app)).body)
  })

  await t.test('openid-client gets what it asks for with acr_values and max_age=0', async (t) => {
    const config = await openid.discovery(new URL(url), app.client_id, app.client_secret, undefined, { execute: [openid.allowInsecureRequests] })
    t.strictSame(config.serverMetadata().acr_values_supported, ['1', 'mfa'])
    const tab = browser()
    await signIn(harness, askCode(app).url, tab)
    const pkceCodeVerifier = openid.randomPKCECodeVerifier()
    const asked = {
      redirect_uri: app.redirect_uri,
      scope: 'openid read',
      acr_values: '1',
      max_age: '0',
      code_challenge: await openid.calculatePKCECodeChallenge(pkceCodeVerifier),
      code_challenge_method: 'S256'
    }
    const page = await tab.open(openid.buildAuthorizationUrl(config, asked).href)
    t.equal(page.title, 'Sign in', 'although the browser is signed in')
    const { left } = await page.submit({ account: user.account, password: user.password })
    const tokens = await openid.authorizationCodeGrant(config, left as URL, { pkceCodeVerifier, maxAge: 30, idTokenExpected: true })
    t.match(tokens.claims(), { acr: '1', amr: ['pwd'], auth_time: Number })
  })
})

eachStore(t, 'sign-ins of an earlier release count as one with a password, at the time that is known', async (t, start) => {
  const harness = await start()
  const { kit, browser, post, register } = harness
  const { store } = kit.app.identity
  const app = await register()
  const tab = browser()
  const { body } = await post('token', await getCode(harness, app, {}, tab), app)
  // What an earlier release has stored.
  for (const [name, field] of [['grants', 'auth'], ['access_tokens', 'auth'], ['refresh_tokens', 'auth'], ['sign_in_sessions', 'proofs']] as const) {
    const collection = store.collection(name)
    for await (const batch of collection.stream({ limit: 0 })) for (const { id } of batch) t.ok(await collection.update(id, { unset: [field] }), name)
  }
  const { now } = Date
  t.teardown(() => { Date.now = now })
  Date.now = () => now() + 30 * MINUTE
  kit.clock.advance(30 * MINUTE)
  t.match(await ask(harness, app, body.access_token), { acr: undefined, auth_time: undefined }, 'a token that knows no time says nothing')
  const refreshed = (await post('token', { grant_type: 'refresh_token', refresh_token: String(body.refresh_token) }, app)).body
  const twice = (await post('token', { grant_type: 'refresh_token', refresh_token: String(refreshed.refresh_token) }, app)).body
  const single = (await post('token', await getCode(harness, app, { prompt: 'none' }, tab), app)).body
  for (const [name, { access_token }] of [['refreshed', refreshed], ['refreshed twice', twice], ['single sign-on', single]] as const) {
    const { auth_time, ...rest } = await ask(harness, app, access_token)
    t.strictSame(rest, { acr: '1', amr: ['pwd'] }, name)
    t.ok(Math.abs(age(auth_time) - 30 * 60) < 60, `${name}: ${age(auth_time)} s ago`)
  }
})

eachStore(t, 'the proofs of a browser decide, not the time of its last form', async (t, start) => {
  const harness = await start(await atLocalhost())
  const { kit, user, browser, post, register } = harness
  const app = await register()
  const tab = browser()
  await signIn(harness, askCode(app).url, tab)
  const { id: way } = await kit.app.identity.ways.add({ user_id: user.user_id, epoch: 0 }, { kind: 'passkey', rp: 'localhost', material: {} })
  const sessions = kit.app.identity.store.collection<{ id: string, user_id?: string, proofs?: Proof[] }>('sign_in_sessions')
  const since = new Date(kit.clock.now() - 8 * 60 * MINUTE).toISOString()
  const proofs: Proof[] = [{ way: 'password', kind: 'password', at: since }, { way, kind: 'passkey', at: new Date(kit.clock.now()).toISOString() }]
  for await (const batch of sessions.stream({ limit: 0 })) for (const { id } of batch) await sessions.update(id, { set: { proofs } })
  const { body } = await post('token', await getCode(harness, app, { prompt: 'none' }, tab), app)
  const { auth_time, ...rest } = await ask(harness, app, body.access_token)
  t.strictSame(rest, { acr: 'phr', amr: ['pwd', 'pop', 'mfa'] })
  t.ok(Math.abs(age(auth_time) - 8 * 60 * 60) < 60, 'the older proof')
})
