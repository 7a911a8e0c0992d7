import t from 'tap'
import { createToken, hashToken } from '../../../lib/crypto/random-token.ts'
import { BEGIN } from '../../helpers/services.ts'
import { ADMIN, HOUR, at, openLifecycle } from './harness.ts'

t.test('a token cannot be guessed, and is not in the store', async (t) => {
  const tokens = Array.from({ length: 100 }, () => createToken())
  t.equal(new Set(tokens).size, 100)
  for (const token of tokens) t.match(token, /^[\w-]{43}$/)
  // SHA-256 of "abc" (FIPS 180-2), base64url.
  t.equal(hashToken('abc'), 'ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0')
})

t.test('mint: an access token alone', async (t) => {
  const { tokens, subject, read, count, user_id, client_id } = await openLifecycle(t)
  const { access_token, ...rest } = await tokens.mint({ user_id, client_id })
  t.strictSame(rest, { expires_in: HOUR })
  t.strictSame(await read('access_tokens', access_token), {
    id: hashToken(access_token), ...subject, created_at: BEGIN, expired_at: at(HOUR), registry_id: 'registry', operator: 'unrestricted'
  })
  t.equal(await count('grants'), 0)
  t.match(await tokens.authenticate(access_token), { user: { user_id }, client: { clientId: client_id } })
})

t.test('mint: a session with a refresh token', async (t) => {
  const { mint, subject, read, grants } = await openLifecycle(t)
  const { access_token, refresh_token, expires_in, grant_id } = await mint({ scopes: ['read'], ttl: 30 })
  t.equal(expires_in, 30)
  const fields = { ...subject, created_at: BEGIN, registry_id: 'registry', operator: 'narrowed', scopes: ['read'] }
  t.strictSame(await read('access_tokens', access_token), { id: hashToken(access_token), ...fields, expired_at: at(30), grant_id })
  t.strictSame(await read('refresh_tokens', refresh_token), { id: hashToken(refresh_token), ...fields, expired_at: at(60), grant_id, generation: 0 })
  t.strictSame(await grants.get(grant_id), { id: grant_id, ...fields, expired_at: at(60), last_used_at: BEGIN, generation: 0, refreshed_at: [] })
  t.equal((await grants.get((await mint({ ttl: 90 })).grant_id))?.expired_at, at(90), 'a session lives as long as the longer of its tokens')
})

t.test('mint: refusals', async (t) => {
  const { tokens, users, clients, resources, user_id, client_id, advance, count } = await openLifecycle(t)
  const refuses = (options: object, message: string) => t.rejects(tokens.mint({ user_id, client_id, ...options }), { code: 'ErrParam', message })
  await resources.create({ data: { id: 'https://orders.example/', name: 'Orders', scopes: { 'orders:read': 'read orders' } } })
  await refuses({ user_id: 'nobody' }, 'user_id: no such user')
  await refuses({ client_id: 'nothing' }, 'client_id: no such client')
  await refuses({ resource: 'https://else.example/' }, 'resource: no such resource')
  await refuses({ scopes: ['read', 'admin'] }, 'scopes: must be scopes of the client or of the API')
  await refuses({ scopes: ['orders:read'] }, 'scopes: must be scopes of the client or of the API')
  await refuses({ scopes: ['read'], resource: 'https://orders.example/' }, 'scopes: must be scopes of the client that belong to the resource')
  const { user_id: guest } = await users.create({ data: { account: 'guest', password: 'p' }, expired_at: at(1) })
  await tokens.mint({ user_id: guest, client_id })
  advance(1000)
  await refuses({ user_id: guest }, 'user_id: the user is disabled or expired')
  await users.patch(user_id, { disable: true }, ADMIN)
  await refuses({}, 'user_id: the user is disabled or expired')
  await users.patch(user_id, { disable: false }, ADMIN)
  t.equal(await count('access_tokens'), 1, 'nothing was minted')
  await clients.patch(client_id, { data: { disabled: true } }, ADMIN)
  await refuses({}, 'client_id: the client is disabled')
  const { tokens: without, subject } = await openLifecycle(t, { refreshTtl: undefined })
  await t.rejects(without.mint({ ...subject, refresh: true }), { code: 'ErrParam', message: 'refresh: there is no authorization server to redeem a refresh token' })
})

