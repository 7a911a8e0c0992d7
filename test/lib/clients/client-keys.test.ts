import { generateKeyPairSync } from 'node:crypto'
import t from 'tap'
import type { ClientRecord } from '../../../lib/records/client.ts'
import { startIdentity } from '../../../testing/index.ts'
import { assert, createTestKey } from '../../helpers/assertions.ts'

const ADMIN = { user_id: 'admin', isAdmin: true }

t.test('the keys of a client are public, few, of use here, and named once', async (t) => {
  const kit = await startIdentity({ t })
  const { clients, users, store } = kit.app.identity
  const { user_id } = await users.create({ data: { account: 'ann', password: 'correct horse' } })
  const ann = { user_id, isAdmin: false }
  const { clientId: id } = await clients.create({ data: { name: 'n', redirectUris: [], scopes: [] }, credentials: true }, ann)
  const set = async (...keys: object[]) => await clients.patch(id, { data: { jwks: { keys } } }, ann)
  const [ec, rsa] = [createTestKey('ES256', 'one').jwk, createTestKey('RS256').jwk]
  const secret = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' })
  const small = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ format: 'jwk' })
  const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey.export({ format: 'jwk' })
  const x25519 = generateKeyPairSync('x25519').publicKey.export({ format: 'jwk' })
  for (const [keys, message] of [
    [[secret], 'jwks: keys[0] must be a public key, but has the member: d'],
    [[ec, { ...ec, d: 'x' }], 'jwks: keys[1] must be a public key, but has the member: d'],
    [[{ kty: 'oct', k: 'c2VjcmV0' }], 'jwks: keys[0] must be a public key, but has the member: k'],
    [[{ kty: 'oct' }], 'jwks: keys[0] must be a public key, but has the member: kty "oct"'],
    [[{ kty: 'XYZ' }], 'jwks: keys[0] must be an RSA, EC or OKP key: XYZ'],
    [[{}], 'jwks: keys[0] must be an RSA, EC or OKP key'],
    [[small], 'jwks: keys[0] must be an RSA key of 2048 to 4096 bits, with an odd exponent from 3 to 32 bits'],
    [[{ ...rsa, alg: 'ES256' }], 'jwks: keys[0] must have the alg RS256 or PS256, or none'],
    [[p384], 'jwks: keys[0] must be on the curve P-256 (ES256) or Ed25519 (EdDSA), not P-384'],
    [[x25519], 'jwks: keys[0] must be on the curve P-256 (ES256) or Ed25519 (EdDSA), not X25519'],
    [[{ ...ec, use: 'enc' }], 'jwks: keys[0] must have the use sig, or none'],
    [[{ ...ec, alg: 'HS256' }], 'jwks: keys[0] must have the alg RS256, PS256, ES256 or EdDSA, or none'],
    [[{ ...ec, kid: 'x'.repeat(129) }], 'jwks: keys[0] must have names of at most 128 characters'],
    [[ec, { ...ec, kid: 'two' }], 'jwks: keys[1] is the same key as keys[0], or has its kid'],
    [[ec, { ...rsa, kid: 'one' }], 'jwks: keys[1] is the same key as keys[0], or has its kid'],
    [Array(6).fill(ec), 'jwks: must have one to 5 keys: 6']
  ] as const) await t.rejects(set(...keys), { code: 'ErrParam', message }, message)
  t.notMatch(String(await set(secret).catch((error: Error) => error.message)), String(secret.d), 'a private key is not repeated')

  await set({ ...ec, x5c: ['x'], first_party: true }, rsa)
  const { jwks } = await clients.require(id, ann)
  t.strictSame(jwks!.keys[0], ec, 'the known members')
  t.match((jwks!.keys[1] as { kid: string }).kid, /^[\w-]{43}$/, 'a kid is made')
  await clients.patch(id, { data: { tokenAuth: 'private_key_jwt', former: { until: new Date(kit.clock.now() + 60_000).toISOString() } } }, ann)
  const read = async () => (await store.collection<ClientRecord>('clients').get(id))!
  t.match(await read(), { tokenAuth: 'private_key_jwt', former_auth: { method: 'secret' }, epoch: 0 })
  const created = (await read()).keys![0]!.created_at
  kit.clock.advance(60_000)
  await clients.addKeys(id, { keys: [createTestKey('EdDSA', 'three').jwk] }, ann)
  t.equal((await read()).keys![0]!.created_at, created)
  await t.rejects(clients.addKeys(id, { keys: [createTestKey('ES256', 'three').jwk] }, ann), { message: 'jwks: keys[3] is the same key as keys[2], or has its kid' })
  await t.rejects(clients.addKeys(id, { keys: ['4', '5', '6'].map((kid) => createTestKey('ES256', kid).jwk) }, ann), { code: 'ErrLimit' })
  await t.rejects(clients.addKeys(id, { keys: [] }, ann), { code: 'ErrParam', message: 'jwks: must have a key' })
  await t.rejects(clients.removeKey(id, 'four', ann), { code: 'ErrNotFound' })
  const ids = (await read()).keys!.map((key) => key.id)
  await clients.addKeys(id, { keys: [createTestKey('ES256', ids[0]).jwk] }, ann)
  await clients.removeKey(id, ids[0]!, ann)
  t.strictSame((await read()).keys!.map((key) => key.id), ids, 'of a kid and the thumbprint of another key, the kid counts')
  await t.rejects(clients.addKeys(id, { keys: [ec] }, { user_id: 'bob', isAdmin: false }), { code: 'ErrNotFound' })
  await t.rejects(clients.patch(id, { data: { jwks: { keys: [ec] }, tokenAuth: 'none' } }, ADMIN), { message: 'jwks: must be absent with tokenAuth none' })

  // Whoever takes a client over or vouches for it does not leave its keys to others.
  await clients.patch(id, { data: { first_party: true } }, ADMIN)
  t.notOk('keys' in await read())
  await t.rejects(set(ec), { code: 'ErrPerm' })
  await clients.patch(id, { data: { jwks: { keys: [ec] }, first_party: false } }, ADMIN)
  await clients.patch(id, { data: { jwks: { keys: [rsa] }, first_party: true } }, ADMIN)
  t.equal((await read()).keys === undefined, false, 'those of the same change stay')
  await clients.patch(id, { data: { first_party: false } }, ADMIN)
  await clients.replaceSecrets(user_id, ADMIN)
  t.notOk('keys' in await read())
  await clients.addKeys(id, { keys: [ec] }, ann)
  await clients.patch(id, { data: { tokenAuth: 'none' } }, ADMIN)
  t.notOk('keys' in await read())
})

