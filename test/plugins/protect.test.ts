import fastify from 'fastify'
import t, { type Test } from 'tap'
import { decorateRequests } from '../../plugins/auth.ts'
import { remoteAuth } from '../../plugins/remote.ts'
import { startIdentity, type StartOptions } from '../../testing/index.ts'

const ORDERS = { id: 'https://api.example/v1/orders', name: 'Orders', scopes: { 'orders:read': 'see your orders', 'orders:write': 'place orders' } }
const ISSUER = 'https://id.example'
const METADATA = '/.well-known/oauth-protected-resource/v1/orders'
const LINK = `resource_metadata="https://api.example${METADATA}"`

/** A host with two protected routes, and a token for each purpose. */
async function open (t: Test, options: StartOptions = {}) {
  const kit = await startIdentity({ t, resources: [ORDERS], oidc: { issuer: ISSUER }, ...options })
  const { identity } = kit.app
  const see = ({ caller }: { caller: unknown }) => caller as object
  kit.app.get('/orders', { onRequest: identity.protect({ resource: ORDERS.id, scopes: ['orders:read'] }) }, see)
  kit.app.post('/orders', { onRequest: identity.protect({ resource: ORDERS.id, scopes: ['orders:write', 'orders:read'] }) }, see)
  kit.app.get('/clerks', { onRequest: identity.protect({ resource: ORDERS.id, roles: ['clerk'] }) }, see)
  const { user_id } = await kit.mint({ user: 'ann', roles: ['clerk'] })
  const { clientId: client_id } = await identity.clients.create(
    { data: { redirectUris: [], scopes: ['orders:read', 'orders:write', 'own'], name: 'c', userId: user_id } }, { user_id: '', isAdmin: true }
  )
  const mint = async (scopes?: string[], resource?: string) => {
    const { access_token } = await identity.tokens.mint({ user_id, client_id, ...(scopes && { scopes }), ...(resource && { resource }) })
    return { authorization: `Bearer ${access_token}` }
  }
  const ask = async (headers: object, url = '/orders', method: 'GET' | 'POST' = 'GET') => {
    const reply = await kit.inject({ method, url, headers: { ...headers } })
    return { status: reply.statusCode, challenge: reply.headers['www-authenticate'], body: reply.json() }
  }
  return { kit, user_id, client_id, mint, ask }
}

t.test('the metadata', async (t) => {
  const { kit } = await open(t)
  const reply = await kit.inject({ url: METADATA, headers: { origin: 'https://page.example' } })
  t.equal(reply.statusCode, 200)
  t.match(reply.headers, { 'content-type': /^application\/json/, 'access-control-allow-origin': '*' })
  t.strictSame(reply.json(), {
    resource: ORDERS.id, authorization_servers: [ISSUER], scopes_supported: ['orders:read', 'orders:write'], bearer_methods_supported: ['header']
  })
  const { issuer } = (await kit.inject('/.well-known/openid-configuration')).json()
  t.equal(issuer, ISSUER, 'exactly as the authorization server names itself')
})

t.test('who passes, and what the challenges say', async (t) => {
  const { kit, mint, ask } = await open(t)
  const bound = await mint(undefined, ORDERS.id)
  t.match(await ask(bound), { status: 200, body: { user: { account: 'ann', roles: { clerk: true } }, token: { audience: ORDERS.id, scopes: ['orders:read', 'orders:write'] } } })
  t.match(await ask(bound, '/orders', 'POST'), { status: 200 })
  t.match(await ask(bound, '/clerks'), { status: 200 })

  t.match(await ask({}), { status: 401, challenge: `Bearer ${LINK}, scope="orders:read"` })
  t.match(await ask({}, '/clerks'), { status: 401, challenge: `Bearer ${LINK}` })
  const invalid = new RegExp(`^Bearer error="invalid_token", error_description="[^"]+", ${LINK}, scope="orders:read"$`)
  for (const [name, headers] of [
    ['no audience', await mint()], ['a free scope of that client', await mint(['own'])], ['no such token', { authorization: 'Bearer abc' }]
  ] as const) t.match(await ask(headers), { status: 401, challenge: invalid, body: { code: 'ErrUnknown' } }, name)

  const narrow = await mint(['orders:read'], ORDERS.id)
  t.match(await ask(narrow), { status: 200 })
  t.match(await ask(narrow, '/orders', 'POST'), { status: 403, challenge: `Bearer error="insufficient_scope", scope="orders:write orders:read", ${LINK}` })
  await kit.mint({ user: 'ann', roles: [] })
  t.match(await ask(bound, '/clerks'), { status: 403, challenge: undefined, body: { code: 'ErrPerm' } }, 'a role is not a matter of the token')

  t.match(await ask(bound, '/api/v1/user'), { status: 401 }, "the service's own API refuses another audience")
  t.match(await ask(bound, '/api/v1/auth/tokeninfo'), { status: 200, body: { data: { aud: ORDERS.id, scopes: ['orders:read', 'orders:write'] } } })
})

