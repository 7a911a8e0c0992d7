import { generateKeyPairSync, verify } from 'node:crypto'
import { join } from 'node:path'
import t from 'tap'
import type { UserRecord } from '../../lib/records/user.ts'
import { SERIALIZERS } from '../../plugins/logging.ts'
import { createTestUpstream } from '../../testing/index.ts'
import { createApp } from '../../testing/kit.ts'
import { TEST_CLIENT } from '../../testing/upstream.ts'
import { startHarness } from '../oidc/harness.ts'
import { type Answer, startUpstream } from '../helpers/upstream.ts'
import { waitUntil } from '../helpers/wait.ts'
import { agree, answerOf, leave, readError, through } from './through.ts'

const START = '/api/v1/auth/upstream/test'
const DOWN = /isn’t responding as it should/

t.test('a provider that fails', async (t) => {
  const harness = await startHarness(t, { signUp: true, upstream: {} })
  const { kit } = harness
  const { upstream } = kit
  upstream({ sub: 'ann', email: 'a@example.org', email_verified: true })
  const arrive = async () => await through(harness.browser(), START)
  t.match((await arrive()).title, /Profile/)
  const documents = () => upstream.calls.filter((call) => /well-known|keys/.test(call)).length

  await t.test('its metadata and its keys are read once an hour', async (t) => {
    const before = documents()
    await arrive()
    t.equal(documents(), before)
    kit.clock.advance(61 * 60_000)
    await arrive()
    t.equal(documents(), before + 2)
  })

  await t.test('signs with a new key, which is read at once', async (t) => {
    upstream.rotate()
    t.match((await arrive()).title, /Profile/)
  })

  await t.test('signs with a key that it does not publish', async (t) => {
    upstream.rotate(false)
    t.match(readError(await arrive()), DOWN)
    upstream.rotate()
  })

  await t.test('says what it may not say', async (t) => {
    for (const claims of [
      { iss: 'https://other.example' }, { aud: 'another-client' }, { exp: 1 }, { nonce: 'another' }, { nonce: undefined }, { sub: '' }, { sub: 7 as never }, { aud: [TEST_CLIENT.clientId, 'x'] }, { iat: undefined }
    ]) {
      upstream(claims)
      t.match(readError(await arrive()), DOWN, JSON.stringify(claims))
    }
    upstream({ sub: 'ann' })
  })

  await t.test('sends a megabyte of claims', async (t) => {
    upstream({ sub: 'ann', filler: 'x'.repeat(1_000_000) })
    t.match(readError(await arrive()), DOWN)
    upstream({ sub: 'ann' })
  })

  await t.test('does not know the code, or answers with something else', async (t) => {
    for (const [status, body] of [[400, '{"error":"invalid_grant"}'], [500, 'oops'], [200, '{}'], [200, '<html>'], [302, '']] as const) {
      upstream.answer = ({ url }, response) => {
        if (url !== '/token') return false
        response.writeHead(status, { 'content-type': 'application/json', location: 'http://169.254.169.254/' }).end(body)
        return true
      }
      t.match(readError(await arrive()), DOWN, `${status} ${body}`)
    }
    upstream.answer = null
  })

  await t.test('its last good metadata and keys stand for a day', async (t) => {
    kit.clock.advance(2 * 60 * 60_000)
    upstream.answer = ({ url }, response) => {
      if (url === '/token' || url?.startsWith('/authorize') === true) return false
      response.writeHead(503).end()
      return true
    }
    t.match((await arrive()).title, /Profile/)
    kit.clock.advance(25 * 60 * 60_000)
    const page = await harness.browser().open(START)
    t.match(readError(page), DOWN)
    t.equal(page.response.status, 502)
    t.match(page.text, /href="\/account\/sign-in"/, 'with a way back')
    upstream.answer = null
    t.match((await arrive()).title, /Profile/)
  })

  await t.test('somebody who cancels there reads so', async (t) => {
    const browser = harness.browser()
    const answer = await answerOf(await leave(browser, START))
    const { state } = Object.fromEntries(new URL(answer).searchParams)
    t.match(readError(await browser.open(`${START}/callback?error=access_denied&state=${state}`)), /didn’t sign you in, or you cancelled/)
  })

  await t.test('twenty call it at once, the next one waits, and nothing else does', async (t) => {
    const held: (() => void)[] = []
    const answers = await Promise.all(Array.from({ length: 21 }, async () => {
      const browser = harness.browser()
      return { browser, answer: await answerOf(await leave(browser, START)) }
    }))
    upstream.answer = ({ url }, response) => {
      if (url !== '/token') return false
      held.push(() => response.destroy())
      return true
    }
    const waiting = answers.slice(0, 20).map(({ browser, answer }) => browser.open(answer))
    await waitUntil('twenty wait for the provider', () => held.length >= 20)
    const last = answers[20]!.browser.open(answers[20]!.answer)
    const { account, password } = harness.user
    t.match((await (await harness.browser().open('/account/sign-in')).submit({ account, password })).title, /Profile/, 'the password is not slower')
    upstream.answer = ({ url }, response) => url === '/token' && Boolean(response.destroy())
    for (const release of held) release()
    for (const page of await Promise.all([...waiting, last])) t.match(readError(page), DOWN)
    upstream.answer = null
  })
})

