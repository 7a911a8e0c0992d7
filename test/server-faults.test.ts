import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, existsSync, openSync, readFileSync, readdirSync, statSync, writeSync } from 'node:fs'
import { Agent, get, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { findFreePort } from './helpers/port.ts'
import { serviceEnv, startProgram } from './helpers/process.ts'
import { call, within } from './helpers/upstream.ts'
import { waitUntil } from './helpers/wait.ts'

/** Resolves when the service answers. */
async function answer (url: string): Promise<void> {
  await waitUntil('an answer', async () => await call(`${url}/health/ready`).then(({ status }) => status === 200, () => false))
}

t.test('a service goes on while its log disk is full, and shuts down', { skip: !existsSync('/dev/full') && 'there is no /dev/full' }, async (t) => {
  const port = await findFreePort()
  const url = `http://127.0.0.1:${port}`
  const full = openSync('/dev/full', 'w')
  const service = startProgram(t, 'server.ts', { env: serviceEnv(t.testdir(), { PORT: String(port) }), stdio: ['ignore', full, 'pipe'] })
  closeSync(full)
  await answer(url)
  for (let i = 0; i < 20; i++) t.equal((await call(`${url}/health/ready`)).status, 200)
  service.child.kill('SIGTERM')
  t.equal(await within('the end', service.ended), 0)
})

t.test('a service goes on while its log pipe is full, and shuts down', { skip: process.platform === 'win32' && 'there are no named pipes' }, async (t) => {
  const pipe = join(t.testdir(), 'pipe')
  await promisify(execFile)('mkfifo', [pipe])
  const fd = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK)
  t.teardown(() => closeSync(fd))
  const port = await findFreePort()
  const url = `http://127.0.0.1:${port}`
  const service = startProgram(t, 'server.ts', { env: serviceEnv(t.testdir(), { PORT: String(port), IDENTITY_OIDC: 'off' }), stdio: ['ignore', fd, 'pipe'] })
  await answer(url)
  // The pipe has no reader, and buffers 64 KiB of these lines.
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  const statuses = new Set<number | undefined>()
  for (let i = 0; i < 300; i++) {
    const [response] = await within('an answer', once(get(`${url}/${'x'.repeat(250)}`, { agent }), 'response')) as [IncomingMessage]
    statuses.add(response.resume().statusCode)
    await once(response, 'end')
  }
  t.strictSame([...statuses], [404])
  t.throws(() => writeSync(fd, 'x'.repeat(4096)), { code: 'EAGAIN' }, 'the pipe is full')
  service.child.kill('SIGTERM')
  t.equal(await within('the end', service.ended), 0)
})

t.test('an incomplete request does not hold up the shutdown, nor make it a failure', async (t) => {
  const service = startProgram(t, 'server.ts', { env: serviceEnv(t.testdir(), { IDENTITY_SHUTDOWN_TIMEOUT: '60000' }) })
  const [, url = ''] = await service.seen(/"msg":"Server listening at (http:[^"]+)"/)
  const client = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {})
  await within('a connection', once(client, 'connect'))
  client.write('POST /api/v1/auth/token HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\n')
  // Once a later request is answered, the head of this one has been read.
  await call(`${url}/health/ready`)
  service.child.kill('SIGTERM')
  t.equal(await within('the end', service.ended), 0)
  t.match(service.log().find(({ connections }) => connections !== undefined), { connections: 1, msg: /incomplete requests/ })
  t.match(service.log().at(-1), { msg: 'closed' })
})

t.test('with stdout and stderr in files neither contains a secret, and the printed call works', async (t) => {
  const dir = t.testdir({ "the owner's": {} })
  const data = join(dir, "the owner's")
  const [out, err] = [join(dir, 'out'), join(dir, 'err')]
  const descriptors = [openSync(out, 'w'), openSync(err, 'w')]
  startProgram(t, 'server.ts', { env: serviceEnv(data), stdio: ['ignore', ...descriptors] })
  for (const descriptor of descriptors) closeSync(descriptor)
  const printed = () => readFileSync(out, 'utf8') + readFileSync(err, 'utf8')
  const [, command = ''] = await waitUntil('the call', () => /^ {2}(curl .*)$/m.exec(printed()))
  const { stdout } = await promisify(execFile)('sh', ['-c', command])
  t.match(JSON.parse(stdout), { data: { account: 'admin' } })

  const kept = join(data, 'first-admin.txt')
  t.ok(printed().includes(kept))
  const [, password = ''] = /^ {2}password {2}(\S{24})$/m.exec(readFileSync(kept, 'utf8')) ?? []
  const token = readFileSync(join(data, 'first-token'), 'utf8').trim()
  t.ok(readFileSync(kept, 'utf8').includes(token))
  for (const [name, secret] of Object.entries({ password, token })) {
    t.ok(secret.length >= 24, name)
    t.notOk(printed().includes(secret), `the ${name} is in a log`)
  }
  for (const file of readdirSync(data).filter((name) => name.startsWith('first-'))) t.equal(statSync(join(data, file)).mode & 0o777, 0o600, file)
})
