import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { type IncomingHttpHeaders, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { delimiter, join } from 'node:path'
import t, { type Test } from 'tap'
import { hashToken } from '../../lib/crypto/random-token.ts'
import { storeError } from '../../lib/errors.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { startIdentity } from '../../testing/index.ts'
import { findFreePort } from '../helpers/port.ts'
import { waitUntil, within } from '../helpers/wait.ts'
import { wrapStore } from '../helpers/wrap-store.ts'

/** The proxies of docs/forward-auth.md, with the configuration that stands there, unchanged but for ports. */

const PAGE = readFileSync(new URL('../../docs/forward-auth.md', import.meta.url), 'utf8')
const ORDERS = { id: 'https://api.example.com/orders', name: 'Orders', scopes: { 'orders:read': 'see your orders', 'orders:list': 'list your orders' } }
const OTHER = { id: 'https://api.example.com/other', name: 'Other', scopes: { 'other:read': 'read' } }

/** Where Debian has servers, although the PATH of a user does not. */
const FOLDERS = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin']

interface Proxy {
  name: string
  program: string
  /** What the block of its configuration on the page begins with, and a text of it. */
  block: [language: string, text: string]
  /** The statuses where the store is down. */
  down: number
  /** Whether the challenge of a 403 reaches the caller. */
  explains: boolean
  /** Writes the files. @returns the arguments */
  prepare (dir: string, text: string, port: number): string[]
}

const PROXIES: Proxy[] = [
  {
    name: 'nginx',
    program: 'nginx',
    block: ['nginx', 'auth_request'],
    down: 500,
    explains: false,
    prepare (dir, text) {
      const folders = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${dir}/${name};`).join(' ')
      writeFileSync(join(dir, 'nginx.conf'), `daemon off; master_process off; pid ${dir}/pid; error_log stderr; events {} http { access_log off; ${folders}\n${text}}\n`)
      return ['-p', dir, '-c', join(dir, 'nginx.conf'), '-g', 'error_log stderr;']
    }
  },
  {
    name: 'Caddy',
    program: 'caddy',
    block: ['caddyfile', 'forward_auth'],
    down: 503,
    explains: true,
    prepare (dir, text) {
      writeFileSync(join(dir, 'Caddyfile'), `{\nadmin off\n}\n${text}`)
      return ['run', '--config', join(dir, 'Caddyfile'), '--adapter', 'caddyfile']
    }
  },
  {
    name: 'Traefik',
    program: 'traefik',
    block: ['yaml', 'forwardAuth'],
    down: 503,
    explains: true,
    prepare (dir, text, port) {
      writeFileSync(join(dir, 'dynamic.yaml'), text)
      writeFileSync(join(dir, 'traefik.yaml'), `entryPoints: { web: { address: "127.0.0.1:${port}" } }\nproviders: { file: { filename: "${dir}/dynamic.yaml" } }\n`)
      return [`--configFile=${dir}/traefik.yaml`]
    }
  },
  {
    name: 'Envoy',
    program: 'envoy',
    block: ['yaml', 'ext_authz'],
    down: 503,
    explains: true,
    prepare (dir, text) {
      writeFileSync(join(dir, 'envoy.yaml'), text)
      return ['-c', join(dir, 'envoy.yaml'), '--disable-hot-restart', '--concurrency', '1', '--log-level', 'warning']
    }
  }
]

/** CI installs nginx and Caddy (.ci/run), and fails where they are missing (.ci/count.ts). */
function findProgram ({ name, program }: Proxy): { path?: string, skip: string | false } {
  const variable = `${program.toUpperCase()}_PATH`
  const path = process.env[variable] ?? FOLDERS.map((folder) => join(folder, program)).find((file) => existsSync(file))
  return path === undefined ? { skip: `no ${name} found: set ${variable}` } : { path, skip: false }
}

function readBlock ([language, part]: Proxy['block']): string {
  const blocks = [...PAGE.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, 'gm'))].map(([, text = '']) => text)
  const found = blocks.find((text) => text.includes(part))
  if (found === undefined) throw new Error(`the page has no ${language} with ${part}`)
  return found
}

interface Seen { method: string, url: string, headers: [name: string, value: string][], body: string }

/** The API behind a proxy. It remembers what reaches it. */
async function startApi (t: Test) {
  const seen: Seen[] = []
  const server = createServer((incoming, response) => {
    const headers = incoming.rawHeaders.flatMap((name, index, all) => (index % 2 === 0 ? [[name.toLowerCase(), all[index + 1] ?? ''] as [string, string]] : []))
    let body = ''
    incoming.setEncoding('utf8').on('data', (part: string) => { body += part }).on('end', () => {
      seen.push({ method: incoming.method ?? '', url: incoming.url ?? '', headers, body })
      response.end('the orders')
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => { server.closeAllConnections(); server.close() })
  return { port: (server.address() as AddressInfo).port, seen }
}

/** What the API is told of the caller. An empty header tells nothing. */
const told = ({ headers }: Seen) => Object.fromEntries(headers.filter(([name, value]) => /^identity/.test(name) && value !== ''))

interface Sent { method?: string, headers?: Record<string, string | string[]>, body?: string, path?: string }

/** Sends a request whose path stays as it is written. */
async function send (port: number, { method = 'GET', headers = {}, body, path = '/orders/7?of=ann' }: Sent): Promise<{ status: number, headers: IncomingHttpHeaders, body: string }> {
  return await within(`${method} ${path}`, new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, method, path, headers, agent: false }, (reply) => {
      let text = ''
      reply.setEncoding('utf8').on('data', (part: string) => { text += part }).on('end', () => resolve({ status: reply.statusCode ?? 0, headers: reply.headers, body: text })).on('error', reject)
    }).on('error', reject)
    // With 100-continue the body waits for the answer, and a refusal comes instead.
    if (headers['expect'] === undefined) sent.end(body)
    else sent.flushHeaders()
  }))
}

async function stop (child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const closed = once(child, 'close')
  child.kill('SIGKILL')
  await closed
}

async function startProxy (t: Test, path: string, { prepare, block, name }: Proxy, { service, api }: { service: string, api: number }, change = (text: string) => text) {
  const [dir, port] = [t.testdir(), await findFreePort()]
  const text = change(readBlock(block)).replace(/\b3000\b/g, new URL(service).port).replace(/\b8081\b/g, String(api)).replace(/\b8080\b/g, String(port))
  let log = ''
  const child = spawn(path, prepare(dir, text, port), { cwd: dir, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, HOME: dir, XDG_DATA_HOME: dir, XDG_CONFIG_HOME: dir } })
  t.teardown(async () => await stop(child))
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (part: string) => { log += part })
  await waitUntil(`${name} answers`, async () => {
    if (child.exitCode !== null) throw new Error(`${name} has ended: ${log}`)
    // Traefik answers 404 until it has read its routes.
    return await send(port, {}).then(({ status }) => status !== 404, () => false)
  })
  return { port, readLog: () => log }
}

t.setTimeout(240_000)

for (const proxy of PROXIES) {
  const { path = '', skip } = findProgram(proxy)
  t.test(`behind ${proxy.name}`, { skip }, async (t) => {
    let down = false
    const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: Date.now, onError: () => {} })
    t.teardown(() => inner.close())
    const store = wrapStore(inner, ({ method }, run) => {
      if (down && method === 'getLinked') throw storeError(new Error('down'))
      return run()
    })
    const kit = await startIdentity({ t, store, resources: [ORDERS, OTHER], forwardAuth: { header: 'X-Identity-Rule' } })
    const { url } = await kit.listen()
    const api = await startApi(t)
    const { port } = await startProxy(t, path, proxy, { service: url, api: api.port })
    const right = { user: 'ann@example.com', resource: ORDERS.id, scopes: ['orders:read'] }
    const full = await kit.mint(right)
    const narrow = await kit.mint({ user: 'ann@example.com', resource: ORDERS.id, scopes: ['orders:list'] })
    const ask = async (sent: Sent) => {
      api.seen.length = 0
      const reply = await send(port, sent)
      return { status: reply.status, challenge: reply.headers['www-authenticate'], body: reply.body, seen: api.seen.length, told: api.seen[0] && told(api.seen[0]), reached: api.seen[0] }
    }
    const ann = {
      'identity-user': full.user_id,
      'identity-account': 'ann@example.com',
      'identity-client': full.client_id,
      'identity-scope': 'orders:read',
      'identity-subject': 'user'
    }

    await t.test('a right token, and what the API is told', async (t) => {
      t.match(await ask({ headers: full.headers }), { status: 200, body: 'the orders', seen: 1, reached: { method: 'GET', url: '/orders/7?of=ann' } })
      t.strictSame((await ask({ headers: full.headers })).told, ann)
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'PROPFIND']) {
        const reply = await ask({ method, headers: { ...full.headers, 'content-type': 'text/plain', 'content-length': '9' }, body: 'two books' })
        t.match(reply, { status: 200, seen: 1, reached: { method, body: 'two books' } }, method)
        t.strictSame(reply.told, ann, method)
      }
      t.match(await ask({ method: 'POST', headers: { ...full.headers, 'transfer-encoding': 'chunked' }, body: 'a'.repeat(200_000) }), { status: 200, reached: { body: 'a'.repeat(200_000) } }, 'chunks')
      t.match(await ask({ method: 'HEAD', headers: full.headers }), { status: 200, body: '' })
    })

    await t.test('headers that a caller sends', async (t) => {
      const names = ['User', 'Account', 'Client', 'Scope', 'Roles', 'Subject']
      for (const spell of [(name: string) => `Identity-${name}`, (name: string) => `identity-${name.toLowerCase()}`, (name: string) => `IDENTITY-${name}`, (name: string) => `Identity_${name}`]) {
        const forged = Object.fromEntries(names.map((name) => [spell(name), ['root', 'evil']]))
        t.strictSame((await ask({ headers: { ...full.headers, ...forged } })).told, ann, spell('User'))
      }
    })

    await t.test('refusals', async (t) => {
      const ended = await kit.mint(right)
      t.match(await ask({ headers: ended.headers }), { status: 200 })
      await kit.inject({ method: 'POST', url: '/api/v1/auth/logout', headers: ended.headers })
      const other = await kit.mint({ user: 'ann@example.com', resource: OTHER.id })
      const plain = await kit.mint({ user: 'ann@example.com' })
      for (const [name, headers, expected] of [
        ['no token', {}, { status: 401, challenge: 'Bearer' }],
        ['a token that nobody issued', { authorization: 'Bearer abc' }, { status: 401, challenge: /invalid_token/ }],
        ['another resource', other.headers, { status: 401, challenge: /invalid_token/ }],
        ['no resource', plain.headers, { status: 401, challenge: /invalid_token/ }],
        ['an ended token', ended.headers, { status: 401, challenge: /invalid_token/ }],
        ['too few scopes', narrow.headers, { status: 403, challenge: proxy.explains ? /insufficient_scope/ : undefined }],
        ['a password', { authorization: `Basic ${Buffer.from('ann@example.com:secret').toString('base64')}` }, { status: 401, challenge: 'Bearer' }]
      ] as const) {
        t.match(await ask({ headers }), { ...expected, seen: 0 }, name)
        t.match(await ask({ headers: { ...headers, 'content-length': '9' }, method: 'POST', body: 'two books' }), { status: expected.status, seen: 0 }, `${name}, with a body`)
      }
      t.match(await ask({ method: 'POST', headers: { 'content-length': '500000', expect: '100-continue' } }), { status: 401, seen: 0 }, 'a body that waits')
    })

    await t.test('a rule that a caller sends', async (t) => {
      const rule = `resource=${ORDERS.id}&scope=orders:list`
      for (const path of [`/orders?${rule}`, `/orders?subject=any&${rule}`, `/orders/..;/?${rule}`, `/orders/%2e%2e?${rule}`, `/orders/../orders?${rule}`, `/orders#?${rule}`, `/orders%3f${rule}`, `/orders/%0d%0aX-Identity-Rule:%20${rule}`]) {
        for (const given of [{}, { 'X-Identity-Rule': rule }, { 'X-Identity-Rule': [rule, rule] }, { 'x-identity-rule': 'subject=any', 'X-Original-URI': `/?${rule}`, 'X-Forwarded-Uri': `/?${rule}`, 'X-Forwarded-Method': 'OPTIONS' }] as Sent['headers'][]) {
          const reply = await ask({ path, headers: { ...narrow.headers, ...given } })
          // Caddy answers 200 itself where it has no route.
          t.equal(reply.seen, 0, `${path}: ${reply.status}`)
        }
      }
      t.match(await ask({ path: '/orders?scope=nothing&access_token=abc', headers: { ...full.headers, 'X-Identity-Rule': 'scope=nothing' } }), { status: 200 }, 'and it takes nothing away')
      t.match(await ask({ path: `/orders?access_token=${full.access_token}` }), { status: 401, seen: 0 })
    })

    await t.test('a caller with many roles', async (t) => {
      const roles = Array.from({ length: 90 }, (_, index) => `a-role-of-some-length-with-the-number-${index}-${'r'.repeat(15)}`)
      const many = await kit.mint({ ...right, user: 'many', roles })
      const reply = await ask({ headers: many.headers })
      t.equal(reply.status, 200)
      t.strictSame(reply.told?.['identity-roles']?.split(','), roles)
      t.match(await ask({ headers: full.headers }), { status: 200, told: ann }, 'and the next one has none of them')
      const more = await kit.mint({ ...right, user: 'more', roles: roles.map((role) => role + 'r'.repeat(30)) })
      t.match(await ask({ headers: more.headers }), { status: 403, seen: 0 }, 'more than fit')
    })

    await t.test('many at once, each their own', async (t) => {
      const people = await Promise.all(Array.from({ length: 20 }, async (_, index) => await kit.mint({ ...right, user: `person-${index}` })))
      api.seen.length = 0
      const statuses = await Promise.all(people.flatMap(({ headers, user_id }) => [
        send(port, { headers, path: `/orders?of=${user_id}` }),
        send(port, { method: 'POST', body: 'b', path: `/orders?of=${user_id}` })
      ]).map(async (reply) => (await reply).status))
      t.strictSame(statuses, people.flatMap(() => [200, 401]))
      t.equal(api.seen.length, people.length)
      for (const one of api.seen) t.equal(one.url, `/orders?of=${told(one)['identity-user']}`)
    })

    await t.test('the store is down', async (t) => {
      down = true
      const later = await ask({ headers: full.headers })
      down = false
      t.match(later, { status: proxy.down, seen: 0 })
      t.match(await ask({ headers: full.headers }), { status: 200 })
    })

    await t.test('a token in the place of a password', async (t) => {
      const { port } = await startProxy(t, path, proxy, { service: url, api: api.port }, (text) => text.replace('&scope=', '&basic=true&scope='))
      const token = `fi_svc_${'a'.repeat(49)}`
      const credentials = (password: string) => ({ authorization: `Basic ${Buffer.from(`git:${password}`).toString('base64')}` })
      const tokens = inner.collection('access_tokens')
      await tokens.insert({ ...await tokens.get(hashToken(full.access_token)), id: hashToken(token) })
      api.seen.length = 0
      for (const headers of [{}, credentials('a password')]) {
        t.match(await send(port, { headers }), { status: 401, headers: { 'www-authenticate': 'Basic realm="access token", Bearer' } })
      }
      t.equal(api.seen.length, 0)
      t.match(await send(port, { headers: credentials(token) }), { status: 200 })
      t.strictSame(api.seen.map(told), [ann])
    })

    await t.test('a wrong rule', async (t) => {
      const { port } = await startProxy(t, path, proxy, { service: url, api: api.port }, (text) => text.replace('&scope=', '&scop='))
      api.seen.length = 0
      for (const headers of [full.headers, {}]) t.match(await send(port, { headers }), { status: 403 })
      t.equal(api.seen.length, 0)
    })
  })
}
