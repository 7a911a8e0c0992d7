/**
 * The event loop of the service and the latency of tokeninfo while links name documents of a hostile host, against the same with links that name stored
 * documents, and without links. The service and the hostile host have a process each. With `--hosts N` the hostile host has N ports, each of which is
 * a host to the service and has its own limit of 30 fetches a minute: `node bench/documents.ts [--rounds N] [--seconds N] [--rate N] [--hosts N]`.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import { createOutbound } from '../lib/outbound/fetcher.ts'
import { startIdentity } from '../testing/index.ts'
import { createApp } from '../testing/kit.ts'
import { spread, toQuantile } from './stats.ts'

const LOADS = ['none', 'stored', 'hostile'] as const

const pem = readFileSync(new URL('../test/fixtures/tls-hooks.pem', import.meta.url), 'utf8')

/** What the hostile host does by the first part of the path. The name decides the rest. */
const KINDS: [name: string, path: string][] = [
  ['hooks.example.com', 'slow'], ['hooks.example.com', 'huge'], ['hooks.example.com', 'bomb'], ['hooks.example.com', 'redirect'], ['hooks.example.com', 'deep'],
  ['inside.example.com', 'good'], ['localhost', 'keys'], ['other.example.com', 'good']
]

const write = (client_id: string, rest: object = {}) => JSON.stringify({ client_id, client_name: 'An agent', redirect_uris: [new URL('/cb', client_id).href], ...rest })

/** The process of the hostile host. */
async function runHost (hosts: number): Promise<void> {
  const bomb = gzipSync(Buffer.alloc(10_000_000))
  const chunk = Buffer.alloc(64 * 1024, ' ')
  const ports = await Promise.all(Array.from({ length: hosts }, async () => {
    const server = createServer({ key: pem, cert: pem }, ({ url = '', headers: { host = '' } }, response) => {
      const json = { 'content-type': 'application/json' }
      const [, kind] = url.split('/')
      if (kind === 'slow') response.writeHead(200, json).write('{')
      else if (kind === 'huge') {
        let bytes = 0
        const more = () => { while (bytes < 10_000_000 && !response.destroyed && response.write(chunk)) bytes += chunk.length }
        response.writeHead(200, json).on('drain', more)
        more()
      } else if (kind === 'bomb') response.writeHead(200, { ...json, 'content-encoding': 'gzip' }).end(bomb)
      else if (kind === 'redirect') response.writeHead(302, { location: `https://${host}/good` }).end()
      else if (kind === 'deep') response.writeHead(200, json).end('['.repeat(2_500) + ']'.repeat(2_500))
      else if (kind === 'keys') response.writeHead(200, { ...json, connection: 'close' }).end(write(`https://${host}${url}`, { token_endpoint_auth_method: 'private_key_jwt', jwks_uri: `https://${host}/more` }))
      else response.writeHead(200, json).end(write(`https://${host}${url}`))
    }).listen(0, '127.0.0.1')
    server.on('tlsClientError', () => {})
    await once(server, 'listening')
    return (server.address() as AddressInfo).port
  }))
  process.send?.(ports)
  await once(process, 'disconnect')
  process.exit()
}

/** Every name leads to the hostile host, except one that leads inside, and one whose second answer does. */
function createResolver () {
  let count = 0
  return async (hostname: string) => {
    const isInside = hostname === 'inside.example.com' || (hostname === 'localhost' && count++ % 2 === 1)
    return [{ address: isInside ? '10.0.0.1' : '127.0.0.1', family: 4 }]
  }
}

/** The 99th percentiles since the message before: the delay of the loop, and the processor time of its thread between two timers. */
interface Loop { loop: number, turn: number }

/** The process of the service. It answers each message with what its loop did since the one before. */
async function runService (): Promise<void> {
  setDefaultCACertificates([...getCACertificates('default'), pem.slice(pem.indexOf('-----BEGIN CERT'))])
  const directory = mkdtempSync(join(tmpdir(), 'fastify-identity-documents-'))
  const outbound = createOutbound({ allow: ['127.0.0.1'], resolve: createResolver() })
  const kit = await startIdentity({
    app: createApp({ trustProxy: true }), database: `sqlite:${directory}/identity.db`, rateLimit: false, oidc: { documents: { hosts: '*' } }, readOutbound: () => outbound.read
  })
  const ticking = setInterval(() => kit.clock.advance(1000), 1000)
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  let turns: number[] = []
  let before = process.threadCpuUsage()
  const timing = setInterval(() => {
    const { user, system } = process.threadCpuUsage(before)
    before = process.threadCpuUsage()
    turns.push((user + system) / 1000)
  }, 1)
  process.on('message', () => {
    process.send?.({ loop: delay.percentile(99) / 1e6, turn: toQuantile(turns, 0.99) } satisfies Loop)
    delay.reset()
    turns = []
  })
  const { url } = await kit.listen()
  process.send?.({ url, headers: (await kit.mint()).headers })
  await once(process, 'disconnect')
  clearInterval(ticking)
  clearInterval(timing)
  await kit.close()
  await outbound.close()
  rmSync(directory, { recursive: true })
}

