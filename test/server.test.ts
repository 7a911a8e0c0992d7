import { once } from 'node:events'
import { closeSync, openSync, readFileSync, readdirSync } from 'node:fs'
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { readConfig } from '../config.ts'
import { openServices } from '../lib/identity.ts'
import { runProgram, serviceEnv, startCommand, startProgram, type Started } from './helpers/process.ts'
import { call, readAll, within } from './helpers/upstream.ts'
import { waitUntil } from './helpers/wait.ts'

const FIRST_CALL = /^ {2}curl -H 'Authorization: Bearer ([\w-]{43})' (http:\/\/127\.0\.0\.1:\d+)\/api\/v1\/auth\/tokeninfo$/m
const LISTENS = /"msg":"Server listening at (http:[^"]+)"/

/** Reads the text of the first start. */
async function readFirst (service: Started): Promise<{ token: string, url: string, password: string, bearer: { authorization: string } }> {
  const [, token = '', url = ''] = await service.seen(FIRST_CALL)
  const [, password = ''] = await service.seen(/^ {2}password {2}(\S{24})$/m)
  return { token, url, password, bearer: { authorization: `Bearer ${token}` } }
}

/** Starts a request that waits for its body. Resolves when the service has read its head. */
async function beginCreateUser (url: string, bearer: Record<string, string>, agent?: Agent) {
  const body = JSON.stringify({ data: { account: 'late', password: 'late' } })
  const request = httpRequest(`${url}/api/v1/user`, {
    method: 'POST',
    agent: agent ?? false,
    headers: { ...bearer, 'content-type': 'application/json', 'content-length': body.length, expect: '100-continue' }
  })
  request.on('error', () => {})
  request.flushHeaders()
  await within('100 Continue', once(request, 'continue'))
  return {
    request,
    async finish () {
      request.end(body)
      const [response] = await within('the response', once(request, 'response')) as [IncomingMessage]
      return { connection: response.headers.connection, ...await readAll(response) }
    }
  }
}

/** Resolves when the port refuses connections. */
async function refusal (port: number): Promise<void> {
  await waitUntil(`port ${port} refuses connections`, async () => {
    const socket = connect(port, '127.0.0.1')
    const code = await new Promise<string>((resolve) => {
      socket.once('connect', () => resolve('')).once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''))
    })
    socket.destroy()
    return code === 'ECONNREFUSED'
  })
}

