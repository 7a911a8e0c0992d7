import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import t from 'tap'
import { type Harness, eachStore, startHarness } from '../oidc/harness.ts'
import { isSignedOut } from '../pages/visits.ts'
import { TEST_CLIENT, createTestUpstream } from '../../testing/upstream.ts'
import { through } from './through.ts'

t.setTimeout(180_000)

const START = '/api/v1/auth/upstream/test'
const EVENT = 'http://schemas.openid.net/event/backchannel-logout'
const seconds = (from = 0): number => Math.floor(Date.now() / 1000) + from
const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

async function send ({ url }: Pick<Harness, 'url'>, body: string | URLSearchParams, { id = 'test', type = 'application/x-www-form-urlencoded' } = {}): Promise<{ status: number, error: string, headers: Headers }> {
  const response = await fetch(`${url}/api/v1/auth/upstream/${id}/backchannel-logout`, { method: 'POST', body: body.toString(), headers: { 'content-type': type } })
  const text = await response.text()
  return { status: response.status, headers: response.headers, error: text === '' ? '' : String((JSON.parse(text) as { error_description?: string }).error_description) }
}

const toForm = (...tokens: string[]): URLSearchParams => new URLSearchParams(tokens.map((token): [string, string] => ['logout_token', token]))

/** Claims that no logout token has, and what is said of them. */
const WRONG: Record<string, [claims: Record<string, unknown>, reason: RegExp]> = {
  'another issuer': [{ iss: 'https://evil.example' }, /^iss: /],
  'the issuer with a slash': [{ iss: 'http://127.0.0.1/' }, /^iss: /],
  'another client': [{ aud: 'another' }, /^aud: /],
  'no audience': [{ aud: undefined }, /^aud: /],
  'a nonce: it is an ID token': [{ nonce: 'n' }, /^nonce: /],
  'an empty nonce': [{ nonce: null }, /^nonce: /],
  'no events': [{ events: undefined }, /^events: /],
  'events as a list': [{ events: [EVENT] }, /^events: /],
  'another event': [{ events: { 'http://schemas.openid.net/event/other': {} } }, /^events: /],
  'an event that is no object': [{ events: { [EVENT]: true } }, /^events: /],
  'an event with members': [{ events: { [EVENT]: { x: 1 } } }, /^events: /],
  'an inherited event': [{ events: { __proto__: { [EVENT]: {} } } }, /^events: /],
  'neither a subject nor a session': [{ sub: undefined }, /^sub: /],
  'a subject that is a number': [{ sub: 7 }, /^sub: /],
  'an empty session': [{ sid: '' }, /^sid: /],
  'a long session': [{ sid: 'x'.repeat(300) }, /^sid: /],
  'no jti': [{ jti: undefined }, /^jti: /],
  'a jti that is a list': [{ jti: ['x'] }, /^jti: /],
  'no iat': [{ iat: undefined }, /^iat: /],
  'an iat that is a text': [{ iat: String(seconds()) }, /^iat: /],
  'an iat of six minutes ago': [{ iat: seconds(-360), exp: undefined }, /^iat: /],
  'an iat in two minutes': [{ iat: seconds(120) }, /^iat: /],
  'an exp of two minutes ago': [{ iat: seconds(-200), exp: seconds(-120) }, /^exp: /],
  'an exp that is a text': [{ exp: String(seconds(100)) }, /^exp: /],
  'an nbf in two minutes': [{ nbf: seconds(120) }, /^nbf: /]
}

