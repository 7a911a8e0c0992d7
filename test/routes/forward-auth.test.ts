import { once } from 'node:events'
import { connect } from 'node:net'
import fastify from 'fastify'
import t, { type Test } from 'tap'
import { hashToken } from '../../lib/crypto/random-token.ts'
import { storeError } from '../../lib/errors.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { RequestLog, SERIALIZERS } from '../../plugins/logging.ts'
import { LIMITS } from '../../schemas/common.ts'
import type { TestKit } from '../../testing/index.ts'
import { createApp } from '../../testing/kit.ts'
import { type Build, type BuildOptions, build, forEachStore } from '../helpers/build.ts'
import { type Answer, readAnswer } from '../helpers/socket.ts'
import { PROMPT, within } from '../helpers/wait.ts'
import { type Around, wrapStore } from '../helpers/wrap-store.ts'

const PATH = '/api/v1/auth/forward'
const HEADER = 'X-Identity-Rule'
const ORDERS = { id: 'https://api.example.com/orders', name: 'Orders', scopes: { 'orders:read': 'see your orders', 'orders:write': 'change your orders' } }
const OTHER = { id: 'https://api.example.com/other', name: 'Other', scopes: { 'other:read': 'read' } }
const NAMES = ['identity-user', 'identity-account', 'identity-client', 'identity-scope', 'identity-roles', 'identity-subject'] as const
const METHODS = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND', 'MKCOL', 'REPORT', 'QUERY', 'PURGE', 'LOCK'] as const

type Headers = Record<string, string>

/** An app whose log lines are at hand. */
function createLoggingApp () {
  const lines: string[] = []
  const app = createApp({
    logger: { level: 'trace', serializers: SERIALIZERS, stream: { write: (line: string) => lines.push(line) } }, logController: new RequestLog({ callers: true })
  })
  const reasons = () => lines.map((line) => JSON.parse(line) as { reason?: string }).flatMap(({ reason }) => reason ?? [])
  return { app, lines, reasons, clear: () => lines.splice(0) }
}

async function start (t: Test, options: BuildOptions = {}, make: Build = build) {
  const log = createLoggingApp()
  const kit = await make(t, { app: log.app, resources: [ORDERS, OTHER], forwardAuth: { header: HEADER }, ...options })
  async function ask (url: string, headers: Headers = {}, method = 'GET') {
    const reply = await kit.inject({ method: method as 'GET', url, headers })
    const said = Object.fromEntries(NAMES.map((name) => [name, reply.headers[name]]))
    return { status: reply.statusCode, challenge: reply.headers['www-authenticate'], said, body: reply.body, headers: reply.headers }
  }
  /** As nginx asks. */
  const byQuery = async (rule: Headers | string, headers?: Headers, method?: string) => await ask(`${PATH}?${new URLSearchParams(rule)}`, headers, method)
  /** As Envoy asks. */
  const byHeader = async (rule: Headers | string, headers: Headers = {}, path = '/orders/7?subject=any', method?: string) => (
    await ask(PATH + path, { ...headers, [HEADER]: String(new URLSearchParams(rule)) }, method)
  )
  return { kit, log, ask, byQuery, byHeader }
}

/** A token of a client that acts for itself. */
async function mintOwn (kit: TestKit, scopes: string[], { resource, roles }: { resource?: string, roles?: Record<string, true> } = {}) {
  const owner = await kit.mint({ roles: ['admin'] })
  const actor = { user_id: owner.user_id, isAdmin: true }
  const { clientId } = await kit.app.identity.clients.create({
    data: { redirectUris: [], scopes, name: 'A job', userId: owner.user_id, grants: ['client'], ...(roles && { roles }) }, credentials: true
  }, actor)
  const { clientSecret = '' } = await kit.app.identity.clients.require(clientId, actor)
  const form = new URLSearchParams({ grant_type: 'client_credentials', scope: scopes.join(' '), ...(resource !== undefined && { resource }) })
  const reply = await kit.inject({
    method: 'POST',
    url: '/api/v1/auth/token',
    headers: {
      'content-type': 'application/x-www-form-urlencoded', authorization: `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`
    },
    payload: String(form)
  })
  if (reply.statusCode !== 200) throw new Error(reply.body)
  return { clientId, headers: { authorization: `Bearer ${reply.json<{ access_token: string }>().access_token}` } }
}

