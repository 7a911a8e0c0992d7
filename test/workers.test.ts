import { once } from 'node:events'
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { readConfig } from '../config.ts'
import { openServices } from '../lib/identity.ts'
import { reuseMongoDatabase } from './helpers/mongo-database.ts'
import { MONGODB_URL } from './helpers/mongodb.ts'
import { runProgram, serviceEnv, startProgram, type Started } from './helpers/process.ts'
import { call, readAll, within } from './helpers/upstream.ts'
import { waitUntil } from './helpers/wait.ts'

const TWO = ['--workers', '2']

/** Resolves to the URL when this many workers have started to listen. */
async function listen (service: Started, count: number): Promise<string> {
  await service.seen(new RegExp(`(?:"worker listening"[^]*){${count}}`))
  const [, url = ''] = await service.seen(/"msg":"Server listening at (http:[^"]+)"/)
  return url
}

/** The pids of all workers so far, in the order of their start. */
const workersOf = (service: Started) => service.log().filter(({ msg }) => msg === 'worker listening').map(({ workerPid }) => Number(workerPid))

async function gone (pids: number[]): Promise<void> {
  const runs = (pid: number) => {
    try {
      return process.kill(pid, 0)
    } catch {
      return false
    }
  }
  await waitUntil(`end of ${pids.join()}`, () => !pids.some(runs))
}

/** A keep-alive connection, and the worker at its other end. */
interface Line {
  pid: number
  ask (path: string, options?: { method?: string, headers?: Record<string, string>, body?: string }): Promise<{ status: number, text: string }>
}

/** Opens connections that reach both workers. */
async function openLines (t: Test, service: Started, url: string, name: string): Promise<Line[]> {
  const lines = await Promise.all(Array.from({ length: 6 }, async (_none, index) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    t.teardown(() => agent.destroy())
    const ask: Line['ask'] = async (path, { method = 'GET', headers = {}, body } = {}) => {
      const request = httpRequest(url + path, { method, agent, headers })
      request.end(body)
      const [response] = await within(`answer to ${path}`, once(request, 'response')) as [IncomingMessage]
      return await readAll(response)
    }
    const id = `${name}-${index}`
    t.equal((await ask('/health/live', { headers: { 'x-request-id': id } })).status, 200)
    // Health checks are not logged at this level; an unknown route is.
    await ask('/nowhere', { headers: { 'x-request-id': id } })
    const [line = ''] = await service.seen(new RegExp(`^.*"reqId":"${id}".*$`, 'm'))
    return { ask, pid: Number(JSON.parse(line).pid) }
  }))
  t.equal(new Set(lines.map(({ pid }) => pid)).size, 2, 'connections reach both workers')
  return lines
}

async function checkWorkers (t: Test, env: Record<string, string>): Promise<void> {
  const services = await openServices(readConfig(env).services)
  t.teardown(async () => await services.close())
  const { user_id, client_id, access_token } = await services.bootstrap()
  const mint = async () => (await services.tokens.mint({ user_id, client_id })).access_token
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
  const admin = bearer(access_token)

  const service = startProgram(t, 'server.ts', { args: TWO, env: { ...env, IDENTITY_RATE_LIMIT: '4', IDENTITY_SIGN_IN_LIMIT: '1' } })
  const url = await listen(service, 2)
  const lines = await openLines(t, service, url, 'first')
  const tokeninfo = async (token: string) => await Promise.all(lines.map(async ({ ask }) => (await ask('/api/v1/auth/tokeninfo', { headers: bearer(token) })).status))

  await t.test('a token that one worker revokes is refused by all', async (t) => {
    const revokers = workersOf(service).map((pid) => lines.find((line) => line.pid === pid)!)
    for (const revoker of [...revokers, ...revokers]) {
      const token = await mint()
      // Twice, so that every worker has it cached.
      for (let i = 0; i < 2; i++) t.strictSame(new Set(await tokeninfo(token)), new Set([200]))
      t.equal((await revoker.ask('/api/v1/auth/logout', { method: 'POST', headers: bearer(token) })).status, 204)
      t.strictSame(new Set(await tokeninfo(token)), new Set([401]), `revoked through ${revoker.pid}`)
    }
  })

  const patch = {
    method: 'PATCH',
    headers: { ...admin, 'content-type': 'application/json' },
    // Counted, then refused for its lone surrogate.
    body: JSON.stringify({ data: { password: '\ud800' } })
  }
  const guess = { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: 'user_code=BBBB-BBBB' }

  await t.test('a limit counts the requests of all workers', async (t) => {
    const turns = [...lines].sort((one, other) => one.pid - other.pid)
    const inTurn = async (path: string, options: Parameters<Line['ask']>[1], times: number) => {
      const statuses: number[] = []
      for (let i = 0; i < times; i++) statuses.push((await turns[i * 3 % 7 % turns.length]!.ask(path, options)).status)
      return statuses
    }
    t.strictSame(await inTurn('/api/v1/user', patch, 7), [400, 400, 400, 400, 429, 429, 429])
    const guesses = await inTurn('/api/v1/auth/device', guess, 13)
    t.strictSame(guesses.map((status) => status === 429), [...Array(10).fill(false), true, true, true])
  })

  await t.test('a killed worker is replaced, and the counts remain', async (t) => {
    const [killed = 0] = workersOf(service)
    process.kill(killed, 'SIGKILL')
    await service.seen(/worker exited, a new one starts/)
    t.match(service.log().find(({ msg }) => msg.startsWith('worker exited')), { level: 50, workerPid: killed, signal: 'SIGKILL' })
    t.equal(await listen(service, 3), url, 'at the same address')
    const later = await openLines(t, service, url, 'later')
    t.notOk(later.some(({ pid }) => pid === killed))
    for (const { ask } of later) t.equal((await ask('/api/v1/user', patch)).status, 429)
  })

  await t.test('SIGTERM shuts down all workers', async (t) => {
    service.child.kill('SIGTERM')
    t.equal(await service.ended, 0)
    await gone(workersOf(service))
    t.equal(service.log().filter(({ msg }) => msg === 'closed').length, 3)
    t.match(service.log().at(-1), { pid: service.pid, msg: 'closed' })
    t.equal(service.stderr(), '')
  })
}

