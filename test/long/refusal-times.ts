import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeDecoy } from '../../lib/hashes/decoys.ts'
import type { ImportLine } from '../../schemas/import.ts'
import { createApp, startIdentity } from '../../testing/kit.ts'
import { importLines } from '../helpers/import.ts'
import { createRandom } from '../helpers/scheduler.ts'
import { createClient, median, share } from './timing.ts'

/** The cost of our own hashes: about 16 ms, more than any of the imported ones takes. */
const COST = 8

/** Warm-up requests of each kind, which are not measured. */
const WARMUP = 50

/** Maximum difference from an account of our own: 5 per cent of the median. */
const SHARE = 0.05

/** Stored hashes of other programs that take less time than our own. No password matches them. */
const SCHEMES: Record<string, () => NonNullable<ImportLine['password']>> = {
  'bcrypt of cost 6': () => ({ hash: makeDecoy('$2b$06$~53') }),
  'PBKDF2, 10,000 iterations': () => ({ scheme: 'pbkdf2', digest: 'sha256', iterations: 10_000, salt: randomBytes(16).toString('base64'), hash: randomBytes(32).toString('base64') }),
  'scrypt, N 2,048': () => ({ scheme: 'scrypt', N: 2_048, r: 8, p: 1, salt: randomBytes(16).toString('base64'), hash: randomBytes(32).toString('base64') }),
  SSHA512: () => ({ hash: `{SSHA512}${randomBytes(72).toString('base64')}` })
}

const [OWN, UNKNOWN] = ['an own hash', 'no account'] as const

/**
 * The long test: refusals of wrong passwords take the same time for accounts with hashes of our own, for imported ones with cheaper hashes,
 * and for none. Every request is for another account, in random order.
 */
export async function run (accounts = Number(process.env['REFUSAL_ACCOUNTS'] ?? 2_000)): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'identity-refusals-'))
  const closers: (() => unknown)[] = [() => rmSync(directory, { recursive: true })]
  const t = { teardown: (close: () => unknown) => { closers.unshift(close) } }
  try {
    // Never limits: otherwise most requests would be refused by the limits.
    const counter = { count: async () => ({ current: 1, ttl: 1 }) }
    const kit = await startIdentity({ t, app: createApp(), database: `sqlite:${join(directory, 'identity.db')}`, rateLimit: false, counter, bcryptCost: COST })
    const { url } = await kit.listen()
    const client = createClient(url)
    closers.unshift(client.close)
    const names = (kind: string) => Array.from({ length: accounts + WARMUP }, (_, number) => `${kind.toLowerCase().replaceAll(/[^a-z0-9]/g, '')}${String(number).padStart(5, '0')}`)
    const waiting: Record<string, string[]> = {}
    for (const kind of [OWN, UNKNOWN, ...Object.keys(SCHEMES)]) waiting[kind] = names(kind)
    const own = `${'A'.repeat(8)}${makeDecoy(`$2b$${String(COST).padStart(2, '0')}$~53`)}`
    for (const [kind, make] of [[OWN, () => ({ hash: own })], ...Object.entries(SCHEMES)] as const) {
      const { report } = await importLines(kit.app.identity, waiting[kind]!.map((account) => ({ account, password: make() })), { source: 'former' })
      if (report.created !== accounts + WARMUP) throw new Error(`${kind}: created ${report.created}`)
    }
    await kit.app.identity.events.flush()
    const page = await fetch(`${url}/account/sign-in`)
    const cookie = page.headers.getSetCookie().map((line) => line.split(';')[0]).join('; ')
    const xsrf = /name="xsrf" value="([^"]*)"/.exec(await page.text())?.[1] ?? ''
    const form = { 'content-type': 'application/x-www-form-urlencoded', origin: url, cookie }
    const choose = createRandom(2026)
    const times: Record<string, number[]> = Object.fromEntries(Object.keys(waiting).map((kind) => [kind, []]))
    for (;;) {
      const left = Object.keys(waiting).filter((kind) => waiting[kind]!.length > 0)
      if (left.length === 0) break
      const kind = left[choose(left.length)]!
      const { status, time } = await client.post('/account/sign-in', `${new URLSearchParams({ xsrf, account: waiting[kind]!.pop()!, password: 'wrong' })}`, form)
      if (status !== 400) throw new Error(`${kind}: answered ${status}`)
      if (waiting[kind]!.length < accounts) times[kind]!.push(time)
    }
    const rest = median(times[OWN]!)
    const problems: string[] = []
    const lines = Object.entries(times).map(([kind, all]) => {
      const line = `${kind}: ${median(all).toFixed(2)} ms (quarters ${share(all, 0.25).toFixed(2)} and ${share(all, 0.75).toFixed(2)}), ${(100 * (median(all) / rest - 1)).toFixed(1)} %`
      if (Math.abs(median(all) / rest - 1) > SHARE) problems.push(line)
      return line
    })
    if (problems.length > 0) throw new Error([...problems, 'of', ...lines].join('\n'))
    return `medians of ${accounts} refusals each, load of the machine ${loadavg()[0]!.toFixed(1)}:\n  ${lines.join('\n  ')}`
  } finally {
    for (const close of closers) await close()
  }
}

if (import.meta.main) console.log(await run())