t.test('the log has no secret, token or address of a provider', async (t) => {
  const lines: string[] = []
  const app = createApp({ logger: { level: 'trace', serializers: SERIALIZERS, stream: { write: (line: string) => { lines.push(line) } } } })
  const harness = await startHarness(t, { app, signUp: true, upstream: {} })
  harness.kit.upstream({ sub: 'secret-subject', email: 'secret@example.org', email_verified: true, name: 'Secret Name' })
  await through(harness.browser(), START)
  harness.kit.upstream({ sub: 'secret-subject', nonce: 'wrong', name: 'Secret Name' })
  await through(harness.browser(), START)
  harness.kit.upstream.answer = ({ url }, response) => {
    if (url !== '/token') return false
    response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":"invalid_grant","error_description":"secret@ of a person","code":"secret-subject"}')
    return true
  }
  await through(harness.browser(), START)
  harness.kit.upstream.answer = null
  const log = lines.join('')
  t.match(log, /an upstream cannot be used/)
  t.notMatch(log, /secret-subject|secret@|Secret Name|state=|code=|a secret of a test/)
})

// Shapes of GitHub's answers, written from its documentation.
t.test('GitHub', async (t) => {
  let emails: unknown = []
  let status = 200
  const answer: Answer = (response, { url, body, headers }) => {
    const send = (value: unknown, code = 200) => response.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(value))
    const { pathname } = new URL(url, 'http://github')
    if (pathname === '/login/oauth/access_token') {
      const params = new URLSearchParams(body)
      return send(params.get('code') === 'good' && params.get('client_secret') === 'shh' && params.has('code_verifier') ? { access_token: 'gho_x', token_type: 'bearer' } : { error: 'bad_verification_code' })
    }
    if (headers.authorization !== 'Bearer gho_x') return send({}, 401)
    if (pathname === '/api/v3/user') return send({ id: 4711, login: 'octo', name: 'Octo', email: 'public@example.org' })
    return pathname === '/api/v3/user/emails' ? send(emails, status) : send({}, 404)
  }
  const server = await startUpstream(t, answer)
  const upstreams = [{ id: 'github', kind: 'github' as const, issuer: server.url, clientId: 'c', clientSecret: 'shh', create: true }]
  const harness = await startHarness(t, { signUp: true, upstreams })
  const enter = async (code = 'good') => {
    const browser = harness.browser()
    const asked = await leave(browser, '/api/v1/auth/upstream/github')
    t.match(Object.fromEntries(asked.searchParams), { scope: 'read:user user:email', code_challenge_method: 'S256', response_type: 'code' })
    return await agree(await browser.open(`/api/v1/auth/upstream/github/callback?code=${code}&state=${asked.searchParams.get('state')}`))
  }
  for (const [name, list, answered] of [
    ['none', [], 200],
    ['null', null, 200],
    ['primary but unverified', [{ email: 'a@example.org', primary: true, verified: false }], 200],
    ['verified but not primary', [{ email: 'a@example.org', primary: false, verified: true }], 200],
    ['without a mailbox', [{ email: '4711+octo@users.noreply.github.com', primary: true, verified: true }], 200],
    ['not allowed', [{ email: 'a@example.org', primary: true, verified: true }], 404],
    ['too many requests', [{ email: 'a@example.org', primary: true, verified: true }], 429]
  ] as const) {
    emails = list
    status = answered
    const page = await enter()
    t.equal(page.title, 'Create your account', name)
    t.match(page.text, /value="github-/, `${name}: neither the public address nor this one`)
  }
  status = 200
  emails = [{ email: 'other@example.org', primary: false, verified: true }, { email: 'Octo@Example.org', primary: true, verified: true }]
  const page = await enter()
  t.match(page.text, /We’ll send a link to .*octo@example\.org/, 'the primary address is one that it has seen')
  t.match(page.text, /value="github-/)
  t.match((await page.submit({ account: 'octo' })).title, /Profile/)
  const octo = await harness.kit.app.identity.store.collection<UserRecord>('users').getBy('account', 'octo')
  t.match(octo, { email: undefined, email_verified_at: undefined, addresses: undefined, name: 'Octo' })
  emails = []
  t.match((await enter()).title, /Profile/, 'the numeric id is who they are')
  t.match(readError(await enter('bad')), DOWN)
  t.match(readError(await enter('good&iss=https://evil.example')), DOWN)
})

// Shapes of Microsoft's documents, written from its documentation.
t.test('Microsoft, with any tenant and with one', async (t) => {
  const [HOME, OTHER] = ['0a8a1c02-3c60-4be0-8c31-9d2b0a0d6f01', 'ffffffff-3c60-4be0-8c31-9d2b0a0d6f02']
  const provider = await createTestUpstream()
  t.teardown(provider.close)
  let issuer = `${provider.issuer}/{tenantid}/v2.0`
  provider.answer = ({ url }, response) => {
    if (!/^\/[\w-]+\/v2\.0\/\.well-known\/openid-configuration$/.test(url!)) return false
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({
      issuer,
      authorization_endpoint: `${provider.issuer}/authorize`,
      token_endpoint: `${provider.issuer}/token`,
      jwks_uri: `${provider.issuer}/keys`,
      id_token_signing_alg_values_supported: ['ES256']
    }))
    return true
  }
  const settings = { kind: 'microsoft' as const, issuer: provider.issuer, ...TEST_CLIENT, create: true }
  const harness = await startHarness(t, { signUp: true, upstreams: [{ ...settings, id: 'any', tenants: ['all'] }, { ...settings, id: 'one', tenants: [HOME] }] })
  const says = (tid: string, claims: object = {}) => provider({ iss: `${provider.issuer}/${tid}/v2.0`, tid, oid: `object in ${tid}`, sub: Math.random().toString(), ...claims })
  const enter = async (id: string) => {
    const browser = harness.browser()
    const answer = new URL(await answerOf(await leave(browser, `/api/v1/auth/upstream/${id}`)))
    answer.searchParams.delete('iss')
    return await agree(await browser.open(answer.href))
  }
  says(OTHER, { email: harness.user.account, email_verified: true, preferred_username: harness.user.account })
  let page = await enter('any')
  t.equal(page.title, 'Create your account', 'a foreign tenant with the address of the victim (nOAuth) has no address at all')
  t.notMatch(page.text, /ann@example/)
  t.match((await page.submit({ account: 'stranger' })).title, /Profile/)
  t.match((await enter('any')).text, /stranger/, 'the object in its tenant is who they are, whatever the app registration')
  t.match(readError(await enter('one')), /organization can’t sign in here/)
  says(HOME, { email: 'kim@example.org', xms_edov: true })
  t.match((await enter('one')).title, /Profile/)
  says(HOME, { iss: `${provider.issuer}/${OTHER}/v2.0` })
  t.match(readError(await enter('any')), DOWN, 'the issuer is that of the tenant')
  issuer = 'https://evil.example'
  harness.kit.clock.advance(2 * 60 * 60_000)
  page = await harness.browser().open('/api/v1/auth/upstream/any')
  t.match(readError(page), DOWN, 'metadata of another issuer')
})

