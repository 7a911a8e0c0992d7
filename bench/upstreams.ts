/**
 * The latency of sign-ins by password while another provider hangs, against the same beside none. The provider never answers a request for
 * tokens, and people come back from it all the time, so that as many wait for it as may. The service, and the provider with these people,
 * have a process each: `node bench/upstreams.ts [--rounds N] [--seconds N] [--rate N] [--at-once N] [--cost N]`.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startIdentity } from '../testing/index.ts'
import { TEST_CLIENT, createTestUpstream } from '../testing/upstream.ts'
import { agent, findPort, median, post, readField, send } from './visitor.ts'

const PEOPLE = 50
const PASSWORD = 'correct horse'
const START = '/api/v1/auth/upstream/hanging'

/** Milliseconds until nobody waits for the provider any more, or as many as may: a sign-in waits for five seconds at most. */
const WAIT = 5_500

type Load = 'none' | 'hanging'

/** What became of those who came back from the provider. */
type Outcomes = Record<'busy' | 'down', number>

/** The process of the provider, and of the people who sign in with it while its parent has sent `hanging`. */
async function runProvider (origin: string, rate: number): Promise<void> {
  const upstream = await createTestUpstream()
  upstream.answer = ({ url }) => url === '/token'
  const outcomes: Outcomes = { busy: 0, down: 0 }

  async function comeBack (): Promise<void> {
    const left = await send(origin + START)
    const cookie = left.cookies.join('; ')
    const answer = new URLSearchParams({ code: 'x', state: new URL(left.location ?? upstream.issuer).searchParams.get('state') ?? '', iss: upstream.issuer })
    // Where too many wait, nobody else begins.
    const { status } = left.status === 303 ? await send(`${origin}${START}/callback?${answer}`, { headers: { cookie } }) : left
    if (status !== 502 && status !== 503) throw new Error(`an answer that cannot be redeemed got ${status}`)
    outcomes[status === 503 ? 'busy' : 'down']++
  }

  const asked: { load: Load } = { load: 'none' }
  process.on('message', (told: Load | 'end') => {
    asked.load = told === 'hanging' ? told : 'none'
    if (told === 'end') process.send?.(outcomes)
  })
  process.send?.(upstream.issuer)
  let next = performance.now()
  while (process.connected) {
    if (asked.load === 'hanging') comeBack().catch((error) => { console.error(error); process.exit(1) })
    next = Math.max(next + 1000 / rate, performance.now() - 1000)
    await sleep(Math.max(0, next - performance.now()))
  }
  await upstream.close()
  agent.destroy()
}

/** The process of the service. */
async function runService (port: number, bcryptCost: number, issuer: string): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'fastify-identity-upstreams-'))
  const kit = await startIdentity({
    database: `sqlite:${directory}/identity.db`,
    rateLimit: false,
    bcryptCost,
    oidc: { issuer: `http://localhost:${port}` },
    upstreams: [{ id: 'hanging', kind: 'oidc', issuer, ...TEST_CLIENT }]
  })
  for (let index = 0; index < PEOPLE; index++) await kit.app.identity.users.create({ data: { account: `person${index}`, password: PASSWORD } })
  await kit.listen({ port })
  process.send?.('ready')
  await once(process, 'disconnect')
  await kit.close()
  rmSync(directory, { recursive: true })
}

/** Signs in by password, the page and the form, several at once. @returns the times in milliseconds */
async function measure (origin: string, seconds: number, atOnce: number): Promise<number[]> {
  const times: number[] = []
  const until = performance.now() + seconds * 1000
  let count = 0
  await Promise.all(Array.from({ length: atOnce }, async () => {
    while (performance.now() < until) {
      const start = performance.now()
      const { text, cookies } = await send(`${origin}/account/sign-in`)
      const { status } = await post(origin, '/account/sign-in', cookies.join('; '), { xsrf: readField(text, 'xsrf'), account: `person${count++ % PEOPLE}`, password: PASSWORD })
      if (status !== 303) throw new Error(`the sign-in failed: ${status}`)
      times.push(performance.now() - start)
    }
  }))
  return times
}

const findP99 = (times: number[]) => times.toSorted((one, other) => one - other)[Math.floor(times.length * 0.99)]!

async function main (): Promise<void> {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '15' },
      rate: { type: 'string', default: '5' },
      'at-once': { type: 'string', default: '4' },
      cost: { type: 'string', default: '12' }
    }
  })
  const port = await findPort()
  const origin = `http://localhost:${port}`
  const open = (...args: string[]): ChildProcess => fork(fileURLToPath(import.meta.url), args)
  const provider = open('provider', origin, values.rate)
  const [issuer] = await once(provider, 'message') as [string]
  const service = open('service', String(port), values.cost, issuer)
  await once(service, 'message')
  const found: Record<Load, number[]> = { none: [], hanging: [] }
  const counts: Record<Load, number> = { none: 0, hanging: 0 }
  for (let round = 0; round <= Number(values.rounds); round++) {
    for (const load of ['none', 'hanging'] as const) {
      provider.send(load)
      await sleep(WAIT)
      const times = await measure(origin, Number(values.seconds), Number(values['at-once']))
      // The first round warms up.
      if (round > 0) {
        found[load].push(findP99(times))
        counts[load] += times.length
      }
    }
  }
  provider.send('none')
  await sleep(WAIT)
  provider.send('end')
  const [outcomes] = await once(provider, 'message') as [Outcomes]
  for (const child of [provider, service]) child.disconnect()
  const [none, hanging] = [median(found.none), median(found.hanging)]
  console.log(JSON.stringify({ ...values, sign_ins: counts, provider: outcomes, p99_none: none, p99_hanging: hanging, ratio: hanging / none, found, loadavg: loadavg() }, null, 2))
  agent.destroy()
}

const [role, ...args] = process.argv.slice(2)
if (role === 'service') await runService(Number(args[0]), Number(args[1]), args[2]!)
else if (role === 'provider') await runProvider(args[0]!, Number(args[1]))
else await main()
