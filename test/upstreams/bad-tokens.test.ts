import { createHmac, createPrivateKey, createPublicKey, generateKeyPairSync, type JsonWebKey, type KeyObject, sign } from 'node:crypto'
import { Events, OAuth2Server } from 'oauth2-mock-server'
import t, { type Test } from 'tap'
import type { GivenUpstream } from '../../schemas/upstream.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { startHarness } from '../oidc/harness.ts'
import { agree, answerOf, leave, readError } from './through.ts'

const DOWN = /isn’t responding as it should/
const SECRET = 'shh'

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const decode = (part = ''): Record<string, unknown> => JSON.parse(Buffer.from(part, 'base64url').toString())

/** The claims of a token, signed by RS256 with another key. */
function signWith (key: KeyObject, header: object, token: string): string {
  const input = `${encode({ alg: 'RS256', ...header })}.${token.split('.')[1]}`
  return `${input}.${sign('sha256', Buffer.from(input), key).toString('base64url')}`
}

/** What the provider changes of its answers. */
interface Changes {
  claims?: Record<string, unknown>
  header?: Record<string, unknown>
  userinfo?: Record<string, unknown>
  /** Another ID token, in place of the signed one. */
  forge?: (token: string) => string | undefined
  /** How it says that clients authenticate. */
  methods?: string[]
}

/** How a client has authenticated. */
interface Asked { headers: { authorization?: string | undefined }, body: { client_secret?: string } }

/** A service with a provider that nobody here has written. */
async function start (t: Test, more: Pick<GivenUpstream, 'roles'> = {}) {
  let [nonce, changes]: [string | null, Changes] = [null, {}]
  let url = ''
  const requests: Asked[] = []

  async function listen (port = 0): Promise<OAuth2Server> {
    const server = new OAuth2Server()
    await server.issuer.keys.generate('RS256')
    await server.start(port, '127.0.0.1')
    t.teardown(async () => { if (server.listening) await server.stop() })
    // It names itself by `localhost`, where it may not listen.
    url = server.issuer.url = `http://127.0.0.1:${server.address().port}`
    const claims = { sub: 'ann', aud: 'us', email: 'a@example.org', email_verified: true, iss: url }
    server.service.on(Events.BeforeWellKnownOpenIdConfiguration, ({ body }) => {
      Object.assign(body, { id_token_signing_alg_values_supported: ['RS256', 'HS256', 'none'], token_endpoint_auth_methods_supported: changes.methods ?? ['none'] })
    })
    server.service.on(Events.BeforeTokenSigning, (token, request: Asked) => {
      requests.push(request)
      Object.assign(token.payload, { ...claims, nonce, ...changes.claims })
      Object.assign(token.header, changes.header)
    })
    server.service.on(Events.BeforeResponse, ({ body }: { body: Record<string, unknown> }) => {
      if (changes.forge !== undefined) body['id_token'] = changes.forge(String(body['id_token']))
    })
    server.service.on(Events.BeforeUserinfo, (response) => { response.body = changes.userinfo ?? {} })
    return server
  }

  const server = await listen()
  const harness = await startHarness(t, {
    signUp: true, upstreams: [{ id: 'mock', kind: 'oidc', issuer: url, clientId: 'us', clientSecret: SECRET, emails: 'verified', create: true, ...more }]
  })
  return {
    server,
    harness,
    listen,
    requests,
    async enter (next: Changes = {}) {
      changes = next
      const browser = harness.browser()
      const asked = await leave(browser, '/api/v1/auth/upstream/mock')
      nonce = asked.searchParams.get('nonce')
      return await agree(await browser.open(await answerOf(asked)))
    }
  }
}

t.test('ID tokens, each wrong in one way', async (t) => {
  const { server, enter } = await start(t)
  const right = await enter()
  t.match(right.title, /Profile/, readError(right))
  const [past, future] = [Math.floor(Date.now() / 1000) - 3600, Math.floor(Date.now() / 1000) + 3600]
  for (const [name, claims, header = {}] of [
    ['another audience', { aud: 'somebody else' }],
    ['several audiences, and no party', { aud: ['us', 'them'] }],
    ['another party', { azp: 'them' }],
    ['another issuer', { iss: 'https://evil.example' }],
    ['expired', { exp: past }],
    ['of the future', { nbf: future }],
    ['another nonce', { nonce: 'another' }],
    ['no nonce', { nonce: undefined }],
    ['no subject', { sub: undefined }],
    ['a key that there is not', {}, { kid: 'unknown' }]
  ] as [string, Record<string, unknown>, Record<string, unknown>?][]) {
    t.match(readError(await enter({ claims, header })), DOWN, name)
  }

  const [published] = server.issuer.keys.toJSON()
  const pem = createPublicKey({ key: published as JsonWebKey, format: 'jwk' }).export({ format: 'pem', type: 'spki' })
  const own = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const hmac = (key: string | Buffer) => (token: string) => {
    const input = `${encode({ alg: 'HS256', kid: published!.kid })}.${token.split('.')[1]}`
    return `${input}.${createHmac('sha256', key).update(input).digest('base64url')}`
  }
  for (const [name, forge] of [
    ['absent', () => undefined],
    ['without a signature, and saying so', (token) => `${encode({ alg: 'none' })}.${token.split('.')[1]}.`],
    ['without a signature', (token) => token.replace(/[^.]*$/, '')],
    ['signed with the client secret', hmac(SECRET)],
    ['signed with the public key as a secret', hmac(pem)],
    ['signed with a key that it brings itself', (token) => signWith(own.privateKey, { kid: published!.kid, jwk: own.publicKey.export({ format: 'jwk' }) }, token)],
    ['changed after it was signed', (token) => {
      const [head, body, signature] = token.split('.')
      return `${head}.${encode({ ...decode(body), sub: 'bob' })}.${signature}`
    }]
  ] as [string, (token: string) => string | undefined][]) {
    t.match(readError(await enter({ forge })), DOWN, name)
  }
  t.match((await enter()).title, /Profile/, 'and the next right one is good')
})