t.test('a guard that is awaited resolves to the caller, and rejects with what the hook would have sent', async (t) => {
  const { kit, mint } = await open(t)
  const rule = { audience: ORDERS.id, scopes: ['orders:write'] }
  const protect = kit.app.identity.protect({ resource: ORDERS.id, scopes: ['orders:write'] })
  const { url } = await kit.listen()
  const host = fastify()
  t.teardown(() => host.close())
  await host.register(remoteAuth, { upstream: url, cacheTtl: 1_000 })
  await host.ready()
  const tokens = { full: await mint(undefined, ORDERS.id), narrow: await mint(['orders:read'], ORDERS.id), plain: await mint(), bad: { authorization: 'Bearer abc' }, none: {}, basic: { authorization: 'Basic YTpi' } }

  for (const [place, app] of Object.entries({ embedded: kit.app, remote: host })) {
    // These apps are ready, so the routes are in one of their own.
    const { identity } = app
    const server = fastify()
    t.teardown(() => server.close())
    decorateRequests(server)
    const guards = { guard: identity.guard(rule), ...(place === 'embedded' && { protect }) }
    for (const [name, guard] of Object.entries(guards)) {
      server.get(`/${name}/hook`, { onRequest: guard }, ({ caller, isAdmin }) => ({ caller, isAdmin }))
      server.get<{ Querystring: { tool?: string } }>(`/${name}/awaited`, async (request, reply) => {
        const caller = await guard(request, reply)
        t.equal(request.caller, caller)
        return { caller, isAdmin: request.isAdmin }
      })
      server.get(`/${name}/handler`, async (request) => ({ caller: await guard(request), isAdmin: request.isAdmin }))
      server.get(`/${name}/async`, { preHandler: async (request) => { await guard(request) } }, ({ caller, isAdmin }) => ({ caller, isAdmin }))
      server.get(`/${name}/caught`, async (request, reply) => {
        const error = await guard(request, reply).then(() => null, (reason: Error) => reason)
        t.equal(reply.sent, false, 'it answers nothing itself')
        return await reply.code(202).send({ error: error === null ? null : error.message })
      })
    }
    server.get('/guard/check', async (request) => ({ caller: await identity.check(request, rule), isAdmin: request.isAdmin }))
    server.get('/any/check', async (request) => await identity.check(request))
    server.get('/wrong', async (request) => await identity.check(request, { maxAge: -1 }))
    const see = async (path: string, headers: object) => {
      const { statusCode: status, headers: { 'www-authenticate': challenge, 'retry-after': after }, body } = await server.inject({ url: path, headers: { ...headers } })
      return { status, challenge, after, body }
    }
    for (const [kind, headers] of Object.entries(tokens)) {
      for (const name of Object.keys(guards)) {
        const hook = await see(`/${name}/hook`, headers)
        t.equal(hook.status, kind === 'full' ? 200 : kind === 'narrow' ? 403 : 401, `${place}, ${name}, ${kind}`)
        for (const form of ['awaited', 'handler', 'async', ...(name === 'guard' ? ['check'] : [])]) t.strictSame(await see(`/${name}/${form}`, headers), hook, `${place}, ${name} as ${form}, ${kind}`)
        const { status, body } = await see(`/${name}/caught`, headers)
        t.match([status, JSON.parse(body).error], [202, kind === 'full' ? null : JSON.parse(hook.body).message])
      }
    }
    t.match(await see('/any/check', tokens.plain), { status: 200 }, 'without a rule: any user')
    t.match(await see('/any/check', tokens.full), { status: 401 })
    t.throws(() => identity.guard({ maxAge: -1 }), { message: /maxAge/ })
    t.equal((await see('/wrong', tokens.plain)).status, 500, 'a wrong rule is a fault of the app')
  }
})

