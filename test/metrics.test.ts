import { readdirSync } from 'node:fs'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import t from 'tap'
import { readVersion } from '../lib/version.ts'
import { parseOpenMetrics } from './helpers/openmetrics.ts'
import { runProgram, serviceEnv, startCommand, startProgram } from './helpers/process.ts'

/** Whether this port can be listened on. */
async function isFree (port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
    return true
  } catch {
    return false
  } finally {
    server.close()
  }
}

/** The first of two free ports. */
async function findPorts (): Promise<number> {
  for (;;) {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    server.close()
    await once(server, 'close')
    if (port < 65_535 && await isFree(port) && await isFree(port + 1)) return port
  }
}

t.test('the process serves its metrics and its version, and changes its log level at SIGUSR2', async (t) => {
  const service = startProgram(t, 'server.ts', { env: serviceEnv(t.testdir(), { IDENTITY_METRICS: '127.0.0.1:0' }) })
  const [, url = ''] = await service.seen(/"msg":"Server listening at (http:[^"]+)"/)
  await service.seen(/"version"/)
  t.match(service.log().find(({ version }) => version !== undefined), { level: 30, version: readVersion(), node: process.version, store: 'sqlite', msg: `fastify-identity ${readVersion()}` })
  t.strictSame(await (await fetch(`${url}/health/ready`)).json(), { status: 'up', version: readVersion() })
  t.strictSame(await (await fetch(`${url}/health/live`)).json(), { status: 'up', version: readVersion() })

  for (const path of ['/nowhere', '/bridge/client/count']) await fetch(url + path)
  const metrics = String(service.log().find(({ msg }) => msg === 'metrics')?.url)
  t.not(new URL(metrics).port, new URL(url).port)
  const families = parseOpenMetrics(await (await fetch(metrics)).text())
  const routes = families.get('http_request_duration_seconds')?.samples.map(({ labels }) => labels.route)
  for (const route of ['none', '/bridge/client/count', '/api/v1/client/count', '/health/ready']) t.ok(routes?.includes(route), route)
  t.equal((await fetch(`${url}/metrics`)).status, 404, 'not where callers are')

  service.child.kill('SIGUSR2')
  await service.seen(/"msg":"SIGUSR2: the log level is debug"/)
  service.child.kill('SIGUSR2')
  await service.seen(/"msg":"SIGUSR2: the log level is info"/)
  service.child.kill('SIGTERM')
  t.equal(await service.ended, 0)
})

t.test('each worker serves its own metrics, from the given port on, and gets the signal', async (t) => {
  const port = await findPorts()
  const service = startProgram(t, 'server.ts', { args: ['--workers', '2'], env: serviceEnv(t.testdir(), { IDENTITY_METRICS: `127.0.0.1:${port}` }) })
  await service.seen(/(?:"worker listening"[^]*){2}/)
  for (const address of [port, port + 1]) t.ok(parseOpenMetrics(await (await fetch(`http://127.0.0.1:${address}/metrics`)).text()).has('identity_build_info'))
  service.child.kill('SIGUSR2')
  await service.seen(/(?:"SIGUSR2: the log level is debug"[^]*){3}/)
  service.child.kill('SIGTERM')
  t.equal(await service.ended, 0)
  const none = await runProgram(t, 'server.ts', { args: ['--workers', '2'], env: serviceEnv(t.testdir(), { IDENTITY_METRICS: '127.0.0.1:65535' }) })
  t.match(none, { code: 1, stderr: 'fastify-identity: IDENTITY_METRICS: must leave a port up to 65535 for each worker\n' })
  const dir = t.testdir()
  const same = await runProgram(t, 'server.ts', { env: serviceEnv(dir, { HOST: '127.0.0.1', PORT: String(port), IDENTITY_METRICS: `127.0.0.1:${port}` }) })
  t.match(same, { code: 1, stderr: 'fastify-identity: IDENTITY_METRICS: must have another port than PORT\n' })
  t.strictSame(readdirSync(dir), [], 'nothing is made')
})

t.test('without metrics no process loads the library', async (t) => {
  for (const [metrics, loaded] of [['', false], ['127.0.0.1:0', true]] as const) {
    const script = `
      import { createRequire } from 'node:module'
      const { startIdentity } = await import('./testing/index.ts')
      const kit = await startIdentity(${metrics === '' ? '' : `{ metrics: '${metrics}' }`})
      await kit.inject('/health/ready')
      console.log(Object.keys(createRequire(import.meta.url).cache).some((path) => path.includes('prom-client')))
      await kit.close()`
    const program = startCommand(t, process.execPath, { args: ['--input-type=module', '--eval', script], env: {} })
    t.equal(await program.ended, 0, program.stderr())
    t.equal(program.stdout(), `${loaded}\n`)
  }
})