t.test('a provider with a second key, and one with other keys', async (t) => {
  const { server, enter, listen } = await start(t)
  t.match((await enter()).title, /Profile/)
  await server.issuer.keys.generate('RS256')
  // It takes its keys in turn.
  for (let count = 0; count < 3; count++) t.match((await enter()).title, /Profile/)
  const { port } = server.address()
  await server.stop()
  await listen(port)
  t.match((await enter()).title, /Profile/, 'the keys are read again')
  const [former] = server.issuer.keys.toJSON(true)
  const forge = (token: string) => signWith(createPrivateKey({ key: former as JsonWebKey, format: 'jwk' }), { kid: former!.kid }, token)
  t.match(readError(await enter({ forge })), DOWN, 'a former key is none')
})

// OpenID Connect Core, 5.4: many servers put the claims of the scopes into the answer of userinfo, and nowhere else.
t.test('an address that only userinfo has', async (t) => {
  const { harness, enter } = await start(t)
  const users = harness.kit.app.identity.store.collection<UserRecord>('users')
  const claims = { sub: 'kim', email: undefined, email_verified: undefined }
  const userinfo = { sub: 'kim', email: 'Kim@Example.org', email_verified: true, name: 'Kim' }

  t.match(readError(await enter({ claims, userinfo: { ...userinfo, sub: 'ann' } })), DOWN, 'of somebody else')
  t.match(readError(await enter({ claims, userinfo: {} })), DOWN, 'of nobody')
  t.equal(await users.getBy('addresses', 'kim@example.org'), null)
  for (const [name, token, info] of [
    ['which does not prove it', {}, { email_verified: undefined }],
    ['where it is not verified', {}, { email_verified: false }],
    ['beside a proof of another one', { email_verified: true }, { email_verified: undefined }]
  ] as const) {
    const page = await enter({ claims: { ...claims, ...token }, userinfo: { ...userinfo, ...info } })
    t.equal(page.title, 'Create your account', name)
    t.notMatch(page.text, /kim@/i, name)
  }
  const page = await enter({ claims, userinfo: { ...userinfo, iss: 'https://evil.example', acr: 'gold', auth_time: 1 } })
  t.match(page.title, /Profile/, readError(page))
  t.match(await users.getBy('account', 'kim@example.org'), { email: 'kim@example.org', email_verified_at: String, name: 'Kim' })
  t.match((await enter({ claims, userinfo })).title, /Profile/, 'the same person again')
  t.equal(await users.count({ contains: { account: 'kim' } }), 1)

  const complete = await enter({ claims: { sub: 'lea', email: 'lea@example.org' }, userinfo: { sub: 'lea', email: 'victim@example.org', email_verified: true } })
  t.match(complete.title, /Profile/, 'userinfo is not asked for what the ID token has')
  t.match(await users.getBy('account', 'lea@example.org'), { email: 'lea@example.org' })
})

t.test('a client secret goes into the body, and into the header of a server that takes it nowhere else', async (t) => {
  const { harness, enter, requests } = await start(t)
  for (const [methods, isHeader] of [
    [['none'], false], [['client_secret_basic', 'client_secret_post'], false], [['client_secret_basic', 'private_key_jwt'], true]
  ] as const) {
    t.match((await enter({ methods: [...methods] })).title, /Profile/)
    const { headers, body } = requests.at(-1)!
    t.equal(headers.authorization, isHeader ? `Basic ${Buffer.from(`us:${SECRET}`).toString('base64')}` : undefined, `${methods}`)
    t.equal(body.client_secret, isHeader ? undefined : SECRET)
    // The metadata are read again.
    harness.kit.clock.advance(61 * 60_000)
  }
})

t.test('roles that only userinfo has', async (t) => {
  const { harness, enter } = await start(t, { roles: { claim: 'realm_access.roles', map: { staff: 'clerk', bosses: 'admin' } } })
  const rolesOf = async () => Object.keys((await harness.kit.app.identity.store.collection<UserRecord>('users').getBy('account', 'a@example.org'))?.roles ?? {})
  const realm = (...roles: string[]) => ({ realm_access: { roles } })
  const NO_ROLES = /didn’t tell us what you’re allowed to do here/

  t.match(readError(await enter({ userinfo: { sub: 'ann' } })), NO_ROLES, 'neither answer has the claim')
  t.match(readError(await enter({ userinfo: { sub: 'eve', ...realm('bosses') } })), DOWN, 'of somebody else')
  t.match((await enter({ claims: { realm_access: { other: 1 } }, userinfo: { sub: 'ann', ...realm('staff') } })).title, /Profile/)
  t.strictSame(await rolesOf(), ['clerk'])
  t.match((await enter({ claims: realm(), userinfo: { sub: 'ann', ...realm('bosses') } })).title, /Profile/)
  t.strictSame(await rolesOf(), [], 'the ID token comes first')
  t.match(readError(await enter({ claims: { _claim_names: { realm_access: 'src1' } }, userinfo: { sub: 'ann', ...realm('bosses') } })), NO_ROLES, 'what was too long is not looked for elsewhere')
  t.strictSame(await rolesOf(), [])
})
