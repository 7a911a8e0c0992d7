import { createHash } from 'node:crypto'
import { SignJWT, createRemoteJWKSet, decodeJwt, decodeProtectedHeader, generateKeyPair, jwtVerify } from 'jose'
import t from 'tap'
import { hashToken } from '../../lib/crypto/random-token.ts'
import type { TokenRecord } from '../../lib/records/token.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { LIMITS } from '../../schemas/common.ts'
import { callAs } from '../helpers/people.ts'
import { type App, type Harness, eachStore, getCode } from './harness.ts'

const ROOT = { user_id: '', isAdmin: true }
const ORDERS = 'https://orders.example'

t.setTimeout(300_000)

/** A first-party app with the scope of the resource, and its redeemed code. */
async function redeem (harness: Harness, app: App, scope = 'openid offline_access orders:read') {
  const form = await getCode(harness, app, { scope })
  return (await harness.post('token', form, app)).body as { access_token: string, refresh_token: string, id_token: string, expires_in: number }
}

eachStore(t, 'JWT access tokens', async (t, start) => {
  const harness = await start()
  const { kit, post, user, url } = harness
  const { identity } = kit.app
  const { store, clients, users, resources } = identity
  const records = store.collection<TokenRecord>('access_tokens')
  const boss = callAs(kit, (await kit.mint({ user: 'boss@example.com', roles: ['admin'], ttl: 365 * 86_400 })).headers)
  const { resourceId } = await resources.create({ data: { id: ORDERS, name: 'Orders', scopes: { 'orders:read': 'See your orders' }, tokenFormat: 'jwt', tokenAlg: 'ES256' } })
  const keys = createRemoteJWKSet(new URL(`${url}/api/v1/auth/jwks`))
  const issuer = ((await (await fetch(`${url}/.well-known/openid-configuration`)).json()) as { issuer: string }).issuer
  const verify = async (token: string) => await jwtVerify(token, keys, { issuer, audience: ORDERS, typ: 'at+jwt', algorithms: ['ES256'] })
  const works = async (token: string) => (await harness.get('tokeninfo', token)).status === 200
  const asker = await harness.register()
  const introspect = async (token: string) => (await post('introspect', { token }, asker)).body
  const register = async (name = 'Shop') => await harness.register({ name, scopes: ['read', 'orders:read'] })

  await t.test('says what the record says, and is verified by jose alone', async (t) => {
    const app = await register()
    const { access_token, id_token, expires_in } = await redeem(harness, app)
    t.equal(expires_in, 600, 'ten minutes by default')
    t.match(decodeProtectedHeader(access_token), { alg: 'ES256', typ: 'at+jwt', kid: String })
    const { payload } = await verify(access_token)
    t.match(payload, {
      iss: issuer, sub: user.user_id, aud: ORDERS, client_id: app.client_id, scope: 'orders:read', jti: /^[\w-]{22}$/, acr: '1', amr: ['pwd'], auth_time: Number
    })
    t.equal(payload.exp! - payload.iat!, 600)
    t.strictSame([payload.roles, payload.account, payload.email], [undefined, undefined, undefined], 'no roles, and nothing else about the person')
    const record = (await records.get(hashToken(access_token)))!
    t.match(record, { user_id: user.user_id, client_id: app.client_id, resource: ORDERS, grant_id: String })
    t.notOk(JSON.stringify(record).includes(access_token.split('.')[2]!))
    // The kit's clock stands still, so these times are those of the moment when they are shown.
    const { jti: _jti, iat: _iat, exp: _exp, auth_time: _time, ...rest } = payload
    t.match(await introspect(access_token), { active: true, ...rest })
    t.match((await harness.get('tokeninfo', access_token)).body, { data: { user_id: user.user_id, aud: ORDERS, scopes: ['orders:read'] } })
    const half = createHash('sha256').update(access_token).digest().subarray(0, 16).toString('base64url')
    t.equal(decodeJwt(id_token).at_hash, half, 'at_hash is that of the token that was sent')
  })

  await t.test('the service itself takes it for nothing but tokeninfo and logout', async (t) => {
    const { access_token } = await redeem(harness, await register())
    const api = callAs(kit, { authorization: `Bearer ${access_token}` })
    for (const path of ['/user', '/client/list', '/user/list', '/auth/sessions']) t.equal((await api.get(path)).status, 401, path)
    t.equal((await harness.get('userinfo', access_token)).status, 403)
    t.equal((await api.post('/auth/logout')).status, 204)
    t.notOk(await works(access_token))
  })

  await t.test('roles are those that tokeninfo shows', async (t) => {
    await users.patch(user.user_id, { data: { roles: { clerk: true, 'odd "role"': true } } }, ROOT)
    const { access_token } = await redeem(harness, await register('Vouched'))
    const { data } = (await harness.get('tokeninfo', access_token)).body as { data: { roles: object } }
    t.strictSame(((await verify(access_token)).payload.roles as string[]).sort(), Object.keys(data.roles).sort())
    t.strictSame(Object.keys(data.roles).sort(), ['clerk', 'odd "role"'])
    await users.patch(user.user_id, { data: { roles: {} } }, ROOT)
    t.strictSame(((await harness.get('tokeninfo', access_token)).body as { data: { roles: object } }).data.roles, {}, 'tokeninfo says what is true now')
  })

  await t.test("a client's own", async (t) => {
    const app = await register()
    const { body } = await post('token', { grant_type: 'client_credentials', scope: 'orders:read' }, app)
    const { payload } = await verify(String(body.access_token))
    t.match(payload, { sub: app.client_id, client_id: app.client_id, aud: ORDERS, scope: 'orders:read' })
    t.strictSame([payload.acr, payload.auth_time, payload.roles], [undefined, undefined, undefined])
    t.match(await introspect(String(body.access_token)), { active: true, sub: app.client_id })
  })

  await t.test('a refresh issues another; tokens without a resource, for the API, and of an operator stay opaque', async (t) => {
    const app = await register()
    const { access_token, refresh_token } = await redeem(harness, app)
    const { body } = await post('token', { grant_type: 'refresh_token', refresh_token }, app)
    t.match((await verify(String(body.access_token))).payload, { sub: user.user_id, acr: '1' })
    t.not(body.access_token, access_token)
    t.match(body.refresh_token, /^[\w-]{43}$/, 'refresh tokens are opaque')
    for (const token of [
      (await redeem(harness, app, 'openid read')).access_token,
      (await kit.mint({ user: user.account, client: app.client_id, resource: ORDERS, scopes: ['orders:read'] })).access_token
    ]) t.match(token, /^[\w-]{43}$/)
  })

  await t.test('what ends it', async (t) => {
    const ends: [name: string, act: (scene: { app: App, access_token: string, user_id: string }) => Promise<unknown>, isLeft?: boolean][] = [
      ['revocation', async ({ app, access_token }) => await post('revoke', { token: access_token }, app)],
      ['logout', async ({ access_token }) => await callAs(kit, { authorization: `Bearer ${access_token}` }).post('/auth/logout')],
      ['a new password', async ({ user_id }) => await users.patch(user_id, { data: { password: user.password } }, ROOT)],
      ['the end of all sessions', async ({ user_id }) => await boss.delete(`/user/${user_id}/sessions`)],
      ['disabled and enabled', async ({ user_id }) => { for (const disable of [true, false]) await users.patch(user_id, { disable }, ROOT) }],
      ['expired', async ({ user_id }) => {
        await store.collection<UserRecord>('users').update(user_id, { set: { expired_at: new Date(kit.clock.now() - 1).toISOString() } })
      }],
      ['expired and extended', async ({ user_id }) => await store.collection<UserRecord>('users').update(user_id, { unset: ['expired_at'] }), true],
      ['client disabled and enabled', async ({ app }) => { for (const disabled of [true, false]) await clients.patch(app.client_id, { data: { disabled } }, ROOT) }],
      ['a new secret', async ({ app }) => await clients.patch(app.client_id, { regen_secret: true }, ROOT)],
      ['the secret that got it removed', async ({ app }) => await clients.removeSecret(app.client_id, 'first', ROOT)],
      ['the client deleted', async ({ app }) => await clients.remove(app.client_id, ROOT)],
      ['its end', async () => { kit.clock.advance(600_000) }]
    ]
    for (const [name, act, isLeft = false] of ends) {
      await store.collection<UserRecord>('users').update(user.user_id, { unset: ['expired_at'] })
      const app = await register(name)
      const { access_token } = await redeem(harness, app)
      const own = String((await post('token', { grant_type: 'client_credentials', scope: 'orders:read' }, app)).body.access_token)
      t.ok(await works(access_token) && await works(own), `${name}: before`)
      await act({ app, access_token, user_id: user.user_id })
      t.equal(await works(access_token), isLeft, name)
      t.equal((await introspect(access_token)).active, isLeft, `${name}: introspection`)
      const isOfToken = ['revocation', 'logout'].includes(name)
      t.equal(await works(own), isLeft || isOfToken, `${name}: of the client`)
    }
    await store.collection<UserRecord>('users').update(user.user_id, { unset: ['expired_at'] })
  })

  await t.test('the settings of a resource', async (t) => {
    const data = { id: 'https://stock.example', name: 'Stock', scopes: { 'stock:read': 'See it' } }
    const create = async (more: object) => await boss.post<{ data: { resourceId: string }, message: string }>('/resource', { data: { ...data, ...more } })
    t.match(await create({ tokenAlg: 'ES256' }), { status: 400, body: { message: 'tokenAlg: must come with tokenFormat jwt' } })
    t.match(await create({ tokenFormat: 'jwt', accessTtl: 3601 }), { status: 400, body: { message: 'accessTtl: must be at most 3600 with tokenFormat jwt' } })
    t.match(await create({ tokenFormat: 'saml' }), { status: 400 })
    const id = (await create({})).body.data.resourceId
    const show = async () => (await boss.get<{ data: { tokenFormat?: string, tokenAlg?: string } }>(`/resource/${id}`)).body.data
    const patch = async (fields: object) => await boss.patch<{ message: string }>(`/resource/${id}`, { data: fields })
    t.strictSame([(await show()).tokenFormat, (await show()).tokenAlg], [undefined, undefined])
    t.match(await patch({ tokenAlg: 'ES256' }), { status: 400, body: { message: /^tokenAlg: / } })
    t.match(await patch({ accessTtl: 7200 }), { status: 200 })
    t.match(await patch({ tokenFormat: 'jwt' }), { status: 400, body: { message: /^accessTtl: / } })
    t.match(await patch({ tokenFormat: 'jwt', accessTtl: 900 }), { status: 200 })
    t.match(await show(), { tokenFormat: 'jwt', tokenAlg: 'RS256', accessTtl: 900 })
    const app = await harness.register({ name: 'Stock', scopes: ['stock:read'] })
    const { access_token, expires_in } = await redeem(harness, app, 'openid stock:read')
    t.equal(expires_in, 900)
    t.match(decodeProtectedHeader(access_token), { alg: 'RS256', typ: 'at+jwt' })
    await patch({ tokenAlg: 'ES256' })
    t.equal(decodeProtectedHeader((await redeem(harness, app, 'openid stock:read')).access_token).alg, 'ES256')
    await patch({ tokenFormat: 'opaque' })
    t.strictSame([(await show()).tokenFormat, (await show()).tokenAlg], [undefined, undefined])
    t.match((await redeem(harness, app, 'openid stock:read')).access_token, /^[\w-]{43}$/)
    t.ok(await works(access_token), 'a JWT that was issued goes on')
    await boss.delete(`/resource/${id}`)
    t.notOk(await works(access_token), 'until its resource is deleted')
  })

  await t.test('a token that is too long is not issued', async (t) => {
    const roles = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`${'r'.repeat(100)}${index}`, true as const]))
    await users.patch(user.user_id, { data: { roles } }, ROOT)
    const app = await register('Long')
    const { status, body } = await post('token', await getCode(harness, app, { scope: 'openid orders:read' }), app)
    t.match({ status, body }, { status: 400, body: { error: 'invalid_target', error_description: /too long/ } })
    t.equal(await records.count({ equal: { client_id: app.client_id } }), 0)
    await users.patch(user.user_id, { data: { roles: {} } }, ROOT)
    t.equal((await kit.inject({ url: '/api/v1/auth/tokeninfo', headers: { authorization: `Bearer ${'a'.repeat(LIMITS.accessToken + 1)}` } })).statusCode, 401)
  })

  await t.test('a resource that requires a role issues none to others, because nobody may ask later', async (t) => {
    const data = { id: 'https://staff.example', name: 'Staff', scopes: { 'staff:read': 'See staff' }, tokenFormat: 'jwt' as const, roles: ['staff'] }
    await resources.create({ data })
    const app = await harness.register({ name: 'Staff', scopes: ['staff:read'] })
    const redeemStaff = async () => await post('token', await getCode(harness, app, { scope: 'openid staff:read' }), app)
    t.match(await redeemStaff(), { status: 400, body: { error: 'invalid_grant' } })
    await users.patch(user.user_id, { data: { roles: { staff: true } } }, ROOT)
    t.match(await redeemStaff(), { status: 200, body: { access_token: /^ey/ } })
    await users.patch(user.user_id, { data: { roles: {} } }, ROOT)
  })

  await t.test('one that the service did not issue is unknown to it', async (t) => {
    const { access_token } = await redeem(harness, await register())
    const { privateKey } = await generateKeyPair('ES256')
    const forged = await new SignJWT(decodeJwt(access_token)).setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: 'x' }).sign(privateKey)
    t.notOk(await works(forged))
    t.strictSame(await introspect(forged), { active: false })
    t.notOk(await works(`${access_token}=`))
  })

  await t.test('a resource that is deleted ends its tokens', async (t) => {
    const { access_token } = await redeem(harness, await register())
    await boss.delete(`/resource/${resourceId}`)
    t.notOk(await works(access_token))
  })
})