t.test('on SQLite', async (t) => await checkWorkers(t, serviceEnv(t.testdir())))

t.test('on MongoDB', { skip: MONGODB_URL === undefined && 'MONGODB_URL is not set' }, async (t) => {
  await checkWorkers(t, serviceEnv(t.testdir(), { DATABASE_URL: reuseMongoDatabase(t, MONGODB_URL!), IDENTITY_DATA_DIR: join(t.testdir(), 'data') }))
})

t.test('the first start is printed once, and a second signal aborts requests in flight', async (t) => {
  const service = startProgram(t, 'server.ts', { env: serviceEnv(t.testdir(), { IDENTITY_WORKERS: '2', IDENTITY_SHUTDOWN_TIMEOUT: '60000' }) })
  const url = await listen(service, 2)
  const [, token = ''] = await service.seen(/Authorization: Bearer ([\w-]{43})/)
  const authorization = `Bearer ${token}`
  t.equal((await call(`${url}/api/v1/auth/tokeninfo`, { headers: { authorization } })).status, 200)
  const [first = 0] = workersOf(service)
  process.kill(first, 'SIGKILL')
  await listen(service, 3)
  t.equal(service.stdout().match(/Ready at/g)?.length, 1)

  const headers = { authorization, 'content-type': 'application/json', 'content-length': 100, expect: '100-continue' }
  const slow = httpRequest(`${url}/api/v1/user`, { method: 'POST', agent: false, headers }).on('error', () => {})
  slow.flushHeaders()
  await within('100 Continue', once(slow, 'continue'))
  service.child.kill('SIGTERM')
  await service.seen(/SIGTERM: closing/)
  const again = setInterval(() => service.child.kill('SIGTERM'), 50)
  t.teardown(() => clearInterval(again))
  t.equal(await service.ended, 1)
  await gone(workersOf(service))
  t.match(service.log().filter(({ pid }) => pid === service.pid).at(-1), { msg: 'SIGTERM again: requests in flight are aborted' })
})

t.test('a start-up error is printed once', async (t) => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  t.teardown(() => taken.close())
  const { port } = taken.address() as AddressInfo
  const dir = t.testdir({ sealed: {}, empty: {} })
  const first = serviceEnv(join(dir, 'sealed'))
  await (await openServices(readConfig(first).services)).close()
  for (const [env, message] of [
    [serviceEnv(join(dir, 'empty'), { PORT: String(port) }), `PORT: address already in use: 127.0.0.1:${port}`],
    [{ ...first, IDENTITY_SECRET_KEY: '11'.repeat(32) }, 'the secret key is not the one this database was sealed with'],
    [serviceEnv(join(dir, 'empty'), { DATABASE_URL: 'sqlite::memory:' }), '--workers: must be 1 with sqlite::memory:, as each process would have its own database']
  ] as const) {
    const { code, stdout, stderr } = await runProgram(t, 'server.ts', { args: TWO, env })
    t.strictSame({ code, stderr }, { code: 1, stderr: `fastify-identity: ${message}\n` })
    t.notOk(stdout.split('\n').some((line) => line !== '' && !line.includes('a new, empty database was made')), 'and nothing else')
  }
})

t.test('the serve command has workers too; they end when the primary process is killed', async (t) => {
  const service = startProgram(t, 'cli.ts', { args: ['serve', ...TWO], env: serviceEnv(t.testdir()) })
  const url = await listen(service, 2)
  t.equal((await call(`${url}/health/ready`)).status, 200)
  service.child.kill('SIGKILL')
  // stdout ends with the last process that has it open.
  t.equal(await service.ended, 'SIGKILL')
  await gone(workersOf(service))
  t.equal(service.log().filter(({ msg }) => msg === 'the primary process is gone').length, 2)
})