t.test('an MCP server has one route, and a tool with a scope of its own', async (t) => {
  const { kit, mint } = await open(t)
  const { identity } = kit.app
  const rule = { resource: ORDERS.id, scopes: ['orders:read'] }
  const write = identity.protect({ resource: ORDERS.id, scopes: ['orders:read', 'orders:write'] })
  kit.app.post<{ Body: { tool: string } }>('/mcp', { onRequest: identity.protect(rule) }, async (request) => {
    if (request.body.tool === 'add') await write(request)
    return { did: request.body.tool, by: request.caller.user.account }
  })
  const call = async (tool: string, headers: object) => {
    const reply = await kit.inject({ method: 'POST', url: '/mcp', headers: { ...headers }, payload: { tool } })
    return { status: reply.statusCode, challenge: reply.headers['www-authenticate'], body: reply.json() }
  }
  const [reader, writer] = [await mint(['orders:read'], ORDERS.id), await mint(undefined, ORDERS.id)]
  t.match(await call('list', reader), { status: 200, body: { did: 'list', by: 'ann' } })
  t.match(await call('add', reader), { status: 403, challenge: `Bearer error="insufficient_scope", scope="orders:read orders:write", ${LINK}` })
  t.match(await call('add', writer), { status: 200, body: { did: 'add', by: 'ann' } })
})

t.test('a live token for another audience is told so; one that has ended is not told apart, whatever its audience', async (t) => {
  const { kit, user_id, client_id, mint, ask } = await open(t)
  kit.app.get('/me', { onRequest: kit.app.identity.guard() }, ({ caller }) => caller.user)
  const { url } = await kit.listen()
  const host = fastify()
  t.teardown(() => host.close())
  await host.register(remoteAuth, { upstream: url, cacheTtl: 0, staleTtl: 0 })
  host.get('/orders', { onRequest: host.identity.guard({ audience: ORDERS.id }) }, ({ caller }) => caller.user)
  host.get('/me', { onRequest: host.identity.guard() }, ({ caller }) => caller.user)
  await host.ready()
  const askHost = async (headers: object, path: string) => {
    const reply = await host.inject({ url: path, headers: { ...headers } })
    return { status: reply.statusCode, challenge: reply.headers['www-authenticate'], body: reply.json() }
  }
  const elsewhere = 'the access token was not requested for this resource'
  const ended = 'the access token is unknown, expired or revoked'
  const refused = (message: string, more = '') => ({
    status: 401, challenge: `Bearer error="invalid_token", error_description="${message}"${more}`, body: { code: 'ErrUnknown', message }
  })
  const more = `, ${LINK}, scope="orders:read"`
  for (const end of ['revoked', 'expired'] as const) {
    const [plain, bound] = [await mint(), await mint(undefined, ORDERS.id)]
    t.match(await ask(plain), refused(elsewhere, more), 'protect')
    t.match(await ask(bound, '/me'), refused(elsewhere), 'guard')
    t.match(await ask(bound, '/api/v1/user'), refused(elsewhere), 'the API')
    t.match(await askHost(plain, '/orders'), refused(elsewhere), 'remote, with an audience')
    t.match(await askHost(bound, '/me'), refused(elsewhere), 'remote, without')
    t.match(await askHost(bound, '/orders'), { status: 200 })
    if (end === 'expired') kit.clock.advance(24 * 60 * 60_000)
    else for (const headers of [plain, bound]) t.equal((await kit.inject({ method: 'POST', url: '/api/v1/auth/logout', headers })).statusCode, 204)
    t.match(await ask(plain), refused(ended, more), `protect, ${end}`)
    t.match(await ask(bound, '/me'), refused(ended), `guard, ${end}`)
    t.match(await ask(bound, '/api/v1/user'), refused(ended), `the API, ${end}`)
    t.match(await askHost(plain, '/orders'), refused(ended), `remote, with an audience, ${end}`)
    t.match(await askHost(bound, '/me'), refused(ended), `remote, without, ${end}`)
  }
  const plain = await mint()
  await kit.app.identity.clients.patch(client_id, { data: { disabled: true } }, { user_id, isAdmin: true })
  t.match(await ask(plain), refused(ended, more), 'of a disabled client')
})

