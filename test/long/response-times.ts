import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createApp, startIdentity } from '../../testing/kit.ts'
import { settleMails } from '../helpers/mails.ts'
import { createRandom } from '../helpers/scheduler.ts'
import { createClient, median } from './timing.ts'

/** Maximum difference between existing and other accounts: 5 per cent of the median, or a millisecond. */
const SHARE = 0.05
const MILLISECONDS = 1

/** Warm-up requests of each kind, which are not measured. */
const WARMUP = 300

/**
 * The long test: compares response times for existing and for missing accounts, at bcrypt's lowest cost, at which the hash hides
 * least. Every request is for another account, in random order.
 */
export async function run (accounts = 2_000): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'identity-times-'))
  const closers: (() => unknown)[] = [() => rmSync(directory, { recursive: true })]
  const t = { teardown: (close: () => unknown) => { closers.unshift(close) } }
  try {
    // Never limits: otherwise most requests would be refused by the limits.
    const counter = { count: async () => ({ current: 1, ttl: 1 }) }
    const kit = await startIdentity({ t, app: createApp(), database: `sqlite:${join(directory, 'identity.db')}`, rateLimit: false, signUp: true, counter })
    const { url } = await kit.listen()
    const client = createClient(url)
    closers.unshift(client.close)
    const total = accounts + WARMUP
    const known = Array.from({ length: total }, (_, number) => `known${String(number).padStart(6, '0')}@example.com`)
    for (let start = 0; start < total; start += 200) await Promise.all(known.slice(start, start + 200).map(async (account) => await kit.app.identity.users.create({ data: { account, password: 'right' } })))
    const page = await fetch(`${url}/account/sign-in`)
    const cookie = page.headers.getSetCookie().map((line) => line.split(';')[0]).join('; ')
    const xsrf = /name="xsrf" value="([^"]*)"/.exec(await page.text())?.[1] ?? ''

    const json = { 'content-type': 'application/json' }
    const form = { 'content-type': 'application/x-www-form-urlencoded', origin: url, cookie }
    const kinds: Record<string, [status: number, (account: string) => ReturnType<typeof client.post>]> = {
      'forgot (API)': [204, (account) => client.post('/api/v1/auth/forgot', JSON.stringify({ data: { account } }), json)],
      'forgot (page)': [200, (account) => client.post('/account/forgot', `${new URLSearchParams({ typed: account })}`, form)],
      'sign-up (API)': [204, (email) => client.post('/api/v1/auth/sign-up', JSON.stringify({ data: { email } }), json)],
      'sign-up (page)': [200, (account) => client.post('/account/sign-up', `${new URLSearchParams({ typed: account })}`, form)],
      'sign-in': [400, (account) => client.post('/account/sign-in', `${new URLSearchParams({ xsrf, account, password: 'wrong' })}`, form)]
    }
    const choose = createRandom(2026)
    const lines: string[] = []
    const problems: string[] = []
    for (const [kind, [expected, ask]] of Object.entries(kinds)) {
      const times = { known: [] as number[], unknown: [] as number[] }
      const waiting = { known: [...known], unknown: known.map((account) => account.replace('known', 'guess')) }
      while (waiting.known.length + waiting.unknown.length > 0) {
        const group = choose(waiting.known.length + waiting.unknown.length) < waiting.known.length ? 'known' : 'unknown'
        const { status, time } = await ask(waiting[group].pop()!)
        if (status !== expected) throw new Error(`${kind}: answered ${status}`)
        if (waiting[group].length < accounts) times[group].push(time)
        // The work that one request leaves behind must not slow down the next.
        await settleMails(kit.app.identity)
      }
      const [one, other] = [median(times.known), median(times.unknown)]
      const difference = Math.abs(one - other)
      lines.push(`${kind}: ${one.toFixed(3)} ms known, ${other.toFixed(3)} ms unknown, ${(100 * difference / one).toFixed(1)} %`)
      if (difference > one * SHARE && difference > MILLISECONDS) problems.push(lines.at(-1)!)
      await kit.mails.all()
    }
    if (problems.length > 0) throw new Error(problems.join('\n'))
    return `medians of ${accounts} answers each, for accounts that exist and for others:\n  ${lines.join('\n  ')}`
  } finally {
    for (const close of closers) await close()
  }
}

if (import.meta.main) console.log(await run(Number(process.argv[2] ?? 2_000)))
