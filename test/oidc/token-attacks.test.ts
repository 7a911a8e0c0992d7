import fastify from 'fastify'
import { SignJWT } from 'jose'
import t from 'tap'
import { hashToken } from '../../lib/crypto/random-token.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { createApp } from '../../testing/kit.ts'
import { remoteAuth } from '../../plugins/remote.ts'
import { createTestKey } from '../helpers/assertions.ts'
import { callAs } from '../helpers/people.ts'
import { type App, type Harness, eachStore, getCode } from './harness.ts'
import { onBothStores, start as startCase } from './race-case.ts'

// Attacks on service tokens and JWT access tokens.

const ROOT = { user_id: '', isAdmin: true }
const ORDERS = 'https://orders.example'
const FORWARD = `/api/v1/auth/forward?subject=any&resource=${ORDERS}`

t.setTimeout(300_000)

interface Taken { access_token: string, refresh_token: string, id_token: string, token_type: string }

async function take (harness: Harness, app: App, scope: string, headers: Record<string, string> = {}): Promise<Taken> {
  const { status, body } = await harness.post('token', await getCode(harness, app, { scope }), app, headers)
  if (status !== 200) throw new Error(JSON.stringify(body))
  return body as unknown as Taken
}

const declareOrders = async ({ kit }: Harness) =>
  await kit.app.identity.resources.create({ data: { id: ORDERS, name: 'Orders', scopes: { 'orders:read': 'See your orders' }, tokenFormat: 'jwt' } })

eachStore(t, 'attacks on tokens', async (t, start) => {
  const lines: string[] = []
  const harness = await start({ forwardAuth: true, app: createApp({ logger: { level: 'trace', stream: { write: (line: string) => { lines.push(line) } } } }) })
  const { kit, url, post, get } = harness
  const { identity } = kit.app
  await declareOrders(harness)
  const app = await harness.register({ scopes: ['read', 'orders:read'] })
  const other = await harness.register({ scopes: ['read', 'orders:read'] })
  const works = async (token: string) => (await get('tokeninfo', token)).status === 200
  const forward = async (authorization: string) => (await kit.inject({ url: FORWARD, headers: { authorization } })).statusCode

  await t.test('the id of a stored token, as a backup or a list has it, is no token', async (t) => {
    const plain = await take(harness, app, 'openid offline_access profile')
    const jwt = await take(harness, app, 'openid orders:read')
    const service = await kit.serviceToken(app.client_id, { scopes: ['orders:read'], resource: ORDERS })
    t.equal((await get('userinfo', plain.access_token)).status, 200)
    // At first one that names its record, as every revocation of a JWT does.
    await post('revoke', { token: `${jwt.access_token}x` }, app)
    for (const token of [plain.access_token, plain.refresh_token, jwt.access_token, service.token]) {
      const id = hashToken(token)
      for (const text of [id, `~${id}`, `~~${id}`, `.${id}`]) {
        t.equal((await get('userinfo', text)).status, 401)
        t.equal((await post('userinfo', { access_token: text })).status, 401)
        t.notOk(await works(text))
        t.strictSame((await post('introspect', { token: text }, app)).body, { active: false })
        t.equal(await forward(`Bearer ${text}`), 401)
        t.match((await post('token', { grant_type: 'refresh_token', refresh_token: text }, app)).body, { error: 'invalid_grant' })
        await post('revoke', { token: text }, app)
      }
    }
    for (const token of [plain.access_token, jwt.access_token, service.token]) t.ok(await works(token), 'and it revokes nothing')
  })

  await t.test('another client neither revokes nor widens a token, and no token stands in for another thing', async (t) => {
    const jwt = await take(harness, app, 'openid offline_access orders:read')
    const service = await kit.serviceToken(app.client_id, { scopes: ['read'] })
    for (const token of [jwt.access_token, service.token]) {
      t.match(await post('revoke', { token }, other), { status: 400 })
      t.ok(await works(token))
      const forms: Record<string, string>[] = [
        { grant_type: 'refresh_token', refresh_token: token },
        { grant_type: 'authorization_code', code: token, redirect_uri: app.redirect_uri, code_verifier: 'x'.repeat(43) },
        { grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code: token }
      ]
      for (const form of forms) t.match((await post('token', form, app)).body, { error: 'invalid_grant' }, String(form.grant_type))
      const ended = await fetch(`${url}/api/v1/auth/session/end?${new URLSearchParams({ id_token_hint: token })}`)
      t.equal(ended.status, 400, 'no hint of an ID token')
    }
    for (const scope of ['openid orders:read read', 'orders:read write']) {
      t.match((await post('token', { grant_type: 'refresh_token', refresh_token: jwt.refresh_token, scope }, app)).body, { error: /invalid_(?:scope|target)/ }, scope)
    }
    t.notOk(await works(jwt.id_token), 'an ID token is no access token')
  })

  await t.test('a JWT that is bound to a key is no bearer token anywhere', async (t) => {
    const key = createTestKey('ES256')
    const prove = async (htu: string) => await new SignJWT({ jti: String(Math.random()), htm: 'POST', htu }).setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk: key.jwk }).setIssuedAt().sign(key.privateKey)
    const { access_token, token_type } = await take(harness, app, 'openid orders:read', { dpop: await prove(`${url}/api/v1/auth/token`) })
    t.equal(token_type, 'DPoP')
    t.match((await post('introspect', { token: access_token }, app)).body, { active: true, token_type: 'DPoP', cnf: { jkt: String } })
    t.notOk(await works(access_token))
    for (const scheme of ['Bearer', 'DPoP']) t.equal(await forward(`${scheme} ${access_token}`), 401, scheme)
    const [embedded, remote] = [fastify(), fastify()]
    t.teardown(async () => { await Promise.all([embedded.close(), remote.close()]) })
    await remote.register(remoteAuth, { issuer: url, jwtResources: [{ id: ORDERS }] })
    for (const [host, { guard }] of [[embedded, identity], [remote, remote.identity]] as const) {
      host.get('/', { onRequest: guard({ audience: ORDERS, subject: 'any' }) }, async () => '')
      t.equal((await host.inject({ url: '/', headers: { authorization: `Bearer ${access_token}` } })).statusCode, 401)
    }
    await post('revoke', { token: access_token }, app)
    t.strictSame((await post('introspect', { token: access_token }, app)).body, { active: false })
  })

  await t.test('no text of a token is in the store, the events, the mails or the log', async (t) => {
    await kit.mails.all()
    const boss = callAs(kit, (await kit.mint({ user: 'boss@example.com', roles: ['admin'] })).headers)
    const jwt = await take(harness, app, 'openid offline_access orders:read')
    const made = await boss.post<{ data: { token: string, id: string } }>(`/client/${app.client_id}/token`, { data: { name: 'SCIM', scopes: ['orders:read'], resource: ORDERS } })
    const { token, id } = made.body.data
    for (const text of [jwt.access_token, token]) {
      for (const sent of [text, `${text}x`]) {
        await get('tokeninfo', sent)
        await get('userinfo', sent)
        await post('introspect', { token: sent }, app)
        await post('introspect', { token: sent })
        await forward(`Bearer ${sent}`)
        await forward(`Basic ${Buffer.from(`${sent}:${sent}`).toString('base64')}`)
      }
    }
    await boss.delete(`/client/${app.client_id}/token/${id}`)
    await post('revoke', { token: jwt.access_token }, app)
    await kit.flush()
    const stored: string[] = []
    for (const { name } of COLLECTIONS) for await (const batch of identity.store.collection(name).stream({})) stored.push(JSON.stringify(batch))
    const mails = JSON.stringify(await kit.mails.all())
    t.ok(stored.some((batch) => batch.includes('token.service_created')) && mails.includes(token.slice(-4)) && lines.length > 0, 'there is something to find')
    for (const secret of [token.slice('fi_svc_'.length, -8), jwt.access_token.split('.')[2]!, jwt.refresh_token]) {
      for (const [where, text] of Object.entries({ store: stored.join('\n'), mails, log: lines.join('\n') })) t.notOk(text.includes(secret), where)
    }
  })
})