const basic = (password: string, user = 'git') => ({ authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}` })

t.test('each part of a rule is demanded, as by a guard', async (t) => {
  await forEachStore(t, async (t, make) => {
    const { kit, byQuery, byHeader } = await start(t, { roles: { admin: 'root' } }, make)
    const full = await kit.mint({ user: 'ann', roles: ['clerk'], resource: ORDERS.id, scopes: ['orders:read', 'orders:write'] })
    const narrow = await kit.mint({ user: 'ann', resource: ORDERS.id, scopes: ['orders:read'] })
    const other = await kit.mint({ user: 'ann', resource: OTHER.id, scopes: ['other:read'] })
    const plain = await kit.mint({ user: 'ann' })
    const strong = await kit.mint({ user: 'ann', acr: 'mfa' })
    const root = await kit.mint({ user: 'boss', roles: ['root'] })
    const job = await mintOwn(kit, ['orders:read'], { resource: ORDERS.id })
    const ended = await kit.mint({ user: 'ann', resource: ORDERS.id, scopes: ['orders:read'] })
    await kit.inject({ method: 'POST', url: '/api/v1/auth/logout', headers: ended.headers })
    const scoped = { resource: ORDERS.id, scope: 'orders:read orders:write' }
    const cases: [name: string, rule: Headers, of: { headers: Headers } | undefined, expected: object][] = [
      ['all scopes', scoped, full, { status: 200, challenge: undefined, body: '' }],
      ['too few scopes', scoped, narrow, { status: 403, challenge: 'Bearer error="insufficient_scope", scope="orders:read orders:write"' }],
      ['another resource', scoped, other, { status: 401, challenge: /invalid_token.*not requested for this resource/ }],
      ['no resource', scoped, plain, { status: 401, challenge: /invalid_token/ }],
      ['a resource where none is asked for', { scope: 'orders:read' }, full, { status: 401, challenge: /not requested for this resource/ }],
      ['an ended token', scoped, ended, { status: 401, challenge: /unknown, expired or revoked/ }],
      ['no token', scoped, undefined, { status: 401, challenge: 'Bearer' }],
      ['a role that is held', { role: 'clerk', resource: ORDERS.id }, full, { status: 200 }],
      ['a role that is not', { role: 'boss', resource: ORDERS.id }, full, { status: 403 }],
      ['the name of a role by its key', { role: 'admin' }, root, { status: 200 }],
      ['that role, not held', { role: 'admin' }, plain, { status: 403 }],
      ['a strength', { acr: 'mfa' }, strong, { status: 200 }],
      ['a strength that is not reached', { acr: 'phr' }, strong, { status: 401, challenge: /insufficient_user_authentication.*acr_values="phr"/ }],
      ['a strength of a token without a sign-in', { acr: '1' }, plain, { status: 401 }],
      ['a client where users are asked for', { resource: ORDERS.id }, job, { status: 403 }],
      ['a client', { resource: ORDERS.id, subject: 'client' }, job, { status: 200 }],
      ['a user where clients are asked for', { resource: ORDERS.id, subject: 'client' }, full, { status: 403 }],
      ['anybody, a client', { resource: ORDERS.id, subject: 'any' }, job, { status: 200 }],
      ['anybody, a user', { resource: ORDERS.id, subject: 'any' }, full, { status: 200 }],
      ['any user', { subject: 'user' }, plain, { status: 200 }]
    ]
    for (const [name, rule, of, expected] of cases) {
      for (const [way, send] of [['query', byQuery], ['header', byHeader]] as const) {
        const reply = await send(rule, of?.headers)
        t.match(reply, { ...expected, headers: { 'cache-control': 'no-store' } }, `${name}, by ${way}`)
        t.equal(NAMES.filter((header) => reply.said[header] !== undefined).length, reply.status === 200 ? NAMES.length : 0, `${name}, by ${way}: headers of 200 only`)
      }
    }
    const { access_token } = full
    await kit.app.identity.store.collection('access_tokens').update(hashToken(access_token), { set: { jkt: 'of-a-key' } })
    t.match(await byQuery(scoped, full.headers), { status: 401, challenge: /invalid_token/ }, 'a token that is bound to a key')
    t.match(await byQuery(scoped, { authorization: `DPoP ${access_token}`, dpop: 'a.b.c' }), { status: 401, challenge: 'Bearer' }, 'and with its own scheme')
  })
})

t.test('who the caller is stands in six headers, which are always there', async (t) => {
  const { kit, byQuery } = await start(t)
  const plain = await kit.mint({ user: 'ann@example.com' })
  t.strictSame((await byQuery({ subject: 'user' }, plain.headers)).said, {
    'identity-user': plain.user_id,
    'identity-account': 'ann@example.com',
    'identity-client': plain.client_id,
    'identity-scope': '',
    'identity-roles': '',
    'identity-subject': 'user'
  })
  const clerk = await kit.mint({ user: 'bob', roles: { clerk: true, writer: { of: 'news' } }, resource: ORDERS.id, scopes: ['orders:read', 'orders:write'] })
  t.match((await byQuery({ resource: ORDERS.id }, clerk.headers)).said, { 'identity-scope': 'orders:read orders:write', 'identity-roles': 'clerk,writer' })
  const job = await mintOwn(kit, ['orders:read'], { resource: ORDERS.id, roles: { robot: true } })
  t.strictSame((await byQuery({ resource: ORDERS.id, subject: 'any' }, job.headers)).said, {
    'identity-user': '',
    'identity-account': '',
    'identity-client': job.clientId,
    'identity-scope': 'orders:read',
    'identity-roles': 'robot',
    'identity-subject': 'client'
  }, 'of the owner of a client there is nothing')
  const withheld = await kit.mint({ user: 'eve', client: 'of eve', roles: ['clerk'], scopes: ['read'] })
  t.match((await byQuery({ subject: 'any' }, withheld.headers)).said, { 'identity-roles': '' }, 'roles that the token may not use')
})

t.test('no name splits a header, or ends one', async (t) => {
  const { kit, byQuery, log } = await start(t)
  const { url } = await kit.listen()
  const rename = async (account: string, roles?: Record<string, true>) => (
    await kit.app.identity.store.collection('users').update(user_id, { set: { account, ...(roles && { roles }) }, increment: { revision: 1 } })
  )
  const names = ['a\r\nIdentity-User: root', 'x,y', 'a b', 'Grüße', '100%', '"q"', '\ud83d\ude00', 'constructor']
  const account = 'ü,"a\\b%' + '\u{1f600}' + "'@example.com"
  const { headers, user_id, access_token } = await kit.mint({ roles: names })
  await rename(account)
  const reply = await fetch(`${url}${PATH}?subject=user`, { headers })
  t.equal(reply.status, 200)
  t.equal(reply.headers.get('identity-user'), user_id)
  t.equal(decodeURIComponent(reply.headers.get('identity-account') ?? ''), account)
  t.strictSame(reply.headers.get('identity-roles')?.split(',').map(decodeURIComponent), names)
  for (const name of NAMES) t.match(reply.headers.get(name), /^[\x21-\x7e ]*$/, name)
  await rename('half \ud800 of a character', { '\udc00': true })
  t.match((await byQuery({ subject: 'user' }, { authorization: `Bearer ${access_token}` })).said, { 'identity-account': 'half%20%EF%BF%BD%20of%20a%20character', 'identity-roles': '%EF%BF%BD' })

  const long = await kit.mint({ user: 'long', roles: Object.fromEntries(Array.from({ length: 90 }, (_, index) => [`role-${index}-${'r'.repeat(100)}`, true as const])) })
  log.clear()
  t.match(await byQuery({ subject: 'user' }, long.headers), { status: 403, body: /too long for a proxy/ }, 'more than a proxy reads is no 502')
  t.ok(log.lines.some((line) => line.includes('too long for a proxy')))
})

t.test('a wrong rule is 403, with and without a token, and the log has the reason', async (t) => {
  const { kit, log, ask, byHeader } = await start(t)
  const { headers, access_token } = await kit.mint()
  const pairs: [query: string, reason: RegExp | string][] = [
    ['', 'there is no rule'],
    ['basic=true', 'there is no rule'],
    ['scope=a&scope=b', 'scope: is given twice'],
    ['scope=a&scope=a', 'scope: is given twice'],
    ['subject=user&role=a&subject=any', 'subject: is given twice'],
    ['subject=user&basic=true&basic=true', 'basic: is given twice'],
    ['subject=user&s%75bject=any', 'subject: is given twice'],
    ['scopes=a', 'scopes: is not known'],
    ['subject=user&Scope=a', 'Scope: is not known'],
    ['subject=user&', ''],
    ['subject=user&__proto__=x', '__proto__: is not known'],
    ['subject=user&constructor=x', 'constructor: is not known'],
    ['subject=user&=x', 'a parameter: is not known'],
    [`subject=user&access_token=${access_token}`, 'access_token: is not known'],
    [`subject=user&${access_token}`, 'a parameter: is not known'],
    [`${access_token}&${access_token}`, /^a parameter: is not known$/],
    ['scope=', /^scope: must be/],
    ['scope=a%20%20b', /^scope: must be/],
    ['scope=a%0d%0ab', /^scope: must be/],
    ['scope=%22a', /^scope: must be/],
    ['scope=%C3%BC', /^scope: must be/],
    ['resource=', /^resource: must be/],
    ['resource=orders', /^resource: must be/],
    [`resource=https://a.example/${'a'.repeat(LIMITS.uri)}`, /^resource: must be/],
    ['role=', /^role: must be/],
    ['role=a%0ab', /^role: must be/],
    ['role=%FF', /^role: must be/],
    ['acr=2', 'acr: must be 1, mfa, phr'],
    ['acr=', /^acr: must be/],
    ['subject=anybody', 'subject: must be user, client, any'],
    ['subject=toString', /^subject: must be/],
    ['subject=user&basic=false', 'basic: must be true'],
    ['subject=user&basic', 'basic: must be true'],
    ['?subject=user', '?subject: is not known'],
    [`subject=user&role=${'a'.repeat(4096)}`, /more than 4096 characters/]
  ]
  for (const [query, reason] of pairs) {
    for (const given of [{}, headers]) {
      log.clear()
      const reply = await ask(`${PATH}?${query}`, given)
      const right = query === 'subject=user&'
      t.match(reply, right ? { status: 'authorization' in given ? 200 : 401 } : { status: 403, body: /the rule of the proxy is wrong/, challenge: undefined }, query.slice(0, 60))
      if (right) continue
      if (typeof reason === 'string' && reason.startsWith('?')) t.match(log.reasons(), ['a parameter: is not known'])
      else t.match(log.reasons(), [reason])
      t.notOk(log.lines.some((line) => line.includes(access_token)), 'no token in the log')
    }
  }
  t.match(await ask(PATH, headers), { status: 403 }, 'without a query')
  for (const wrong of ['', 'basic=true', 'scope=a&scope=b', 'nothing=1', 'subject=user,subject=any', 'subject=user, subject=user']) {
    log.clear()
    t.match(await ask(`${PATH}/x`, { ...headers, [HEADER]: wrong }), { status: 403 }, `header: ${wrong}`)
    t.equal(log.reasons().length, 1)
  }
  const odd = await kit.mint({ roles: ['a,b'] })
  t.match(await ask(`${PATH}/x`, { ...odd.headers, [HEADER]: 'role=a,b' }), { status: 403, body: /the rule of the proxy is wrong/ }, 'a comma, although the role is held')
  t.match(await byHeader({ role: 'a,b' }, odd.headers), { status: 200 }, 'and encoded')
  t.match(await ask(`${PATH}/x`, headers), { status: 403 }, 'no header')
  t.match(await byHeader({ role: 'a,b' }, headers), { status: 403, body: /may not do this/ }, 'a comma that is encoded')
  t.match(await ask(`${PATH}/x`, { ...headers, [HEADER]: 'subject=user' }), { status: 200 })
})