t.test('the first start on an empty store: the printed call works, no secret is logged, SIGTERM lets requests finish', async (t) => {
  const service = startProgram(t, 'server.ts', { env: serviceEnv(t.testdir()) })
  const { token, url, password, bearer } = await readFirst(service)
  const logged = () => JSON.stringify(service.log())

  const info = await call(`${url}/api/v1/auth/tokeninfo`, { headers: bearer })
  t.equal(info.status, 200)
  t.match(JSON.parse(info.text), { data: { account: 'admin', roles: { admin: true } } })

  await t.test('it serves the bridge, health checks and OpenAPI', async (t) => {
    const list = await call(`${url}/bridge/client/list?access_token=${token}&limit=1`, { headers: bearer })
    t.equal(list.status, 400, 'an unknown parameter is refused through the bridge too')
    const csv = await call(`${url}/bridge/client/list?format=csv`, { headers: bearer })
    t.equal(csv.status, 200)
    t.match(csv.text, /^\ufeffclientId,.*\n.*,Command line,\n.*,bootstrap,\n$/)
    t.equal((await call(`${url}/health/ready`)).status, 200)
    const { paths } = JSON.parse((await call(`${url}/openapi.json`)).text)
    for (const path of ['/api/v1/client/list', '/bridge/client/list', '/health/live']) t.ok(paths[path]?.get, path)
    t.equal((await call(`${url}/docs/`)).status, 200)
  })

  await t.test('a second service on the same port reports it, and creates no admin', async (t) => {
    const dir = t.testdir()
    const second = await runProgram(t, 'server.ts', { env: serviceEnv(dir, { PORT: new URL(url).port }) })
    t.equal(second.code, 1)
    t.strictSame(readdirSync(dir), [], 'and leaves nothing behind')
    t.match(second.stderr, /^fastify-identity: PORT: address already in use: 127\.0\.0\.1:\d+\n$/)
    t.notMatch(second.stdout + second.stderr, /password/)
  })

  const agent = new Agent({ keepAlive: true })
  t.teardown(() => agent.destroy())
  const running = await beginCreateUser(url, bearer, agent)
  const unused = connect(Number(new URL(url).port), '127.0.0.1')
  unused.on('error', () => {})
  await within('a connection', once(unused, 'connect'))
  service.child.kill('SIGTERM')
  // At Ctrl-C both npm and the terminal send a signal, in any order. The echo does not count as a second one.
  service.child.kill('SIGINT')
  await service.seen(/SIG(TERM|INT): closing/)
  await within('refusal of new connections', refusal(Number(new URL(url).port)))
  t.match(await running.finish(), { status: 200, connection: 'close' }, 'the request in flight finishes')
  t.equal(await service.ended, 0)

  t.match(service.log().at(-1), { msg: 'closed' })
  const lines = service.log().filter(({ msg }) => msg === 'request completed')
  t.match(lines[0], { reqId: /^[\w-]{36}$/, req: { method: 'GET', path: '/api/v1/auth/tokeninfo', remoteAddress: '127.0.0.1' }, res: { statusCode: 200 } })
  t.ok(lines.length >= 5)
  for (const secret of [token, password]) t.notOk(logged().includes(secret))
  t.equal(service.stdout().match(/^.*token {5}.*$/gm)?.length, 1, 'the token is printed once')
  t.equal(service.stderr(), '')
})

t.test('a later start prints how to get a token, and no secret', async (t) => {
  const dir = t.testdir()
  const env = serviceEnv(dir)
  const { code, stdout } = await runProgram(t, 'cli.ts', { args: ['bootstrap', '--json'], env })
  t.equal(code, 0)
  const first = JSON.parse(stdout)

  const service = startProgram(t, 'server.ts', { env })
  const [, command = ''] = await service.seen(/^ {2}npm run -s cli -- (token create .*)$/m)
  t.equal(command, `token create --account admin --client ${first.clientId}`)
  const [, url] = await service.seen(LISTENS)
  for (const secret of [first.password, first.clientSecret, first.access_token]) t.notOk(service.stdout().includes(secret))

  await t.test('the command works while the service runs, which accepts the token at once', async (t) => {
    const made = await runProgram(t, 'cli.ts', { args: [...command.split(' '), '--json'], env })
    t.equal(made.stderr, '')
    const { access_token } = JSON.parse(made.stdout)
    t.equal((await call(`${url}/api/v1/auth/tokeninfo`, { headers: { authorization: `Bearer ${access_token}` } })).status, 200)
  })

  await t.test('a second signal aborts requests in flight', async (t) => {
    const running = await beginCreateUser(url ?? '', { authorization: `Bearer ${first.access_token}` })
    service.child.kill('SIGTERM')
    await service.seen(/SIGTERM: closing/)
    const again = setInterval(() => service.child.kill('SIGTERM'), 50)
    t.teardown(() => clearInterval(again))
    t.equal(await service.ended, 1)
    t.match(service.log().at(-1), { msg: 'SIGTERM again: requests in flight are aborted' })
    running.request.destroy()
  })
})

