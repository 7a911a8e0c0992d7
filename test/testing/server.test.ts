import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import t from 'tap'
import { startIdentity, serveTesting, type Minted } from '../../testing/index.ts'

async function call<T> (url: string, path: string, body?: object, headers: Record<string, string> = {}): Promise<{ status: number, body: T }> {
  const reply = await fetch(`${url}${path}`, {
    ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
    headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) }
  })
  const text = await reply.text()
  return { status: reply.status, body: text === '' ? null as T : JSON.parse(text) }
}

t.test('control routes', async (t) => {
  const { url, close } = await serveTesting({ time: '2026-11-21T02:51:00Z' })
  t.teardown(close)

  t.strictSame(await call(url, '/testing'), { status: 200, body: { data: { now: '2026-11-21T02:51:00.000Z' } } })
  const { body: { data: minted } } = await call<{ data: Minted }>(url, '/testing/tokens', {
    user: 'ann', client: 'shop', roles: ['admin'], scopes: ['read'], ttl: 60, refresh: true
  })
  t.match(minted, { account: 'ann', user_id: String, client_id: String, expires_in: 60, refresh_token: String })
  t.match(await call(url, '/api/v1/auth/tokeninfo', undefined, minted.headers), {
    status: 200, body: { data: { account: 'ann', roles: {}, scopes: ['read'] } }
  })

  t.match(await call(url, '/testing/clock', { advance: 60_000 }), { status: 200, body: { data: { now: '2026-11-21T02:52:00.000Z' } } })
  t.match(await call(url, '/api/v1/user', undefined, minted.headers), { status: 401 }, 'the token has expired')
  t.match(await call(url, '/testing/clock', { set: '2027-01-01T00:00:00+01:00' }), { body: { data: { now: '2026-12-31T23:00:00.000Z' } } })

  t.strictSame(await call(url, '/testing/reset', {}), { status: 204, body: null })
  t.match(await call(url, '/testing'), { body: { data: { now: '2026-11-21T02:51:00.000Z' } } })
  t.match(await call(url, '/api/v1/user', undefined, minted.headers), { status: 401 }, 'the store is empty')

  for (const [path, body] of [
    ['/testing/clock', { set: 'noon' }],
    ['/testing/clock', { advance: 1, set: '2027-01-01T00:00:00Z' }],
    ['/testing/clock', { advance: 1e15 }],
    ['/testing/tokens', { usr: 'ann' }],
    ['/testing/tokens', { roles: { admin: false } }],
    ['/testing/tokens', { user: 'no account' }]
  ] as const) {
    t.match(await call(url, path, body), { status: 400, body: { code: 'ErrParam' } }, JSON.stringify(body))
  }
})

t.test('the service and the kit without a server have no control routes', async (t) => {
  const kit = await startIdentity({ t })
  for (const [method, url] of [['GET', '/testing'], ['POST', '/testing/tokens'], ['POST', '/testing/clock'], ['POST', '/testing/reset']] as const) {
    t.equal((await kit.inject({ method, url, payload: {} })).statusCode, 404, url)
  }
})

t.test('a port in use is an error, and nothing is left open', async (t) => {
  const { url, close } = await serveTesting()
  t.teardown(close)
  await t.rejects(serveTesting({ port: Number(new URL(url).port) }), { code: 'EADDRINUSE' })
})

t.test('as a process', async (t) => {
  type Child = ChildProcessByStdio<Writable, Readable, Readable>

  function start (args: string[] = []): Child {
    const child = spawn(process.execPath, ['testing/serve.ts', ...args], { stdio: ['pipe', 'pipe', 'pipe'] })
    t.teardown(() => child.kill('SIGKILL'))
    return child
  }

  async function readUrl (child: Child): Promise<string> {
    const [line] = await once(createInterface(child.stdout), 'line')
    return JSON.parse(line).url
  }

  for (const [name, args, end, reason] of [
    ['ends when stdin ends, if asked to', ['--until-stdin-ends'], (child: Child) => child.stdin.end(), 'stdin ended'],
    ['ends on SIGTERM', [], (child: Child) => child.kill('SIGTERM'), 'SIGTERM'],
    ['ends on SIGINT', ['--until-stdin-ends'], (child: Child) => child.kill('SIGINT'), 'SIGINT']
  ] as const) {
    t.test(name, async (t) => {
      const child = start([...args])
      const url = await readUrl(child)
      t.match(await call(url, '/testing'), { status: 200 })
      const exit = once(child, 'exit')
      const said = child.stderr.setEncoding('utf8').toArray()
      end(child)
      t.strictSame(await exit, [0, null])
      t.equal((await said).join(''), `fastify-identity testing: stopped, ${reason}\n`)
      await t.rejects(fetch(url))
    })
  }

  t.test('lives without stdin, as in the background of a script', async (t) => {
    for (const program of [['testing/serve.ts'], ['cli.ts', 'testing']]) {
      const child = spawn(process.execPath, program, { stdio: ['ignore', 'pipe', 'pipe'] })
      t.teardown(() => child.kill('SIGKILL'))
      const [line] = await once(createInterface(child.stdout), 'line')
      // After these requests the end of stdin would have been noticed.
      for (let turn = 0; turn < 20; turn++) t.match(await call(JSON.parse(line).url, '/testing'), { status: 200 })
      child.kill('SIGTERM')
      t.strictSame(await once(child, 'exit'), [0, null])
    }
  })

  t.test('names a wrong argument', async (t) => {
    for (const args of [['--port', 'x'], ['--port', '70000'], ['--prot', '1']]) {
      const child = start(args)
      child.stderr.setEncoding('utf8')
      const [[text], [code]] = await Promise.all([once(child.stderr, 'data'), once(child, 'exit')])
      t.match(text, `--${args[0] === '--prot' ? 'prot' : 'port'}`)
      t.equal(code, 1)
    }
  })
})