t.test('two reasons for which a client loses its keys are one', async (t) => {
  const kit = await startIdentity({ t })
  const { clients, users, store } = kit.app.identity
  const { user_id } = await users.create({ data: { account: 'ann', password: 'correct horse' } })
  const jwks = { keys: [createTestKey('ES256').jwk] }
  for (const also of [{ tokenAuth: 'none' }, { first_party: true }] as const) {
    const { clientId } = await clients.create({ data: { name: 'n', redirectUris: [], scopes: [], jwks }, credentials: true }, { user_id, isAdmin: false })
    await clients.patch(clientId, { data: { jwks: { keys: [] }, ...also } }, ADMIN)
    t.match(await store.collection<ClientRecord>('clients').get(clientId), { ...also, keys: undefined })
  }
})

t.test('a client that acts for itself gives no client a key', async (t) => {
  const kit = await startIdentity({ t, oidc: { issuer: 'https://id.example' } })
  const { clients, users } = kit.app.identity
  const { user_id } = await users.create({ data: { account: 'ann', password: 'correct horse' } })
  const owner = { user_id, isAdmin: false }
  const key = createTestKey('ES256')
  const { clientId } = await clients.create({ data: { name: 'n', redirectUris: [], scopes: ['clients:write'], tokenAuth: 'private_key_jwt', jwks: { keys: [key.jwk] } } }, owner)
  const { clientId: other } = await clients.create({ data: { name: 'n', redirectUris: [], scopes: [] } }, owner)
  const payload = new URLSearchParams({
    grant_type: 'client_credentials',
    scope: 'clients:write',
    client_assertion: await assert(clientId, 'https://id.example', key),
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
  })
  const { access_token } = (await kit.inject({ method: 'POST', url: '/api/v1/auth/token', headers: { 'content-type': 'application/x-www-form-urlencoded' }, payload: String(payload) })).json<{ access_token: string }>()
  const patch = async (headers: object) => (await kit.inject({ method: 'PATCH', url: `/api/v1/client/${other}`, headers: headers as Record<string, string>, payload: { data: { jwks: { keys: [key.jwk] } } } })).statusCode
  t.equal(await patch({ authorization: `Bearer ${access_token}` }), 403)
})