t.test('a rule of the client is never read', async (t) => {
  const { kit, ask, byHeader } = await start(t)
  const { headers } = await kit.mint({ user: 'ann' })
  const all = 'subject=any'
  t.match(await byHeader({ role: 'boss' }, headers, `/orders?${all}`), { status: 403 }, 'in the query, where the proxy appends the path')
  t.match(await ask(`${PATH}/orders?${all}`, headers), { status: 403 }, 'and without a rule of the proxy')
  t.match(await ask(`${PATH}?role=boss`, { ...headers, [HEADER]: all }), { status: 403 }, 'in the header, where the rule is in the query')
  t.match(await ask(PATH, { ...headers, [HEADER]: all }), { status: 403 }, 'and without a query')
  const { url } = await kit.listen()
  for (const path of ['/', '/?', '//', '/..', '/../forward', '/.', ';', ';a', '%2f', '/%2e%2e/forward', '/*', '%3f', '/%zz', '/\\', `/${'a'.repeat(4000)}`]) {
    const line = `GET ${PATH}${path}?${all}`
    const statuses = [await send(url, line, headers), await send(url, line, { ...headers, [HEADER]: 'role=boss' })].map(([status]) => status)
    t.ok(statuses.every((status) => status === (/^[;%]/.test(path) ? 404 : path === '/%zz' ? 400 : 403)), `${path.slice(0, 40)}: ${statuses.join()}`)
  }
  t.equal((await send(url, `GET http://x${PATH}?${all}`, headers))[0], 403, 'a whole URL')
  t.match(await byHeader({ subject: 'user' }, {}, `/orders?access_token=${headers.authorization.slice(7)}`), { status: 401, challenge: 'Bearer' }, 'nor is a token')
  t.match(await byHeader({ subject: 'user' }, { 'x-forwarded-authorization': headers.authorization, cookie: `access_token=${headers.authorization.slice(7)}` }), { status: 401 })
})

