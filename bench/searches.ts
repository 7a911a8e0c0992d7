import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openServices } from '../lib/identity.ts'
import { DEFAULT_ROLE_NAMES } from '../lib/roles.ts'
import { SECRET_KEY, copyDatabase } from './seed.ts'

// What a sign-out's look-up and an accepted mail take on SQLite, at rest and beside searches: `node bench/searches.ts [USERS]`.
// It takes some seconds, and as long again as the first run needs to fill a file.

const USERS = Number(process.argv[2] ?? 400_000)
const SEARCHES = 8
const REPEATS = 20
/** Milliseconds between two measurements: more than those for which a count of the queue is cached. */
const PAUSE = 1_050
/** The accepted median beside the searches, in milliseconds. */
const GOAL = 30

const directory = mkdtempSync(join(tmpdir(), 'identity-searches-'))
const database = `sqlite:${await copyDatabase({ users: USERS, clients: 0, tokens: 0 }, directory, (text) => console.error(text))}`
const services = await openServices({
  database,
  secretKey: SECRET_KEY,
  storeTimeout: 10_000,
  production: false,
  bcryptCost: 4,
  hashQueue: 100,
  passwordMin: 1,
  roles: DEFAULT_ROLE_NAMES,
  clientsPerUser: false,
  auditDays: 400,
  addresses: 'full',
  dataDir: undefined,
  createDatabase: false,
  managerRoles: undefined,
  refreshTtl: 3_600,
  accounts: { mail: { send: async () => {} }, getIssuer: () => new URL('https://id.example'), serviceName: 'bench' }
} as Parameters<typeof openServices>[0])

const { users, tokens, accounts } = services
const median = (times: number[]) => times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? NaN
const sleep = (time: number) => new Promise((resolve) => setTimeout(resolve, time))

async function measure (act: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await act()
  return performance.now() - start
}

async function measureBoth (): Promise<{ signOut: number, mail: number }> {
  const signOuts: number[] = []
  const mails: number[] = []
  for (let repeat = 0; repeat < REPEATS; repeat++) {
    signOuts.push(await measure(async () => await tokens.endSignIn('no session')))
    mails.push(await measure(async () => await accounts.outbox!.enqueue({ kind: 'test', to: 'ann@example.com' }, 60_000)))
    await sleep(PAUSE)
  }
  return { signOut: median(signOuts), mail: median(mails) }
}

const rest = await measureBoth()
const searching = { isDone: false, count: 0 }
const searchers = Array.from({ length: SEARCHES }, async (_, number) => {
  while (!searching.isDone) {
    await users.page({ contains: 'nobody has this' }, { user_id: `admin${number}`, isAdmin: true })
    searching.count++
  }
})
const start = performance.now()
const beside = await measureBoth()
const rate = searching.count / (performance.now() - start) * 1000
searching.isDone = true
await Promise.all(searchers)
await services.close()
rmSync(directory, { recursive: true })

console.log(`${USERS} users, medians of ${REPEATS}, in milliseconds (${rate.toFixed(1)} searches a second)`)
for (const [name, of] of [['at rest', rest], [`beside ${SEARCHES} searches`, beside]] as const) {
  console.log(`${name}: the look-up of a sign-out ${of.signOut.toFixed(1)}, an accepted mail ${of.mail.toFixed(1)}`)
}
if (Math.max(beside.signOut, beside.mail) > GOAL) console.log(`more than ${GOAL}`)