t.test('during the shutdown delay only readiness fails, and a second signal ends it at once', async (t) => {
  const service = startProgram(t, 'server.ts', { env: serviceEnv(t.testdir(), { IDENTITY_SHUTDOWN_DELAY: '600000' }) })
  const { url, bearer } = await readFirst(service)
  t.equal((await call(`${url}/health/ready`)).status, 200)
  service.child.kill('SIGUSR1')
  await service.seen(/SIGUSR1 is ignored/)
  service.child.kill('SIGHUP')
  await service.seen(/SIGHUP: closing/)
  t.equal((await call(`${url}/health/ready`)).status, 503)
  t.equal((await call(`${url}/health/live`)).status, 200)
  t.equal((await call(`${url}/api/v1/auth/tokeninfo`, { headers: bearer })).status, 200, 'on a new connection')
  const again = setInterval(() => service.child.kill('SIGTERM'), 50)
  t.teardown(() => clearInterval(again))
  t.equal(await service.ended, 1)
  t.notMatch(service.stderr(), /Debugger/)
})

t.test('after the shutdown delay the service closes, for every signal', async (t) => {
  for (const signal of ['SIGINT', 'SIGQUIT'] as const) {
    const service = startProgram(t, 'server.ts', { env: serviceEnv(t.testdir(), { IDENTITY_SHUTDOWN_DELAY: '100' }) })
    await readFirst(service)
    service.child.kill(signal)
    t.equal(await service.ended, 0, signal)
    t.match(service.log().find(({ msg }) => msg === `${signal}: closing`), {})
    t.match(service.log().at(-1), { msg: 'closed' })
  }
})

t.test('requests past the limit are aborted; a log file contains no secrets', async (t) => {
  const dir = t.testdir()
  const file = join(dir, 'log')
  const descriptor = openSync(file, 'w')
  const service = startProgram(t, 'server.ts', { env: serviceEnv(dir, { IDENTITY_SHUTDOWN_TIMEOUT: '100' }), stdio: ['ignore', descriptor, 'pipe'] })
  closeSync(descriptor)
  const { token, url, password, bearer } = await readFirst(service)
  const { request } = await beginCreateUser(url, bearer)
  service.child.kill('SIGTERM')
  await within('the abort', once(request, 'close').catch(() => {}))
  t.equal(await service.ended, 0)
  const log = readFileSync(file, 'utf8')
  t.match(log, /"connections":1,"msg":"connections aborted: /)
  t.match(log, /"msg":"closed"/)
  t.notOk(log.includes(token) || log.includes(password))
})

t.test('a signal before the first admin exists shuts down gracefully', async (t) => {
  const service = startProgram(t, 'server.ts', { env: serviceEnv(t.testdir(), { IDENTITY_BCRYPT_COST: '14' }) })
  await service.seen(LISTENS)
  service.child.kill('SIGTERM')
  t.equal(await service.ended, 0)
  t.equal(service.stderr(), '')
})

t.test('a service goes on when stdout and stderr are closed', async (t) => {
  const env = serviceEnv(t.testdir(), { IDENTITY_BCRYPT_COST: '10' })
  const service = startProgram(t, 'server.ts', { env })
  const [, url] = await service.seen(LISTENS)
  service.child.stdout?.destroy()
  service.child.stderr?.destroy()
  const { users, close } = await openServices(readConfig(env).services)
  t.teardown(close)
  // The welcome text is written after the first admin exists.
  await within('the first admin', (async () => { while (await users.count() === 0); })())
  const statuses = new Set<number>()
  for (let i = 0; i < 20; i++) statuses.add((await call(`${url}/health/ready`)).status)
  t.strictSame([...statuses], [200])
  service.child.kill('SIGTERM')
  t.strictSame(await within('the end', once(service.child, 'exit')), [0, null])
})

t.test('npm start passes signals on, so that no process is left behind', async (t) => {
  const service = startCommand(t, 'npm', { args: ['start'], env: serviceEnv(t.testdir()) })
  const { url, bearer } = await readFirst(service)
  // npm is killed when the test ends; the service must be, too.
  const pid = Number(service.log()[0]?.pid)
  t.ok(pid > 1)
  t.teardown(() => {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It has exited, as it should.
    }
  })
  t.equal((await call(`${url}/api/v1/auth/tokeninfo`, { headers: bearer })).status, 200)
  service.child.kill('SIGTERM')
  t.equal(await service.ended, 0)
  t.match(service.log().at(-1), { msg: 'closed' })
})

