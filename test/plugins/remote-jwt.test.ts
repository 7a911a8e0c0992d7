import { createHmac } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type JWTPayload, SignJWT, base64url, exportJWK, generateKeyPair } from 'jose'
import fastify from 'fastify'
import t, { type Test } from 'tap'
import { type RemoteAuthOptions, remoteAuth } from '../../plugins/remote.ts'
import { eachStore, getCode } from '../oidc/harness.ts'

const ORDERS = 'https://orders.example'

async function startHost (t: Test, options: RemoteAuthOptions) {
  const host = fastify()
  t.teardown(async () => { await host.close() })
  await host.register(remoteAuth, options)
  const { guard } = host.identity
  host.get('/orders', { onRequest: guard({ audience: ORDERS, scopes: ['orders:read'], subject: 'any' }) }, ({ caller, isAdmin }) => ({ caller, isAdmin }))
  host.get('/boss', { onRequest: guard({ audience: ORDERS, roles: ['boss'] }) }, () => ({}))
  host.get('/strong', { onRequest: guard({ audience: ORDERS, acr: 'mfa' }) }, () => ({}))
  host.get('/stock', { onRequest: guard({ audience: 'https://stock.example', subject: 'any' }) }, () => ({}))
  const ask = async (token: string, url = '/orders') => {
    const { statusCode, body, headers } = await host.inject({ url, headers: { authorization: `Bearer ${token}` } })
    return { status: statusCode, body: JSON.parse(body), challenge: headers['www-authenticate'] }
  }
  return { host, ask }
}

/** An issuer with keys that a test chooses. */
async function startIssuer (t: Test) {
  const state = { keys: [] as object[], isDown: false, seen: [] as string[] }
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url!, 'http://x')
    state.seen.push(pathname)
    const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const answers: Record<string, object> = {
      '/.well-known/openid-configuration': { issuer, jwks_uri: `${issuer}/keys`, tokeninfo_endpoint: `${issuer}/info` },
      '/keys': { keys: state.keys }
    }
    const answer = answers[pathname]
    response.writeHead(state.isDown ? 503 : answer === undefined ? 401 : 200, { 'content-type': 'application/json' }).end(JSON.stringify(answer ?? {}))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => new Promise((resolve) => { server.closeAllConnections(); server.close(resolve) }))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const create = async (kid: string, alg = 'ES256') => {
    const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
    const jwk = { ...await exportJWK(publicKey), kid, alg, use: 'sig' }
    return { privateKey, publicKey, jwk, kid, alg }
  }
  return { state, issuer, create }
}

t.test('a JWT is verified as declared, and nothing else passes', async (t) => {
  const { state, issuer, create } = await startIssuer(t)
  const [ec, rsa, stranger] = [await create('ec'), await create('rsa', 'RS256'), await create('ec')]
  state.keys = [ec.jwk, rsa.jwk]
  const { ask } = await startHost(t, { issuer, jwtResources: [{ id: ORDERS, tokenAlg: 'ES256' }, { id: 'https://stock.example' }] })
  const seconds = Math.floor(Date.now() / 1000)
  const claims: JWTPayload = {
    iss: issuer, sub: 'ann', aud: ORDERS, client_id: 'shop', scope: 'orders:read', iat: seconds, exp: seconds + 600, jti: 'x', acr: '1', amr: ['pwd'], auth_time: seconds
  }
  const sign = async (more: JWTPayload = {}, header: object = {}, by = ec) =>
    await new SignJWT({ ...claims, ...more }).setProtectedHeader({ alg: by.alg, kid: by.kid, typ: 'at+jwt', ...header }).sign(by.privateKey)

  const good = await sign({ roles: ['boss'] })
  const { status, body } = await ask(good)
  t.equal(status, 200)
  t.match(body, {
    caller: { subject: 'user', user: { user_id: 'ann', account: '', name: '', roles: { boss: true } }, client: { clientId: 'shop' }, token: { scopes: ['orders:read'], audience: ORDERS }, auth: { acr: '1', amr: ['pwd'] } },
    isAdmin: false
  })
  t.equal((await ask(good, '/boss')).status, 200)
  t.equal((await ask(await sign(), '/boss')).status, 403)
  t.equal((await ask(good, '/strong')).status, 401, 'the strength of the sign-in is compared')
  t.equal((await ask(good, '/stock')).status, 401, 'it is for one resource')
  t.match((await ask(await sign({ sub: 'shop', acr: undefined, amr: undefined, auth_time: undefined }))).body, { caller: { subject: 'client', user: { user_id: '' }, client: { clientId: 'shop' } } })
  t.match((await ask(await sign({ roles: ['admin'] }))).body, { isAdmin: true })
  t.equal((await ask(await sign({ scope: 'orders:write' }))).status, 403)

  const [, payload] = good.split('.')
  const asText = (header: object) => `${base64url.encode(JSON.stringify(header))}.${payload}`
  const hmac = asText({ alg: 'HS256', typ: 'at+jwt', kid: 'ec' })
  const forged: Record<string, string> = {
    'another key with the same kid': await sign({}, {}, stranger),
    'another algorithm than declared': await sign({}, {}, rsa),
    'the other resource, by the algorithm of this one': await sign({ aud: 'https://stock.example' }),
    'no signature': `${asText({ alg: 'none', typ: 'at+jwt' })}.`,
    'an HMAC with the public key': `${hmac}.${createHmac('sha256', JSON.stringify(ec.jwk)).update(hmac).digest('base64url')}`,
    'an ID token': await sign({}, { typ: 'JWT' }),
    'no type': await sign({}, { typ: undefined }),
    'the long form of the type': await sign({}, { typ: 'application/at+jwt' }),
    'the type in capitals': await sign({}, { typ: 'AT+JWT' }),
    'a logout token': await sign({}, { typ: 'logout+jwt' }),
    'another issuer': await sign({ iss: `${issuer}/` }),
    'two audiences': await sign({ aud: [ORDERS, 'https://stock.example'] }),
    'a list of one': await sign({ aud: [ORDERS] }),
    'an audience like ours': await sign({ aud: `${ORDERS}/` }),
    'one that has expired': await sign({ iat: seconds - 1200, exp: seconds - 1 }),
    'no end': await sign({ exp: undefined }),
    'no client': await sign({ client_id: undefined }),
    'bound to a key': await sign({ cnf: { jkt: 'x' } }),
    'a critical extension': await sign({}, { crit: ['x'], x: 1 }).catch(() => `${asText({ alg: 'ES256', typ: 'at+jwt', kid: 'ec', crit: ['x'], x: 1 })}.AAAA`),
    'no header': `.${payload}.AAAA`,
    'a header that is null': `${base64url.encode('null')}.${payload}.AAAA`,
    'a header that is a list': `${base64url.encode('[]')}.${payload}.AAAA`,
    'a header that is a text': `${base64url.encode('"at+jwt"')}.${payload}.AAAA`,
    'a header that is no JSON': `~~~~.${payload}.AAAA`,
    'a changed payload': `${good.split('.')[0]}.${base64url.encode(JSON.stringify({ ...claims, sub: 'bob' }))}.${good.split('.')[2]}`
  }
  for (const [name, token] of Object.entries(forged)) {
    const path = name.startsWith('the other') ? '/stock' : '/orders'
    t.match(await ask(token, path), { status: 401, challenge: /invalid_token/ }, name)
  }
  t.equal((await ask(good)).status, 200, 'the good one still passes')
  t.strictSame(state.seen.filter((path) => path === '/keys').length, 1, 'the keys were read once')
})

