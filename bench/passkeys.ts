/**
 * The latency of tokeninfo beside passkey sign-ins, against the same beside requests of the sign-in page. The service and those who sign in have
 * a process each, the latter with the lowest priority so that what they compute delays nobody. Shown are the first quartile and the least of the
 * rounds, and what the main thread of the service computed and how long it waited for a core: `node bench/passkeys.ts [--rounds N] [--seconds N] [--rate N]`.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { setPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { createAuthenticator } from '../testing/authenticator.ts'
import { startIdentity } from '../testing/index.ts'
import { readPasskeyOptions } from '../testing/passkey.ts'
import { readThreadTimes } from './machine.ts'
import { toQuantile } from './stats.ts'
import { agent, findPort, post, readField, send } from './visitor.ts'

const PEOPLE = 50
const PASSWORD = 'correct horse'

type Load = 'sign-ins' | 'pages'

/** Adds a passkey to a person on the account pages. @returns a function that signs them in */
async function enrol (origin: string, account: string): Promise<() => Promise<void>> {
  const form = await send(`${origin}/account/sign-in`)
  const into = await post(origin, '/account/sign-in', form.cookies.join('; '), { xsrf: readField(form.text, 'xsrf'), account, password: PASSWORD })
  const cookie = into.cookies.join('; ')
  const page = await send(`${origin}/account/factors/passkeys`, { headers: { cookie } })
  const xsrf = readField(page.text, 'xsrf')
  const begun = await post(origin, '/account/factors/passkeys', cookie, { xsrf, current_password: PASSWORD })
  const key = createAuthenticator(origin)
  const shown = await post(origin, '/account/factors/passkeys', cookie, { xsrf, attestation: key.create(readPasskeyOptions(begun.text).options) })
  const fields = { codes: readField(shown.text, 'codes'), factor: readField(shown.text, 'factor'), kept: 'yes' }
  const done = await post(origin, '/account/factors/codes', cookie, { xsrf, ...fields })
  if (done.status !== 303) throw new Error(`the enrolment failed: ${done.status}`)
  return async () => {
    const { text, cookies } = await send(`${origin}/account/sign-in`)
    const assertion = key.get(readPasskeyOptions(text).options)
    const { status } = await post(origin, '/account/sign-in', cookies.join('; '), { xsrf: readField(text, 'xsrf'), way: 'passkey', assertion })
    if (status !== 303) throw new Error(`the sign-in failed: ${status}`)
  }
}

/** The process that plays the people. It keeps up the kind of load that its parent sent last. */
async function runPeople (origin: string, rate: number): Promise<void> {
  setPriority(19)
  const people: (() => Promise<void>)[] = []
  for (let index = 0; index < PEOPLE; index++) people.push(await enrol(origin, `person${index}`))
  const page = async () => { await send(`${origin}/account/sign-in`) }
  let load: Load | null = null
  process.on('message', (told: Load | 'none') => { load = told === 'none' ? null : told })
  process.send?.('ready')
  let next = performance.now()
  for (let index = 0; process.connected; index++) {
    const act = load === 'sign-ins' ? people[index % PEOPLE]! : load === 'pages' ? page : async () => {}
    act().catch((error) => { console.error(error); process.exit(1) })
    next = Math.max(next + 1000 / rate, performance.now() - 1000)
    await sleep(Math.max(0, next - performance.now()))
  }
}

/** The process of the service. */
async function runService (port: number): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'fastify-identity-passkeys-'))
  const kit = await startIdentity({ database: `sqlite:${directory}/identity.db`, rateLimit: false, oidc: { issuer: `http://localhost:${port}` } })
  for (let index = 0; index < PEOPLE; index++) await kit.app.identity.users.create({ data: { account: `person${index}`, password: PASSWORD } })
  await kit.listen({ port })
  process.send?.((await kit.mint()).headers)
  await once(process, 'disconnect')
  await kit.close()
  rmSync(directory, { recursive: true })
}

interface Sample {
  /** The 99th percentile of the latency of tokeninfo, in milliseconds. */
  p99: number
  /** Milliseconds in a second: processor time of the service's main thread, and its wait for a core. */
  main: number
  waited: number
}

async function measure (origin: string, headers: Record<string, string>, seconds: number, pid: number): Promise<Sample> {
  const times: number[] = []
  const before = readThreadTimes(pid)
  const until = performance.now() + seconds * 1000
  while (performance.now() < until) {
    const start = performance.now()
    const { status } = await send(`${origin}/api/v1/auth/tokeninfo`, { headers })
    if (status !== 200) throw new Error(`tokeninfo answered ${status}`)
    times.push(performance.now() - start)
    await sleep(2)
  }
  const after = readThreadTimes(pid)
  const toRate = (of: 'main' | 'waited') => (after[of] - before[of]) / 1000 / seconds
  return { p99: toQuantile(times, 0.99), main: toRate('main'), waited: toRate('waited') }
}

async function main (): Promise<void> {
  const { values } = parseArgs({ options: { rounds: { type: 'string', default: '5' }, seconds: { type: 'string', default: '5' }, rate: { type: 'string', default: '50' } } })
  const port = await findPort()
  const origin = `http://localhost:${port}`
  const open = (...args: string[]): ChildProcess => fork(fileURLToPath(import.meta.url), args)
  const service = open('service', String(port))
  const [headers] = await once(service, 'message')
  const people = open('people', origin, values.rate)
  await once(people, 'message')
  const found: Record<Load, Sample[]> = { pages: [], 'sign-ins': [] }
  for (let round = 0; round <= Number(values.rounds); round++) {
    for (const load of ['pages', 'sign-ins'] as const) {
      people.send(load)
      await sleep(500)
      const sample = await measure(origin, headers, Number(values.seconds), service.pid!)
      // The first round warms up.
      if (round > 0) found[load].push(sample)
    }
  }
  people.send('none')
  await sleep(500)
  for (const child of [people, service]) child.disconnect()
  const describe = (load: Load) => Object.fromEntries((['p99', 'main', 'waited'] as const).map((metric) => {
    const values = found[load].map((sample) => sample[metric])
    return [metric, { quartile: toQuantile(values, 0.25), least: Math.min(...values) }]
  })) as Record<keyof Sample, { quartile: number, least: number }>
  const [pages, signIns] = [describe('pages'), describe('sign-ins')]
  console.log(JSON.stringify({ rate: Number(values.rate), pages, signIns, ratio: signIns.p99.quartile / pages.p99.quartile, found }, null, 2))
  agent.destroy()
}

const [role, first = '', second = ''] = process.argv.slice(2)
if (role === 'service') await runService(Number(first))
else if (role === 'people') await runPeople(first, Number(second))
else await main()