t.test('who may not see the secrets of a client gives it no key', async (t) => {
  const kit = await startIdentity({ t })
  const { clients, users } = kit.app.identity
  const { user_id } = await users.create({ data: { account: 'ann', password: 'correct horse' } })
  const { user_id: other } = await users.create({ data: { account: 'bob', password: 'correct horse' } })
  const keys = { keys: [createTestKey('ES256').jwk] }
  const all = () => true
  const but = (missing: string) => (scope: string) => scope !== missing
  const message = 'jwks: the caller may not see secrets of this client'
  // The client is Ann's. An administrator without `users:write` could take over the client's users by a key of their own.
  for (const [name, actor, vouched, refusal] of [
    ['the owner', { user_id, isAdmin: false }, false, undefined],
    ['the owner, by a client with clients:write', { user_id, isAdmin: false, holds: but('users:write') }, false, undefined],
    ['the owner, by a client without clients:write', { user_id, isAdmin: false, holds: but('clients:write') }, false, { code: 'ErrPerm', message }],
    ['a client that acts for the owner itself', { user_id, isAdmin: false, isUser: false, holds: all }, false, { code: 'ErrPerm', message }],
    ['the owner of a client that the operator vouches for', { user_id, isAdmin: false }, true, { code: 'ErrPerm', message: /vouches for/ }],
    ['an administrator who owns one, without users:write', { user_id, isAdmin: true, holds: but('users:write') }, true, { code: 'ErrPerm', message }],
    ['an administrator who owns another one, without users:write', { user_id, isAdmin: true, holds: but('users:write') }, false, undefined],
    ['somebody else', { user_id: other, isAdmin: false }, false, { code: 'ErrNotFound' }],
    ['another administrator', { user_id: other, isAdmin: true, holds: all }, true, undefined],
    ['another administrator, without users:write', { user_id: other, isAdmin: true, holds: but('users:write') }, false, { code: 'ErrPerm', message }],
    ['another administrator, without clients:write', { user_id: other, isAdmin: true, holds: but('clients:write') }, false, { code: 'ErrPerm', message }],
    ['a client that acts for an administrator', { user_id: other, isAdmin: true, isUser: false, holds: but('users:write') }, false, { code: 'ErrPerm', message }]
  ] as const) {
    const { clientId } = await clients.create({ data: { name: 'n', redirectUris: [], scopes: [], first_party: vouched }, credentials: true }, { user_id, isAdmin: true })
    const roads: Record<string, () => Promise<unknown>> = {
      addKeys: async () => await clients.addKeys(clientId, keys, actor),
      patch: async () => await clients.patch(clientId, { data: { jwks: keys } }, actor),
      'patch to none': async () => await clients.patch(clientId, { data: { jwks: { keys: [] } } }, actor)
    }
    for (const [road, run] of Object.entries(roads)) {
      await (refusal === undefined ? run() : t.rejects(run(), refusal, `${name}: ${road}`))
      const { jwks } = await clients.require(clientId, ADMIN)
      t.equal(jwks === undefined, refusal !== undefined || road === 'patch to none', `${name}: ${road}`)
      if (road === 'addKeys' && jwks !== undefined) await clients.patch(clientId, { data: { jwks: { keys: [] } } }, ADMIN)
    }
  }
})