t.test('keys are read again for a new one, at most once a minute, and a service that is down is 503', async (t) => {
  const { state, issuer, create } = await startIssuer(t)
  const { ask } = await startHost(t, { issuer, jwtResources: [{ id: ORDERS, tokenAlg: 'ES256' }] })
  const seconds = Math.floor(Date.now() / 1000)
  const sign = async ({ kid, privateKey }: Awaited<ReturnType<typeof create>>, exp = seconds + 600) => await new SignJWT({ client_id: 'shop', scope: 'orders:read' })
    .setProtectedHeader({ alg: 'ES256', kid, typ: 'at+jwt' }).setIssuer(issuer).setAudience(ORDERS).setSubject('ann').setIssuedAt().setExpirationTime(exp).sign(privateKey)
  const [one, two] = [await create('one'), await create('two')]
  state.isDown = true
  t.equal((await ask(await sign(one))).status, 503, 'nothing is known yet')
  Object.assign(state, { isDown: false, keys: [one.jwk] })
  t.equal((await ask(await sign(one))).status, 200)
  const before = state.seen.length
  for (let count = 0; count < 5; count++) t.equal((await ask(await sign(two))).status, 401)
  t.equal(state.seen.length, before, 'the keys were read within the minute')
  Object.assign(state, { isDown: true })
  t.equal((await ask(await sign(one, seconds + 500))).status, 200, 'known keys do without the service')
})

t.test('the option needs an issuer', async (t) => {
  await t.rejects(startHost(t, { upstream: 'http://127.0.0.1:9', jwtResources: [{ id: ORDERS }] }), { message: 'option jwtResources: needs the option issuer' })
  await t.rejects(startHost(t, { issuer: 'http://127.0.0.1:9', jwtResources: [{ id: ORDERS, tokenAlg: 'HS256' as 'ES256' }] }), /jwtResources/)
})

eachStore(t, 'the service and an app that asks nobody', async (t, start) => {
  const harness = await start()
  const { kit, url, user } = harness
  await kit.app.identity.resources.create({ data: { id: ORDERS, name: 'Orders', scopes: { 'orders:read': 'See your orders' }, tokenFormat: 'jwt' } })
  const { issuer } = await (await fetch(`${url}/.well-known/openid-configuration`)).json() as { issuer: string }
  const { ask } = await startHost(t, { issuer, jwtResources: [{ id: ORDERS }] })
  const asking = await startHost(t, { issuer, cacheTtl: 0 })
  const app = await harness.register({ scopes: ['orders:read'] })
  const form = await getCode(harness, app, { scope: 'openid orders:read' })
  const { access_token } = (await harness.post('token', form, app)).body as { access_token: string }
  t.match((await ask(access_token)).body, { caller: { user: { user_id: user.user_id }, token: { scopes: ['orders:read'] } } })
  t.match((await asking.ask(access_token)).body, { caller: { user: { user_id: user.user_id, account: user.account } } }, 'an app without the option asks about it')
  const minted = await kit.mint({ user: user.account, client: app.client_id, resource: ORDERS, scopes: ['orders:read'] })
  t.match((await ask(minted.access_token)).body, { caller: { user: { account: user.account } } }, 'opaque tokens are asked about')
  await harness.post('revoke', { token: access_token }, app)
  t.strictSame([(await ask(access_token)).status, (await asking.ask(access_token)).status], [200, 401], 'whoever asks nobody learns of a revocation when the token expires')
})