t.test('mint: for a resource, with its scopes', async (t) => {
  const { clients, resources, client_id, mint, read, grants, tokens } = await openLifecycle(t)
  const { resourceId: resource_id } = await resources.create({ data: { id: 'https://orders.example/', name: 'Orders', scopes: { 'orders:read': 'read orders' } } })
  await clients.patch(client_id, { data: { scopes: ['read', 'orders:read'] } }, ADMIN)
  const resource = 'https://orders.example/'
  const { access_token, refresh_token, grant_id } = await mint({ resource, scopes: ['orders:read'] })
  const fields = { resource, resource_id, scopes: ['orders:read'], operator: 'narrowed' }
  for (const record of [await read('access_tokens', access_token), await read('refresh_tokens', refresh_token), await grants.get(grant_id)]) t.match(record, fields)
  t.match(await tokens.authenticate(access_token), { token: { audience: resource, scopes: ['orders:read'] } })
})

t.test('authenticate: tokens that belong to no caller', async (t) => {
  const { tokens, add, isAlive, subject } = await openLifecycle(t)
  t.notOk(await isAlive(createToken()), 'unknown')
  const issue = async (fields: object, owner: object = subject) => {
    const token = createToken()
    await tokens.issue({ token, ttl: 60, fields }, owner as typeof subject)
    return token
  }
  t.ok(await isAlive(await issue({})))
  t.notOk(await isAlive(await issue({ jkt: 'a thumbprint' })), 'a token that is bound to a key is not a bearer token')
  const { user_id, client_id } = subject
  t.notOk(await isAlive(await issue({}, { user_id, user_epoch: 0 })), 'without a client')
  t.notOk(await isAlive(await issue({}, { client_id, client_epoch: 0 })), 'without a user')
  const token = createToken()
  await add('refresh_tokens', { id: hashToken(token) })
  t.notOk(await isAlive(token), 'a refresh token')
})

t.test('issue: a token without a session, from now on', async (t) => {
  const { tokens, subject, read, advance, isAlive } = await openLifecycle(t)
  advance(5000)
  const token = createToken()
  await tokens.issue({ token, ttl: 10, fields: { scopes: ['read'], kind: 'x', payload: { a: 1 } } }, subject)
  t.strictSame(await read('access_tokens', token), {
    id: hashToken(token), ...subject, created_at: at(5), expired_at: at(15), registry_id: 'registry', scopes: ['read'], kind: 'x', payload: { a: 1 }
  })
  advance(9999)
  t.ok(await isAlive(token))
  advance(1)
  t.notOk(await isAlive(token))
})

t.test('issueUnder: a token of the session, whose use shows and whose expiry it moves', async (t) => {
  let writes = 0
  const { tokens, mint, grants, read, advance, subject } = await openLifecycle(t, {
    around: ({ collection, method }, run) => {
      if (collection === 'grants' && method === 'update') writes++
      return run()
    }
  })
  const { grant_id } = await mint({ ttl: 60 })
  advance(10_000)
  const issue = async (name: 'access_tokens' | 'refresh_tokens', ttl: number) => {
    const token = createToken()
    t.equal(await tokens.issueUnder(name, { token, ttl }, grant_id), true)
    return await read(name, token)
  }
  const { id, ...fields } = (await issue('access_tokens', 20))!
  t.strictSame(fields, { ...subject, created_at: at(10), expired_at: at(30), registry_id: 'registry', operator: 'unrestricted', grant_id })
  t.match(await grants.get(grant_id), { last_used_at: BEGIN, expired_at: at(60) }, 'an access token is no use of the session')
  t.equal(writes, 0, 'and costs it no write')
  t.match(await issue('refresh_tokens', 20), { generation: 0, expired_at: at(30) })
  t.match(await grants.get(grant_id), { last_used_at: at(10), expired_at: at(60) }, 'a refresh token is')
  advance(5_000)
  await issue('refresh_tokens', 45)
  t.match(await grants.get(grant_id), { last_used_at: at(15), expired_at: at(60) }, 'also one that expires with it')
  advance(5_000)
  await issue('access_tokens', 100)
  t.match(await grants.get(grant_id), { last_used_at: at(15), expired_at: at(120) })
  await issue('refresh_tokens', 200)
  t.match(await grants.get(grant_id), { last_used_at: at(20), expired_at: at(220) })
  await grants.update(grant_id, { set: { generation: 3 } })
  t.match(await issue('refresh_tokens', 20), { generation: 3 }, 'of the generation of the session')
  t.notOk('generation' in (await issue('access_tokens', 20))!)
  const before = writes
  const use = async () => await tokens.issueUnder('access_tokens', { token: createToken(), ttl: 20 }, grant_id, { isUse: true })
  await use()
  t.equal(writes, before, 'a refresh that rotates nothing is written once an hour')
  advance(60 * 60_000)
})