t.test('a client that knows only the URL of the API finds its way', async (t) => {
  const kit = await startIdentity({ t, resources: [ORDERS], oidc: { issuer: 'http://localhost' } })
  const { identity } = kit.app
  kit.app.get('/v1/orders', { onRequest: identity.protect({ resource: ORDERS.id, scopes: ['orders:read'], subject: 'client' }) }, ({ caller }) => caller as object)
  const { user_id } = await kit.mint({ user: 'ann' })
  const operator = { user_id: '', isAdmin: true }
  const { clientId } = await identity.clients.create({ data: { redirectUris: [], scopes: ['orders:read'], name: 'c', userId: user_id }, credentials: true }, operator)
  const { clientSecret } = await identity.clients.require(clientId, operator)
  const fetch = (url: string, rest: object = {}) => kit.inject({ url: new URL(url).pathname, ...rest })

  const refused = await fetch(ORDERS.id)
  const challenge = String(refused.headers['www-authenticate'])
  const metadata = (await fetch(/resource_metadata="([^"]+)"/.exec(challenge)?.[1] ?? '')).json()
  t.equal(metadata.resource, ORDERS.id, 'RFC 9728, 3.3: it is the URL that the client asked')
  const server = (await fetch(`${metadata.authorization_servers[0]}/.well-known/oauth-authorization-server`)).json()
  const granted = await fetch(server.token_endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    payload: new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: clientId,
      client_secret: clientSecret ?? '',
      resource: metadata.resource,
      scope: /scope="([^"]+)"/.exec(challenge)?.[1] ?? ''
    }).toString()
  })
  t.match(granted.json(), { token_type: 'Bearer', scope: 'orders:read' })
  const admitted = await fetch(ORDERS.id, { headers: { authorization: `Bearer ${granted.json().access_token}` } })
  t.match(admitted.json(), { subject: 'client', client: { clientId }, token: { audience: ORDERS.id, scopes: ['orders:read'] } })
})

t.test('a token ends with its resource, and with the role that the resource needs', async (t) => {
  const { kit, user_id, client_id, ask } = await open(t, { resources: [] })
  const { resources, tokens, clients } = kit.app.identity
  const operator = { user_id: '', isAdmin: true }
  const { resourceId, strippedClients } = await resources.create({ data: { ...ORDERS, roles: ['clerk'] } })
  t.equal(strippedClients, 1, 'the client had the names while they were free')
  await clients.patch(client_id, { data: { scopes: ['orders:read'] } }, operator)
  const { access_token } = await tokens.mint({ user_id, client_id, resource: ORDERS.id })
  const headers = { authorization: `Bearer ${access_token}` }
  t.match(await ask(headers), { status: 200 })
  await kit.mint({ user: 'ann', roles: ['boss'] })
  t.match(await ask(headers), { status: 401 })
  await resources.patch(resourceId, { data: { roles: ['boss'] } })
  t.match(await ask(headers), { status: 200 })
  await resources.remove(resourceId)
  t.match(await ask(headers), { status: 401 })
  await resources.create({ data: { ...ORDERS, roles: ['boss'] } })
  t.match(await ask(headers), { status: 401 }, 'and stays ended when the URI is declared again')
})