eachStore(t, 'a token that is no logout token of this provider', async (t, start) => {
  const harness = await start({ signUp: true, upstream: {} })
  const { kit } = harness
  const { upstream } = kit
  upstream({ sub: 'ann', email: 'a@example.org', email_verified: true, sid: 's1' })
  const browser = harness.browser()
  await through(browser, START)
  const ends = kit.app.identity.store.collection('upstream_ends')
  const token = (claims: Record<string, unknown> = {}, header?: Record<string, unknown>) => upstream.logoutToken({ sub: 'ann', ...claims }, header)

  async function isRefused (body: string | URLSearchParams, reason: RegExp, options?: Parameters<typeof send>[2]): Promise<void> {
    const answer = await send(harness, body, options)
    t.equal(answer.status, 400, String(reason))
    t.match(answer.error, reason)
    t.equal(answer.headers.get('cache-control'), 'no-store')
  }

  await t.test('is refused by its claims', async () => {
    for (const [claims, reason] of Object.values(WRONG)) await isRefused(toForm(token(claims)), reason)
  })

  await t.test('by its header', async () => {
    const [, payload] = token().split('.')
    const none = `${encode({ alg: 'none', typ: 'logout+jwt' })}.${payload}.`
    await isRefused(toForm(none), /^alg: /)
    await isRefused(toForm(none.replace('none', 'None')), /./)
    const secret = `${encode({ alg: 'HS256' })}.${payload}`
    await isRefused(toForm(`${secret}.${createHmac('sha256', TEST_CLIENT.clientSecret).update(secret).digest('base64url')}`), /^alg: /)
    for (const typ of ['at+jwt', 'dpop+jwt', 'oauth-authz-req+jwt', 7]) await isRefused(toForm(token({}, { typ })), /^typ: /)
    await isRefused(toForm(token({}, { crit: ['x'], x: 1 })), /^crit: /)
    await isRefused(toForm(token({}, { b64: false, crit: ['b64'] })), /^crit: /)
  })

  await t.test('by its signature', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const [header, payload] = token().split('.')
    for (const own of [JSON.parse(Buffer.from(header!, 'base64url').toString()) as object, { alg: 'ES256' }, { alg: 'ES256', jwk: publicKey.export({ format: 'jwk' }) }, { alg: 'ES256', jku: 'https://evil.example/keys', kid: 'evil' }]) {
      const input = `${encode(own)}.${payload}`
      await isRefused(toForm(`${input}.${sign('sha256', Buffer.from(input), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`), /signature/)
    }
    await isRefused(toForm(`${header}.${payload}.`), /signature/)
  })

  await t.test('by its form', async () => {
    for (const text of ['', 'x', 'a.b.c', 'a.b.c.d.e', `${encode({ alg: 'ES256' })}.${encode(7)}.x`]) await isRefused(toForm(text), /^logout_token: /)
    await isRefused(toForm(token(), token()), /^logout_token: /)
    await isRefused('x=y', /^logout_token: /)
    await isRefused(toForm(token({ filler: 'x'.repeat(9000) })), /^logout_token: .*8192/)
    await isRefused(JSON.stringify({ logout_token: token() }), /^content-type: /, { type: 'application/json' })
    t.equal((await send(harness, `logout_token=${'x'.repeat(20_000)}`)).status, 413)
    for (const id of ['nobody', 'x'.repeat(40), '..%2f']) t.equal((await send(harness, toForm(token()), { id })).status, 404, id)
  })

  t.equal(await ends.count(), 0, 'nothing was stored')
  t.notOk(isSignedOut(await browser.open('/account')), 'and nothing has ended')

  await t.test('and of ten uses at once of a good one, one is right', async (t) => {
    const shared = token({ sub: undefined, sid: 'nobody has it' })
    const statuses = await Promise.all(Array.from({ length: 10 }, async () => (await send(harness, toForm(shared))).status))
    t.strictSame(statuses.sort(), [200, ...Array.from({ length: 9 }, () => 400)])
    kit.clock.advance(11_000)
    t.equal((await send(harness, toForm(shared))).status, 400)
  })

  await t.test('while the real one is good once', async (t) => {
    const real = token({ aud: ['another', TEST_CLIENT.clientId], sid: 'other' })
    t.equal((await send(harness, toForm(real))).status, 200)
    await isRefused(toForm(real), /^jti: was used before/)
    t.notOk(isSignedOut(await browser.open('/account')), 'it was about another session')
    const typed = token({ iat: seconds(-250), exp: undefined }, { typ: 'application/logout+jwt' })
    t.equal((await send(harness, toForm(typed))).status, 200, 'four minutes old, without an end')
    t.ok(isSignedOut(await browser.open('/account')))
    t.equal((await send(harness, toForm(token({}, {})))).status, 200, 'without a type')
    kit.clock.advance(1000)
    t.match((await through(harness.browser(), START)).title, /Profile/)
    await isRefused(toForm(typed), /^jti: /, {})
    kit.clock.advance(60 * 60_000)
    await isRefused(toForm(typed), /^jti: /, {})
  })
})