t.test('issueUnder: not after the end of the session', async (t) => {
  const { tokens, mint, advance, read } = await openLifecycle(t)
  const [one, other] = [await mint(), await mint({ ttl: 60 })]
  await tokens.endGrant(one.grant_id)
  advance(60_000)
  for (const { grant_id } of [one, other]) {
    const token = createToken()
    t.equal(await tokens.issueUnder('access_tokens', { token, ttl: HOUR }, grant_id), false)
    t.equal(await read('access_tokens', token), null)
  }
})

t.test('issueUnder: of two tokens at once, the session lives as long as the longer', async (t) => {
  let wait = Promise.resolve()
  const { tokens, mint, grants } = await openLifecycle(t, {
    around: ({ collection, method, args }, run) => {
      const { expired_at } = (args[1] as { set?: { expired_at?: string } } | undefined)?.set ?? {}
      return collection === 'grants' && method === 'update' && expired_at === at(100) ? wait.then(run) : run()
    }
  })
  const { grant_id } = await mint({ ttl: 60 })
  const gate = Promise.withResolvers<void>()
  wait = gate.promise
  const first = tokens.issueUnder('access_tokens', { token: createToken(), ttl: 100 }, grant_id)
  await tokens.issueUnder('access_tokens', { token: createToken(), ttl: 200 }, grant_id)
  gate.resolve()
  await first
  t.equal((await grants.get(grant_id))?.expired_at, at(200))
})

t.test('issueUnder: a token keeps what the operator granted, or less', async (t) => {
  const { tokens, mint, add, read, resources, clients, client_id } = await openLifecycle(t)
  await clients.patch(client_id, { data: { scopes: ['read', 'write'] } }, ADMIN)
  const { resourceId: resource_id } = await resources.create({ data: { id: 'https://orders.example/', name: 'Orders', scopes: {} } })
  const resource = 'https://orders.example/'
  const issue = async (grant_id: string, fields?: Parameters<typeof tokens.issueUnder>[1]['fields'], narrowed = false) => {
    const token = createToken()
    t.ok(await tokens.issueUnder('access_tokens', { token, ttl: 1, ...(fields && { fields }) }, grant_id, { narrowed }))
    const { operator, scopes, resource, resource_id, kind } = (await read('access_tokens', token))!
    return JSON.parse(JSON.stringify({ operator, scopes, resource, resource_id, kind })) as object
  }
  const all = (await mint()).grant_id
  const some = (await mint({ scopes: ['read', 'write'] })).grant_id
  const there = (await mint({ resource })).grant_id
  const signIn = await add('grants', { scopes: ['read'] })
  const named = { scopes: ['read'], kind: 'x' }
  t.strictSame(await issue(all), { operator: 'unrestricted' })
  t.strictSame(await issue(all, named), { operator: 'unrestricted', kind: 'x' }, 'no scopes but the session\'s')
  t.strictSame(await issue(all, named, true), { operator: 'narrowed', ...named }, 'unless the client asks for less')
  t.strictSame(await issue(all, { kind: 'x' }, true), { operator: 'narrowed', kind: 'x' })
  t.strictSame(await issue(some, { scopes: ['read', 'admin'] }), { operator: 'narrowed', scopes: ['read', 'write'] })
  t.strictSame(await issue(some, named, true), { operator: 'narrowed', ...named })
  t.strictSame(await issue(some, {}, true), { operator: 'narrowed', scopes: ['read', 'write'] })
  t.strictSame(await issue(there, { resource: 'https://else.example/', resource_id: 'else' }), { operator: 'unrestricted', resource, resource_id })
  t.strictSame(await issue(signIn, { scopes: ['write'], resource, resource_id }), { scopes: ['write'], resource, resource_id }, 'what the authorization server decided')
  t.strictSame(await issue(signIn), {})
})