t.test('an app whose router counts other paths as the same admits no rule of the client', async (t) => {
  for (const forwardAuth of [true, { header: HEADER }]) {
    const app = fastify({ routerOptions: { ignoreTrailingSlash: true, ignoreDuplicateSlashes: true, caseSensitive: false, ...{ useSemicolonDelimiter: true } } })
    const { kit, ask } = await start(t, { app, forwardAuth, prefix: '/id', openapi: false })
    const { headers } = await kit.mint()
    t.match(await ask(`/id${PATH}?subject=user`, headers), { status: 200 })
    const { url } = await kit.listen()
    for (const path of [`/id${PATH}/`, `/id${PATH}//`, `/id/${PATH}`, `//id${PATH}`, `/id${PATH.toUpperCase()}`, `/id${PATH.replace('f', '%66')}`, `/id${PATH};subject=any`, `http://x/id${PATH}`]) {
      for (const rule of [{}, { [HEADER]: 'role=boss' }] as Headers[]) {
        const [status] = await send(url, `GET ${path}?subject=any`, { ...headers, ...rule })
        t.ok(status === 403 || status === 404, `${path}: ${status}`)
      }
    }
  }
})

t.test('any method is judged', async (t) => {
  const { kit, ask } = await start(t)
  const { url } = await kit.listen()
  const { headers } = await kit.mint()
  for (const method of METHODS) {
    for (const [path, extra] of [[`${PATH}?subject=user`, {}], [`${PATH}/dav/a?subject=any`, { [HEADER]: 'subject=user' }]] as const) {
      const [status, head] = await send(url, `${method} ${path}`, { ...headers, ...extra })
      t.equal(status, 200, `${method} ${path}`)
      t.match(head, /\r\nidentity-user: \S/i)
      if (method !== 'HEAD') t.match(head, /\r\ncontent-length: 0\r\n/i)
      t.match((await send(url, `${method} ${path}`, extra))[0], 401, `${method} ${path}`)
    }
  }
  t.match(await ask(`${PATH}?subject=user`, headers, 'HEAD'), { status: 200, body: '' })
  const { headers: preflight } = await kit.inject({ method: 'OPTIONS', url: `${PATH}?subject=user`, headers: { origin: 'https://a.example', 'access-control-request-method': 'GET' } })
  t.equal(preflight['access-control-allow-origin'], undefined)
})