// Shapes of Apple's answers, written from its documentation.
t.test('Apple answers with a form, from another site', async (t) => {
  const provider = await createTestUpstream()
  t.teardown(provider.close)
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const keyFile = join(t.testdir({ 'key.p8': privateKey.export({ format: 'pem', type: 'pkcs8' }) }), 'key.p8')
  const upstreams = [{ id: 'apple', kind: 'apple' as const, issuer: provider.issuer, clientId: TEST_CLIENT.clientId, keyFile, keyId: 'KEY', teamId: 'TEAM', create: true }]
  const { kit, browser: open } = await startHarness(t, { database: 'sqlite::memory:', signUp: true, upstreams })
  provider.checkSecret = (secret) => {
    const [head = '', body = '', signature = ''] = secret.split('.')
    const read = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString())
    t.match(read(head), { alg: 'ES256', kid: 'KEY' })
    t.match(read(body), { iss: 'TEAM', sub: TEST_CLIENT.clientId, aud: provider.issuer })
    return verify('sha256', Buffer.from(`${head}.${body}`), { key: publicKey, dsaEncoding: 'ieee-p1363' }, Buffer.from(signature, 'base64url'))
  }
  const enter = async (user?: object, more: Record<string, string> = {}) => {
    const browser = open()
    const asked = await leave(browser, '/api/v1/auth/upstream/apple')
    t.equal(asked.searchParams.get('response_mode'), 'form_post')
    const answer = new URL(await answerOf(asked))
    const body = new URLSearchParams({ ...Object.fromEntries(answer.searchParams), ...(user && { user: JSON.stringify(user) }), ...more })
    const posted = await fetch(`${answer.origin}${answer.pathname}`, { method: 'POST', body, redirect: 'manual', headers: { origin: 'https://appleid.apple.com', 'sec-fetch-site': 'cross-site' } })
    return { browser, posted, to: posted.headers.get('location') ?? '' }
  }
  provider({ sub: 'apple.1', email: 'x7@privaterelay.appleid.com', email_verified: 'true' })
  const first = await enter({ name: { firstName: 'Ann', lastName: 'Lee' }, email: 'forged@example.org' })
  t.equal(first.posted.status, 303)
  t.notMatch(first.to, /Ann|forged/)
  const users = kit.app.identity.store.collection<UserRecord>('users')
  t.match(readError(await open().open(first.to)), /sign-in has expired/, 'another browser has no cookie of it')
  t.match((await agree(await first.browser.open(first.to))).title, /Profile/)
  t.match(await users.getBy('account', 'x7@privaterelay.appleid.com'), { name: 'Ann Lee', email_verified_at: String })
  t.same(await users.getBy('addresses', 'forged@example.org'), null, 'the form proves no address')
  const second = await enter()
  t.match((await second.browser.open(second.to)).title, /Profile/)
  t.match(await users.getBy('account', 'x7@privaterelay.appleid.com'), { name: 'Ann Lee' }, 'the second sign-in says no name')
  t.equal((await enter(undefined, { filler: 'x'.repeat(9000) })).posted.status, 413)
})