const agent = new Agent({ keepAlive: true })

async function send (url: string, headers: Record<string, string>): Promise<number> {
  const sent = request(url, { headers, agent })
  sent.end()
  const [response] = await once(sent, 'response')
  response.resume()
  await once(response, 'end')
  return response.statusCode as number
}

/** Opens links at a rate until it is stopped. Each comes from an address of its own. */
function open (origin: string, toClientId: (index: number) => string, rate: number) {
  const statuses: Record<number, number> = {}
  let index = 0
  const timer = setInterval(() => {
    const client_id = toClientId(index)
    const query = new URLSearchParams({ client_id, redirect_uri: new URL('/cb', client_id).href, response_type: 'code', scope: 'openid', code_challenge: 'x'.repeat(43), code_challenge_method: 'S256' })
    const address = `198.51.${(index >> 8) % 256}.${index++ % 256}`
    send(`${origin}/api/v1/auth/authorize?${query}`, { accept: 'text/html', 'x-forwarded-for': address }).then((status) => { statuses[status] = (statuses[status] ?? 0) + 1 }, () => {})
  }, 1000 / rate)
  return { statuses, stop: () => clearInterval(timer) }
}

/** The 99th percentile of the latency of tokeninfo, in milliseconds. */
async function measure (origin: string, headers: Record<string, string>, seconds: number): Promise<number> {
  const times: number[] = []
  const until = performance.now() + seconds * 1000
  while (performance.now() < until) {
    const start = performance.now()
    const status = await send(`${origin}/api/v1/auth/tokeninfo`, headers)
    if (status !== 200) throw new Error(`tokeninfo answered ${status}`)
    times.push(performance.now() - start)
    await sleep(2)
  }
  return toQuantile(times, 0.99)
}

async function main (): Promise<void> {
  const { values } = parseArgs({ options: { rounds: { type: 'string', default: '5' }, seconds: { type: 'string', default: '5' }, rate: { type: 'string', default: '20' }, hosts: { type: 'string', default: '1' } } })
  const start = (...args: string[]): ChildProcess => fork(fileURLToPath(import.meta.url), args)
  const host = start('host', values.hosts)
  const [ports] = await once(host, 'message') as [number[]]
  const service = start('service')
  const [{ url, headers }] = await once(service, 'message')
  let made = 0
  const toHostile = (index: number) => {
    const [name, kind] = KINDS[index % KINDS.length]!
    return `https://${name}:${ports[made % ports.length]}/${kind}/${made++}`
  }
  const toStored = (index: number) => `https://hooks.example.com:${ports[index % ports.length]}/good/stored`
  const found = LOADS.map((load) => ({ load, loop: [] as number[], turn: [] as number[], tokeninfo: [] as number[], statuses: [] as object[] }))
  for (let round = 0; round <= Number(values.rounds); round++) {
    for (const row of found) {
      const { load } = row
      const links = load === 'none' ? undefined : open(url, load === 'stored' ? toStored : toHostile, Number(values.rate))
      // The first round stores the documents that are stored, and warms up.
      await sleep(round === 0 ? 3_000 : 500)
      service.send('begin')
      await once(service, 'message')
      const tokeninfo = await measure(url, headers, Number(values.seconds))
      service.send('end')
      const [{ loop, turn }] = await once(service, 'message') as [Loop]
      links?.stop()
      // The last calls of a slow host end.
      await sleep(load === 'hostile' ? 3_000 : 500)
      if (round === 0) continue
      row.loop.push(loop)
      row.turn.push(turn)
      row.tokeninfo.push(tokeninfo)
      row.statuses.push({ ...links?.statuses })
    }
  }
  for (const child of [host, service]) child.disconnect()
  agent.destroy()
  const [none, stored, hostile] = found
  const toRatios = (below: typeof hostile) => Object.fromEntries((['loop', 'turn', 'tokeninfo'] as const).map((what) => [what, spread(hostile![what].map((value, round) => value / below![what][round]!))]))
  console.log(JSON.stringify({ rate: Number(values.rate), hosts: Number(values.hosts), hostile_to_stored: toRatios(stored), hostile_to_none: toRatios(none), found }, null, 2))
}

const [role, hosts] = process.argv.slice(2)
if (role === 'service') await runService()
else if (role === 'host') await runHost(Number(hosts))
else await main()
