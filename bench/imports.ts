/**
 * The latency of sign-ins with a password beside an import, against the same at rest. The service, those who sign in and the sender of the
 * lines have a process each: `node bench/imports.ts [--rounds N] [--seconds N] [--rate N] [--cost N]`.
 */
import { fork, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import identity from '../index.ts'
import { createApp } from '../testing/kit.ts'
import { createMint } from '../testing/mint.ts'
import { SECRET_KEY } from './seed.ts'
import { spread, toQuantile } from './stats.ts'

const PEOPLE = 100
const PASSWORD = 'correct horse'

/** Hashes of the imported lines: none, cheap ones to verify, and expensive ones. */
const HASHES = {
  'no hashes': undefined,
  'cheap hashes': '{SSHA512}rC/5U9qtd2K6Y3+CIkMnVTQXA3BOrSfvkEUi5L+kP7vwfGQ6oI2PoDLwoBIkJdKkXN2zHfcDcw8Dm8JV1lfLPnNhbHRzYWx0',
  'expensive hashes': 'pbkdf2_sha256$600000$abcdefghijkl$tQCL+b1vBSRthu98g7ljsPivdZaTFd+1YoCXL8gtI+Q='
} as const

/** The import of `user import`, which is a process of its own; the others come over HTTP. */
const COMMAND_LINE = 'command line'

type Load = 'rest' | keyof typeof HASHES | typeof COMMAND_LINE

/** What the sender is told: the kind of its lines, or to send none. */
type Told = Load | 'stop'

const LOADS: readonly Load[] = ['rest', 'cheap hashes', 'expensive hashes', 'no hashes', COMMAND_LINE]

const agent = new Agent({ keepAlive: true, maxSockets: 64 })

/** Sends one request. @returns the status, the body and the cookies */
async function send (url: string, { method = 'GET', headers = {}, body }: { method?: string, headers?: Record<string, string>, body?: string } = {}) {
  const sent = request(url, { method, headers: { accept: 'text/html', ...headers }, agent })
  sent.end(body)
  const [response] = await once(sent, 'response')
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk)
  const cookies = ((response.headers['set-cookie'] ?? []) as string[]).map((line) => line.split(';')[0]!)
  return { status: response.statusCode as number, text: Buffer.concat(chunks).toString(), cookies }
}

/** The service, as its process tells it. */
interface Service {
  origin: string
  headers: Record<string, string>
  database: string
}

/** The process of the service. It tells each message that its parent sends when all events are published. */
async function runService (cost: number): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'fastify-identity-imports-'))
  const database = `sqlite:${directory}/identity.db`
  const app = createApp()
  await app.register(identity, {
    database, secretKey: SECRET_KEY, bcryptCost: cost, passwordMin: 1, rateLimit: false, oidc: { signInLimit: false }
  })
  const { users, events } = app.identity
  for (let index = 0; index < PEOPLE; index++) await users.create({ data: { account: `person${index}`, password: PASSWORD } })
  const origin = await app.listen({ host: '127.0.0.1', port: 0 })
  const { headers } = await createMint(app.identity, Date.now)({ user: 'boss', roles: ['admin'] })
  process.on('message', () => {
    events.flush().then(() => process.send?.('quiet'), (error: unknown) => { throw error })
  })
  process.send?.({ origin, headers, database } satisfies Service)
  await once(process, 'disconnect')
  await app.close()
  rmSync(directory, { recursive: true })
}

/** An import in progress. */
interface Import {
  lines: Writable
  verdicts: Promise<Readable>
  /** Resolves when it has ended. Rejects when it failed. */
  ended: Promise<void>
}

function postImport ({ origin, headers }: Service): Import {
  const call = request(`${origin}/api/v1/user/import?source=bench&trust_emails=true`, { method: 'POST', headers: { ...headers, 'content-type': 'application/x-ndjson' } })
  const verdicts = once(call, 'response').then(([response]) => {
    if (response.statusCode !== 200) throw new Error(`the import answered ${response.statusCode}`)
    return response
  })
  return { lines: call, verdicts, ended: verdicts.then(async (response) => { await once(response, 'close') }) }
}

function runCommand ({ database }: Service): Import {
  const cli = fileURLToPath(new URL('../cli.ts', import.meta.url))
  const child = spawn(process.execPath, [cli, 'user', 'import', '-', '--from', 'ndjson', '--source', 'bench', '--trust-emails', '--json'], {
    env: { ...process.env, DATABASE_URL: database, IDENTITY_SECRET_KEY: SECRET_KEY }, stdio: ['pipe', 'pipe', 'inherit']
  })
  const ended = once(child, 'close').then(([code]) => { if (code !== 0) throw new Error(`the command ended with ${code}`) })
  return { lines: child.stdin, verdicts: Promise.resolve(child.stdout), ended }
}