/** Sends bytes, and reads to the end of the connection. */
async function exchange (url: string, bytes: string): Promise<Answer & { raw: string }> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port) })
  await once(socket, 'connect')
  let raw = ''
  socket.on('data', (part) => { raw += part.toString('latin1') })
  socket.write(bytes)
  const answer = await within('the end of the connection', readAnswer(socket), PROMPT).finally(() => socket.destroy())
  return { ...answer, raw }
}

async function send (url: string, line: string, headers: Headers): Promise<[status: number, head: string]> {
  const lines = Object.entries({ host: 'id.example', connection: 'close', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  const { status, raw } = await exchange(url, `${line} HTTP/1.1\r\n${lines.join('')}\r\n`)
  return [status, raw.split('\r\n\r\n')[0] + '\r\n']
}

t.test('no body is read, and none is taken for the next request', async (t) => {
  const { kit } = await start(t)
  const { url } = await kit.listen()
  const { headers: { authorization } } = await kit.mint()
  const next = `GET ${PATH}?subject=any HTTP/1.1\r\nhost: id.example\r\n\r\n`
  for (const [name, framing, after] of [
    ['a length', 'content-length: 10000000000\r\n', ''],
    ['a length, and a request in the place of the body', `content-length: ${next.length}\r\n`, next],
    ['a length and no body, as of a proxy that forwards the header only', 'content-length: 10\r\n', next],
    ['chunks', 'transfer-encoding: chunked\r\n', `5\r\nhello\r\n0\r\n\r\n${next}`],
    ['chunks that never end', 'transfer-encoding: chunked\r\n', 'ffffff\r\nhello'],
    ['100-continue', 'content-length: 10000000000\r\nexpect: 100-continue\r\n', '']
  ] as const) {
    for (const [way, target, rule] of [['query', `${PATH}?subject=user`, ''], ['header', `${PATH}/a`, `${HEADER}: subject=user\r\n`]] as const) {
      const { raw } = await exchange(url, `POST ${target} HTTP/1.1\r\nhost: id.example\r\nauthorization: ${authorization}\r\n${rule}content-type: application/json\r\n${framing}\r\n${after}`)
      const statuses = [...raw.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => status)
      t.strictSame(statuses.filter((status) => status !== '100'), ['200'], `${name}, by ${way}: one answer, and the connection ends`)
      t.match(raw, /\r\nconnection: close\r\n/i)
    }
  }
  for (const empty of ['', 'content-length: 0\r\n']) {
    const { raw } = await exchange(url, `GET ${PATH}?subject=user HTTP/1.1\r\nhost: id.example\r\nauthorization: ${authorization}\r\n${empty}\r\n${next.replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n')}`)
    t.strictSame([...raw.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => status), ['200', '401'], 'without a body the connection goes on')
  }
})

t.test('Basic credentials: a token in place of the password, and nothing else', async (t) => {
  const reads: string[] = []
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: Date.now, onError: () => {} })
  t.teardown(() => inner.close())
  const around: Around = ({ collection, method, args }, run) => {
    if (['users', 'clients', 'access_tokens'].includes(collection) && method.startsWith('get')) reads.push(`${collection} ${String(args[0])}`)
    return run()
  }
  const { kit, log, byQuery } = await start(t, { store: wrapStore(inner, around) })
  const token = `fi_svc_${'a'.repeat(49)}`
  const { user_id, access_token } = await kit.mint({ user: 'ann' })
  const admin = await kit.mint({ roles: ['admin'] })
  await kit.app.identity.users.patch(user_id, { data: { password: 'a real password' } }, { user_id: admin.user_id, isAdmin: true })
  // The event of the password is published.
  await kit.flush()
  const ask = async (headers: Headers, rule: Headers = { subject: 'user' }) => {
    reads.length = 0
    log.clear()
    return await byQuery(rule, headers)
  }
  for (const [name, headers] of Object.entries({
    'the password of the user': basic('a real password', 'ann'),
    'an access token': basic(access_token, 'ann'),
    'a token as the user name': basic('', token),
    'a token as the user name, with a usual password': basic('x-oauth-basic', token),
    'text before the token': basic(`a ${token}`),
    'text after the token': basic(`${token} a`),
    'a line after the token': basic(`${token}\n`),
    'a second colon': basic(`a:${token}`),
    'another prefix': basic(token.replace('svc', 'sec')),
    'a prefix in other letters': basic(token.replace('fi_svc', 'FI_SVC')),
    'a prefix and nothing': basic('fi_svc_'),
    'no colon': { authorization: `Basic ${Buffer.from(token).toString('base64')}` },
    'no base64': { authorization: `Basic git:${token}` },
    nothing: { authorization: 'Basic' },
    'two schemes': { authorization: `Basic ${Buffer.from(`git:${token}`).toString('base64')}, Bearer ${access_token}` },
    'a token that is too long': basic(`fi_svc_${'a'.repeat(LIMITS.token)}`)
  })) {
    t.match(await ask(headers), { status: 401, challenge: 'Bearer' }, name)
    t.strictSame(reads, [], `${name}: nothing is looked up`)
  }
  t.match(await ask({ authorization: `Bearer ${token}` }), { status: 401, challenge: /unknown, expired or revoked/ }, 'a token that nobody has issued, as a bearer token')
  const direct = [...reads]
  for (const headers of [basic(token), basic(token, ''), basic(token, 'Ä:'.slice(0, 1)), { authorization: basic(token).authorization.replace('Basic', 'bAsIc') }]) {
    t.match(await ask(headers), { status: 401, challenge: /unknown, expired or revoked/ }, 'and as a password')
    t.strictSame(reads, direct, 'the same look-up')
  }
  const owner = { user_id, isAdmin: true }
  const { clientId } = await kit.app.identity.clients.create({ data: { name: 'Registry', redirectUris: [], scopes: ['read'] }, credentials: true }, owner)
  const service = await kit.serviceToken(clientId, { scopes: ['read'] })
  for (const headers of [basic(service.token, 'ann'), basic(service.token, ''), service.headers]) {
    t.match(await ask(headers, { subject: 'client', scope: 'read' }), { status: 200, said: { 'identity-client': clientId, 'identity-user': '' } }, 'whatever the user name says')
    t.match(await ask(headers, { subject: 'user' }), { status: 403 }, 'and the rule holds for it')
  }
  t.match(await kit.app.identity.serviceTokens.list(clientId, owner), [{ lastUsedAt: String, lastUsedFrom: '127.0.0.1' }], 'its use is noted')
  await kit.app.identity.serviceTokens.remove(clientId, service.id, owner)
  t.match(await ask(basic(service.token), { subject: 'client' }), { status: 401, challenge: /unknown, expired or revoked/ }, 'until it ends')
  const both = await ask({}, { subject: 'user', basic: 'true' })
  t.match(both, { status: 401, challenge: 'Basic realm="access token", Bearer' })
  t.match(await ask(basic(token), { subject: 'user', basic: 'true' }), { status: 401, challenge: /^Basic realm="access token", Bearer error="invalid_token"/ })
  t.match(await ask(basic('a real password', 'ann'), { subject: 'user', basic: 'true' }), { status: 401, challenge: 'Basic realm="access token", Bearer' })
  const { headers } = await kit.mint()
  t.match(await ask(headers, { role: 'boss', basic: 'true' }), { status: 403, challenge: undefined }, 'not with a 403')
})