t.test('where the metadata of a resource are', async (t) => {
  const kit = await startIdentity({ t, oidc: { issuer: ISSUER } })
  const { protect } = kit.app.identity
  const places = {
    'https://api.example': '/.well-known/oauth-protected-resource',
    'https://api.example/a/': '/.well-known/oauth-protected-resource/a/',
    'http://localhost:3000/a/b.c~d_e-f': '/.well-known/oauth-protected-resource/a/b.c~d_e-f'
  }
  for (const [index, resource] of Object.keys(places).entries()) kit.app.get(`/${index}`, { onRequest: protect({ resource }) }, () => 'x')
  for (const [index, [resource, path]] of Object.entries(places).entries()) {
    const challenge = `Bearer resource_metadata="${new URL(resource).origin}${path}"`
    t.match(await kit.inject(`/${index}`), { statusCode: 401, headers: { 'www-authenticate': challenge } })
    t.match((await kit.inject(path)).json(), { resource, scopes_supported: [] })
  }
})

t.test('a resource that cannot be protected fails at boot', async (t) => {
  const kit = await startIdentity({ t })
  const { protect } = kit.app.identity
  for (const [resource, message] of [
    ['urn:example:orders', 'protect: the resource must be an http or https URL'],
    ['orders', 'protect: the resource must be an http or https URL'],
    ['https://api.example/?a', /no query or fragment/],
    ['https://api.example/#a', /no query or fragment/],
    ['https://api.example/:id', /^protect: the resource must have a path of letters/],
    ['https://api.example/*', /^protect: the resource must have a path of letters/],
    ['https://api.example/%61', /^protect: the resource must have a path of letters/]
  ] as const) t.throws(() => protect({ resource }), { message }, resource)
  protect({ resource: 'https://one.example/' })
  t.throws(() => protect({ resource: 'https://other.example/' }), { message: 'protect: the metadata of two resources would be at /.well-known/oauth-protected-resource' })

  const without = await startIdentity({ t, oidc: false })
  t.throws(() => without.app.identity.protect({ resource: 'https://api.example/' }), { message: 'protect: there is no authorization server that the metadata could name' })

  const host = fastify()
  t.teardown(() => host.close())
  await host.register(async (scope) => {
    await scope.register(remoteAuth, { issuer: ISSUER })
    t.throws(() => scope.identity.protect({ resource: 'https://api.example/' }), {
      message: 'protect: the metadata cannot be served at the root of the host, because the plugin is registered under /inner'
    })
  }, { prefix: '/inner' })
})

t.test('an app elsewhere protects its routes in the same way', async (t) => {
  const kit = await startIdentity({ t, resources: [ORDERS] })
  const { url } = await kit.listen()
  const host = fastify()
  t.teardown(() => host.close())
  await host.register(remoteAuth, { issuer: url })
  host.get('/orders', { onRequest: host.identity.protect({ resource: ORDERS.id, scopes: ['orders:read'] }) }, ({ caller }) => caller as object)
  t.strictSame((await host.inject(METADATA)).json(), {
    resource: ORDERS.id, authorization_servers: [url], scopes_supported: ['orders:read'], bearer_methods_supported: ['header']
  })
  t.match(await host.inject('/orders'), { statusCode: 401, headers: { 'www-authenticate': `Bearer ${LINK}, scope="orders:read"` } })
  const { user_id } = await kit.mint({ user: 'ann' })
  const { clientId: client_id } = await kit.app.identity.clients.create(
    { data: { redirectUris: [], scopes: ['orders:read'], name: 'c', userId: user_id } }, { user_id: '', isAdmin: true }
  )
  for (const [resource, status] of [[ORDERS.id, 200], [undefined, 401]] as const) {
    const { access_token } = await kit.app.identity.tokens.mint({ user_id, client_id, ...(resource && { resource }) })
    t.equal((await host.inject({ url: '/orders', headers: { authorization: `Bearer ${access_token}` } })).statusCode, status)
  }
  const upstream = fastify()
  t.teardown(() => upstream.close())
  await upstream.register(remoteAuth, { upstream: url })
  t.throws(() => upstream.identity.protect({ resource: ORDERS.id }), { message: 'protect: there is no authorization server that the metadata could name' })
})
