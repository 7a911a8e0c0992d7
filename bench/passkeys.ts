/**
 * The latency of tokeninfo beside passkey sign-ins, against the same beside requests of the sign-in page. The service and those who sign in have
 * a process each: `node bench/passkeys.ts [--rounds N] [--seconds N] [--rate N]`.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { createAuthenticator } from '../testing/authenticator.ts'
import { startIdentity } from '../testing/index.ts'
import { readPasskeyOptions } from '../testing/passkey.ts'
import { agent, findPort, median, post, readField, send } from './visitor.ts'

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
  const people: (() => Promise<void>)[] = []
  for (let index = 0; index < PEOPLE; index++) people.push(await enrol(origin, `person${index}`))
  const page = async () => { await send(`${origin}/account/sign-in`) }
  let load: Load | null = null
  process.on('message', (told: Load | null) => { load = told })
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

/** The 99th percentile of the latency of tokeninfo, in milliseconds. */
async function measure (origin: string, headers: Record<string, string>, seconds: number): Promise<number> {
  const times: number[] = []
  const until = performance.now() + seconds * 1000
  while (performance.now() < until) {
    const start = performance.now()
    const { status } = await send(`${origin}/api/v1/auth/tokeninfo`, { headers })
    if (status !== 200) throw new Error(`tokeninfo answered ${status}`)
    times.push(performance.now() - start)
    await sleep(2)
  }
  return times.sort((one, other) => one - other)[Math.floor(times.length * 0.99)]!
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
  const found: Record<Load, number[]> = { pages: [], 'sign-ins': [] }
  for (let round = 0; round <= Number(values.rounds); round++) {
    for (const load of ['pages', 'sign-ins'] as const) {
      people.send(load)
      await sleep(500)
      const p99 = await measure(origin, headers, Number(values.seconds))
      // The first round warms up.
      if (round > 0) found[load].push(p99)
    }
  }
  for (const child of [people, service]) child.disconnect()
  const [pages, signIns] = [median(found.pages), median(found['sign-ins'])]
  console.log(JSON.stringify({ rate: Number(values.rate), p99_pages: pages, p99_sign_ins: signIns, ratio: signIns / pages, found }, null, 2))
  agent.destroy()
}

const [role, first = '', second = ''] = process.argv.slice(2)
if (role === 'service') await runService(Number(first))
else if (role === 'people') await runPeople(first, Number(second))
else await main()