t.test('the log has no token and no user name', async (t) => {
  const { kit, log, ask, byQuery } = await start(t)
  const { access_token, headers } = await kit.mint({ user: 'ann' })
  const token = `fi_svc_${'b'.repeat(49)}`
  const [user, password] = ['a-user-name-of-basic', 'a-password-of-basic']
  for (const given of [headers, basic(token, user), basic(password, user), { authorization: `Bearer ${token}` }, { authorization: `DPoP ${access_token}` }]) {
    for (const rule of [{ subject: 'user' }, { subject: 'user', basic: 'true' }, { role: 'boss' }, { nothing: token }, { [access_token]: '' }]) await byQuery(rule as Headers, given)
    await ask(`${PATH}/orders?access_token=${access_token}&${token}`, { ...given, [HEADER]: `subject=user&role=${token}` })
  }
  const text = log.lines.join('')
  t.ok(log.lines.length > 30, `${log.lines.length} lines`)
  t.match(text, /request completed/)
  for (const [name, secret] of Object.entries({ access_token, token, user, password, credentials: basic(token, user).authorization.slice(6) })) t.notOk(text.includes(secret), name)
})

t.test('a store that is down is 503', async (t) => {
  for (const fail of [() => { throw storeError(new Error('down')) }, async () => { throw storeError(new Error('down')) }]) {
    let down = false
    const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: Date.now, onError: () => {} })
    t.teardown(() => inner.close())
    const { kit, byQuery, byHeader } = await start(t, { store: wrapStore(inner, ({ method }, run) => (down && method === 'getLinked' ? fail() : run())) })
    const { headers } = await kit.mint()
    down = true
    for (const send of [byQuery, byHeader]) {
      t.match(await send({ subject: 'user', basic: 'true' }, headers), { status: 503, challenge: undefined, headers: { 'retry-after': '1', 'cache-control': 'no-store' } })
      t.match(await send({ nothing: 'x' }, headers), { status: 403 }, 'a wrong rule needs no store')
    }
    down = false
    t.match(await byQuery({ subject: 'user' }, headers), { status: 200 })
  }
})