/** The process that imports. It sends lines of the kind that its parent names, as fast as the service takes them, until it says stop. */
async function runSender (service: Service): Promise<void> {
  const told: { load: Told } = { load: 'stop' }
  let count = 0

  /** Returns the lines that were imported until the parent said stop. */
  async function importAll (load: Exclude<Load, 'rest'>): Promise<number> {
    const hash = load === COMMAND_LINE ? undefined : HASHES[load]
    const { lines, verdicts, ended } = load === COMMAND_LINE ? runCommand(service) : postImport(service)
    let done = 0
    const read = verdicts.then(async (chunks) => {
      for await (const chunk of chunks) {
        const text = String(chunk)
        if (text.includes(':"refused"')) throw new Error('lines were refused')
        if (told.load !== 'stop') done += text.split('\n').length - 1
      }
    })
    while (told.load !== 'stop') {
      const batch = Array.from({ length: 100 }, () => JSON.stringify({
        id: `bench|${++count}`, account: `import${count}@example.com`, email_verified: true, name: `Person ${count}`, info: { plan: 'basic' }, ...(hash !== undefined && { password: { hash } })
      }))
      if (!lines.write(`${batch.join('\n')}\n`)) await once(lines, 'drain')
    }
    lines.end()
    await Promise.all([read, ended])
    return done
  }

  process.on('message', (load: Told) => {
    told.load = load
    if (load !== 'stop' && load !== 'rest') importAll(load).then((lines) => process.send?.(lines), (error: unknown) => { console.error(error); process.exit(1) })
  })
  // Also in the middle of an import: the parent may have failed.
  process.once('disconnect', () => process.exit())
  process.send?.('ready')
}

/** The latencies of sign-ins, in milliseconds. They begin on schedule, and the lateness of one counts. */
async function measure (origin: string, rate: number, seconds: number): Promise<number[]> {
  const page = await send(`${origin}/account/sign-in`)
  const xsrf = /name="xsrf" value="([^"]*)"/.exec(page.text)?.[1] ?? ''
  const headers = { cookie: page.cookies.join('; '), origin, 'content-type': 'application/x-www-form-urlencoded' }
  const begin = performance.now()
  const signIn = async (index: number): Promise<number> => {
    const due = begin + index * 1000 / rate
    await sleep(Math.max(0, due - performance.now()))
    const { status } = await send(`${origin}/account/sign-in`, { method: 'POST', headers, body: `${new URLSearchParams({ xsrf, account: `person${index % PEOPLE}`, password: PASSWORD })}` })
    if (status !== 303) throw new Error(`the sign-in answered ${status}`)
    return performance.now() - due
  }
  return await Promise.all(Array.from({ length: Math.floor(rate * seconds) }, (_value, index) => signIn(index)))
}

async function main (): Promise<void> {
  const text = (value: string) => ({ type: 'string' as const, default: value })
  const { values } = parseArgs({ options: { rounds: text('7'), seconds: text('20'), rate: text('5'), cost: text('10') } })
  const [rounds, seconds, rate] = [Number(values.rounds), Number(values.seconds), Number(values.rate)]
  const open = (...args: string[]): ChildProcess => fork(fileURLToPath(import.meta.url), args)
  const service = open('service', values.cost)
  const [opened] = await once(service, 'message') as [Service]
  const sender = open('sender', JSON.stringify(opened))
  await once(sender, 'message')
  const found = Object.fromEntries(LOADS.map((load) => [load, { p50: [] as number[], p99: [] as number[], lines: [] as number[] }]))
  for (let round = 0; round <= rounds; round++) {
    for (const load of LOADS) {
      sender.send(load satisfies Told)
      await sleep(1_000)
      const begin = performance.now()
      const times = await measure(opened.origin, rate, seconds)
      const took = performance.now() - begin + 1_000
      sender.send('stop' satisfies Told)
      const [lines] = load === 'rest' ? [0] : await once(sender, 'message') as [number]
      service.send('quiet?')
      await once(service, 'message')
      // The first round warms up.
      if (round === 0) continue
      found[load]!.p50.push(toQuantile(times, 0.5))
      found[load]!.p99.push(toQuantile(times, 0.99))
      found[load]!.lines.push(lines / took * 1_000)
    }
  }
  for (const child of [sender, service]) child.disconnect()
  const rest = found['rest']!
  console.log(`${rate} sign-ins a second for ${seconds} s, bcrypt cost ${values.cost}, ${rounds} rounds, load of the machine ${loadavg()[0]!.toFixed(1)}`)
  for (const [load, { p50, p99, lines }] of Object.entries(found)) {
    const ratio = spread(p99.map((value, round) => value / rest.p99[round]!))
    console.log(`${load}: p50 ${spread(p50).median.toFixed(0)} ms, p99 ${spread(p99).median.toFixed(0)} ms, of that at rest ` +
      `${(spread(p99).median / spread(rest.p99).median).toFixed(2)} (by round ${ratio.min.toFixed(2)} to ${ratio.max.toFixed(2)}), ${spread(lines).median.toFixed(0)} lines/s`)
  }
  agent.destroy()
}

const [role, first = ''] = process.argv.slice(2)
if (role === 'service') await runService(Number(first))
else if (role === 'sender') await runSender(JSON.parse(first) as Service)
else await main()