onBothStores(t, (t, place) => {
  t.test('a service token whose client or owner ends while it is made is not shown, and nothing of it stays', async (t) => {
    const c = await startCase(t, place)
    const { kit, get, interposed } = c
    const { identity } = kit.app
    const { users, clients } = identity
    const boss = callAs(kit, (await kit.mint({ user: 'boss@example.com', roles: ['admin'] })).headers)
    const held = identity.store.collection('access_tokens')
    let count = 0
    async function create () {
      const account = `owner-${count++}@example.com`
      const owner = await users.create({ data: { account, password: 'correct horse', name: account } })
      const { clientId } = await clients.create({ data: { redirectUris: [], name: account, scopes: ['read'], userId: owner.user_id }, credentials: true }, ROOT)
      return { user_id: owner.user_id, clientId }
    }
    const ends: Record<string, (scene: Awaited<ReturnType<typeof create>>) => Promise<unknown>> = {
      'owner deleted': async ({ user_id }) => await users.remove(user_id, ROOT),
      'owner disabled': async ({ user_id }) => await users.patch(user_id, { disable: true }, ROOT),
      'client disabled': async ({ clientId }) => await clients.patch(clientId, { data: { disabled: true } }, ROOT),
      'client disabled, enabled': async ({ clientId }) => { for (const disabled of [true, false]) await clients.patch(clientId, { data: { disabled } }, ROOT) },
      'client made public': async ({ clientId }) => await clients.patch(clientId, { data: { tokenAuth: 'none', grants: ['device'] } }, ROOT),
      'client taken over': async ({ clientId }) => await clients.patch(clientId, { take_over: true }, { user_id: c.user.user_id, isAdmin: true }),
      'client deleted': async ({ clientId }) => await clients.remove(clientId, ROOT)
    }
    for (const [name, end] of Object.entries(ends)) {
      let [k, meanwhile, fired] = [0, 0, true]
      for (; fired; k++) {
        const scene = await create()
        await identity.tokens.settle()
        await kit.flush()
        const before = await held.count({ since: { holder: '' } })
        let made: { status: number, body: { data?: { token: string } } } | undefined
        let stored = 0
        fired = await interposed.at(k, async () => {
          stored = await held.count({ since: { holder: '' } }) - before
          await end(scene)
        }, async () => { made = await boss.post(`/client/${scene.clientId}/token`, { data: { name: 'SCIM', scopes: ['read'] } }) })
        if (!fired || made === undefined) break
        await identity.tokens.settle()
        const { status, body } = made
        if (status !== 200) {
          t.equal(await held.count({ equal: { holder: scene.clientId } }), 0, `${name}, order ${k}: nothing is left`)
          if (stored > 0) meanwhile++
        } else if (stored > 0) t.equal((await get('tokeninfo', body.data!.token)).status, 401, `${name}, order ${k}: it does not work`)
      }
      t.ok(k > 3, `${name}: ${k} orders`)
      t.ok(meanwhile > 0, `${name}: it is refused after the token was stored`)
    }
  })
})