t.test('off, there is no route, and without a header nothing below it', async (t) => {
  const off = await start(t, { forwardAuth: false })
  const { headers } = await off.kit.mint()
  for (const method of METHODS) {
    for (const path of [`${PATH}?subject=user`, `${PATH}/a`]) {
      t.match(await off.ask(path, { ...headers, [HEADER]: 'subject=user' }, method), { status: 404, said: { 'identity-user': undefined } }, `${method} ${path}`)
    }
  }
  const paths = async (kit: TestKit) => Object.keys((await kit.inject('/openapi.json')).json<{ paths: object }>().paths)
  t.notOk((await paths(off.kit)).some((path) => path.includes('forward')))
  const plain = await start(t, { forwardAuth: true })
  const { headers: mine } = await plain.kit.mint()
  t.match(await plain.ask(`${PATH}?subject=user`, mine), { status: 200 })
  for (const method of METHODS) {
    for (const path of [`${PATH}/?subject=user`, `${PATH}/a`, `${PATH}/a/b?subject=user`]) {
      t.match(await plain.ask(path, { ...mine, [HEADER]: 'subject=user' }, method), { status: 404 }, `${method} ${path}`)
    }
  }
  t.strictSame((await paths(plain.kit)).filter((path) => path.includes('forward')), [PATH])
  for (const forwardAuth of ['on', {}, { header: '' }, { header: 'Authorization' }, { header: 'X-A b' }, { header: 'X-Rule', path: '/a' }]) {
    await t.rejects(start(t, { forwardAuth: forwardAuth as never }), { message: 'option forwardAuth: must be false, true, or { header } with the name of a header that begins with X- or Identity-' })
  }
})