t.test('a wrong environment is reported by name before anything starts', async (t) => {
  const dir = t.testdir()
  const env = serviceEnv(dir, { PORT: 'hunter2', IDENTITY_SECRET_KEY: 'hunter2' })
  const { code, stdout, stderr } = await runProgram(t, 'server.ts', { env })
  t.equal(code, 1)
  t.equal(stdout, '')
  t.strictSame(stderr.trim().split('\n').map((line) => /^fastify-identity: (\w+):/.exec(line)?.[1]), ['PORT', 'IDENTITY_SECRET_KEY'])
  t.notMatch(stderr, /hunter2/)
})

t.test('in production it is not reachable by others without an https issuer', async (t) => {
  const key = Buffer.alloc(32, 1).toString('hex')
  for (const args of [[], ['--workers=2']]) {
    const service = startProgram(t, 'server.ts', {
      args, env: serviceEnv(t.testdir(), { NODE_ENV: 'production', IDENTITY_SECRET_KEY: key, HOST: '0.0.0.0', IDENTITY_ISSUER: 'http://id.example' })
    })
    t.equal(await service.ended, 1)
    t.match(service.stderr(), /^fastify-identity: IDENTITY_ISSUER: must be the https URL/)
    t.equal(service.stdout(), '')
  }
})

t.test('in production it prints only JSON lines, and an uncaught exception ends it', async (t) => {
  const dir = t.testdir({
    key: Buffer.alloc(32, 1).toString('hex'),
    'fail.mjs': "process.once('SIGUSR2', () => { throw new Error('lost mongodb://user:hunter2@host/db') })"
  })
  const service = startProgram(t, 'server.ts', {
    env: serviceEnv(dir, { NODE_ENV: 'production', IDENTITY_CREATE_DATABASE: 'on', IDENTITY_X_Y_Z: 'hunter2', IDENTITY_SECRET_KEY_FILE: join(dir, 'key'), NODE_OPTIONS: `--import=${join(dir, 'fail.mjs')}` })
  })
  const [, url = ''] = await service.seen(LISTENS)
  await service.seen(/IDENTITY_ISSUER is not configured/)
  const warnings = service.log().filter(({ level }) => level === 40).map(({ msg }) => msg)
  for (const warning of [/a new, empty database was made: .*identity\.db/, /^IDENTITY_X_Y_Z: is not a variable of this release/, /key is open to others/, new RegExp(`IDENTITY_ISSUER .*${url}$`)]) {
    t.equal(warnings.filter((text) => warning.test(text)).length, 1, String(warning))
  }
  service.child.kill('SIGUSR2')
  t.equal(await service.ended, 1)
  t.equal(service.log().length, service.stdout().trim().split('\n').length)
  t.match(service.log().find(({ level }) => level === 60), { msg: 'uncaught exception', err: { message: 'lost mongodb://***@host/db' } })
  t.notMatch(service.stdout() + service.stderr(), /hunter2|password/)
})

t.test('an uncaught exception during a shutdown ends the process at once', async (t) => {
  const dir = t.testdir({ 'fail.mjs': "process.once('SIGUSR2', () => { throw new Error('lost') })" })
  const service = startProgram(t, 'server.ts', {
    env: serviceEnv(dir, { IDENTITY_SHUTDOWN_TIMEOUT: '60000', NODE_OPTIONS: `--import=${join(dir, 'fail.mjs')}` })
  })
  const { url, bearer } = await readFirst(service)
  const { request } = await beginCreateUser(url, bearer)
  service.child.kill('SIGTERM')
  await service.seen(/SIGTERM: closing/)
  service.child.kill('SIGUSR2')
  t.equal(await service.ended, 1)
  t.match(service.log().find(({ level }) => level === 60), { msg: 'uncaught exception', err: { message: 'lost' } })
  request.destroy()
})