t.test('the keys of the provider', async (t) => {
  const harness = await startHarness(t, { signUp: true, upstream: {} })
  const { kit } = harness
  const { upstream } = kit
  const calls = () => upstream.calls.length
  const token = () => upstream.logoutToken({ sub: 'ann' })
  const strange = () => upstream.logoutToken({ sub: 'ann' }, { kid: `strange ${Math.random()}` })

  await t.test('are read once for many tokens', async (t) => {
    const answers = await Promise.all(Array.from({ length: 20 }, async () => await send(harness, toForm(token()))))
    t.ok(answers.every(({ status }) => status === 200))
    t.equal(calls(), 2, 'the metadata and the keys')
  })

  await t.test('are read again for unknown ones, which share the fetches', async (t) => {
    kit.clock.advance(61_000)
    const answers = await Promise.all(Array.from({ length: 20 }, async () => await send(harness, toForm(strange()))))
    t.ok(answers.every(({ status }) => status === 400))
    t.ok(calls() === 3 || calls() === 4, `${calls()} calls`)
  })

  await t.test('a new one is known, whatever keys a stranger makes up', async (t) => {
    const before = calls()
    t.equal((await send(harness, toForm(strange()))).status, 400)
    upstream.rotate()
    const attack = Array.from({ length: 10 }, async () => (await send(harness, toForm(strange()))).status)
    t.equal((await send(harness, toForm(token()))).status, 200)
    t.strictSame([...new Set(await Promise.all(attack))], [400])
    t.ok(calls() <= before + 3, `${calls() - before} calls`)
    upstream.rotate()
    t.equal((await send(harness, toForm(token()))).status, 200, 'without one too, and twice within a minute')
  })

  await t.test('and at once after a sign-in', async (t) => {
    upstream.rotate()
    upstream({ sub: 'ann', email: 'a@example.org', email_verified: true })
    kit.clock.advance(1000)
    t.match((await through(harness.browser(), START)).title, /Profile/)
    t.equal((await send(harness, toForm(token()))).status, 200)
  })

  await t.test('while it is down, those that are known serve, and the provider is asked once a minute', async (t) => {
    const down = await startHarness(t, { signUp: true, upstream: {} })
    let asked = 0
    down.kit.upstream.answer = (_request, response) => {
      asked++
      response.writeHead(503).end()
      return true
    }
    for (let index = 0; index < 4; index++) {
      const answer = await send(down, toForm(down.kit.upstream.logoutToken({ sub: 'ann' })))
      t.equal(answer.status, 503)
      t.equal(answer.headers.get('retry-after'), '60')
    }
    t.equal(asked, 1)
    down.kit.upstream.answer = null
    down.kit.clock.advance(61_000)
    t.equal((await send(down, toForm(down.kit.upstream.logoutToken({ sub: 'ann' })))).status, 200)
    down.kit.upstream.answer = (_request, response) => Boolean(response.writeHead(503).end())
    down.kit.clock.advance(2 * 60 * 60_000)
    t.equal((await send(down, toForm(down.kit.upstream.logoutToken({ sub: 'ann' })))).status, 200)
  })
})

t.test('refused tokens are limited by network, and a good one never', async (t) => {
  const harness = await startHarness(t, { signUp: true, upstream: {}, rateLimit: 1000, oidc: { signInLimit: 2 } })
  const { upstream } = harness.kit
  const statuses: number[] = []
  for (let index = 0; index < 25; index++) statuses.push((await send(harness, toForm('x'))).status)
  t.strictSame([...new Set(statuses)], [400, 429])
  t.equal(statuses.filter((status) => status === 400).length, 20)
  for (let index = 0; index < 25; index++) t.equal((await send(harness, toForm(upstream.logoutToken({ sub: 'ann' })))).status, 200)
  const page = await harness.browser().open('/account/sign-in')
  t.match((await page.submit({ account: harness.user.account, password: harness.user.password })).title, /Profile/, 'people sign in from there')
})

t.test('a provider ends nothing of another one', async (t) => {
  const other = await createTestUpstream()
  t.teardown(other.close)
  const harness = await startHarness(t, {
    signUp: true,
    upstream: {},
    upstreams: [{ id: 'other', kind: 'oidc', name: 'Other', issuer: other.issuer, emails: 'verified', create: true, ...TEST_CLIENT }]
  })
  const { kit } = harness
  const { upstream } = kit
  upstream({ sub: 'ann', email: 'a@example.org', email_verified: true, sid: 's1' })
  const browser = harness.browser()
  await through(browser, START)
  // The same names there, and each token at the other's endpoint.
  for (const claims of [{ sub: 'ann' }, { sid: 's1' }, { sub: 'ann', sid: 's1' }, { sub: 'ann', sid: 'unknown' }]) {
    t.equal((await send(harness, toForm(other.logoutToken(claims)), { id: 'other' })).status, 200)
    // So that the keys are fetched at once.
    kit.clock.advance(61_000)
    t.equal((await send(harness, toForm(other.logoutToken(claims)))).status, 400)
    kit.clock.advance(61_000)
    t.match((await send(harness, toForm(other.logoutToken({ ...claims, iss: upstream.issuer })))).error, /signature/)
    t.equal((await send(harness, toForm(upstream.logoutToken(claims)), { id: 'other' })).status, 400)
  }
  t.notOk(isSignedOut(await browser.open('/account')))
  t.equal((await send(harness, toForm(upstream.logoutToken({ sid: 's1' })))).status, 200)
  t.ok(isSignedOut(await browser.open('/account')))
})

t.test('other kinds have no such endpoint', async (t) => {
  const harness = await startHarness(t, { signUp: true, upstream: { kind: 'google', emails: undefined } as never })
  t.equal((await send(harness, toForm(harness.kit.upstream.logoutToken({ sub: 'ann' })))).status, 404)
})
