import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { MongoClient } from 'mongodb'
import { MONGODB_URL } from '../helpers/mongodb.ts'
import { waitUntil, within } from '../helpers/wait.ts'

const CHILD = fileURLToPath(new URL('../fixtures/noticing-child.ts', import.meta.url))

/** Milliseconds from a change to its accepted mail, for 99 of 100; and from a kill of the process that publishes to the next mail. */
const P99 = 1_000
const AFTER_KILL = 10_000

/** Seconds of a run. */
const SECONDS = 10

interface Line { what: string, user: string, time: number }

/** A process that changes users at a rate, and publishes. */
function startChanges (database: string, name: string, rate: number, seconds: number) {
  const child = spawn(process.execPath, ['--no-warnings', CHILD, database, name, String(rate), String(seconds)], { stdio: ['ignore', 'pipe', 'inherit'] })
  const lines: Line[] = []
  const ready = Promise.withResolvers<void>()
  const reader = createInterface({ input: child.stdout }).on('line', (line) => {
    const [what = '', user = '', time = ''] = line.split(' ')
    if (what === 'ready') ready.resolve()
    else lines.push({ what, user, time: Number(time) })
  })
  const find = (what: string) => lines.filter((line) => line.what === what)
  const closed = new Promise<void>((resolve) => reader.on('close', resolve))
  void closed.then(() => ready.reject(new Error('the process has ended')))
  return {
    find,
    ready: within('the users of a process', ready.promise, 120_000),
    async kill (): Promise<void> {
      child.kill('SIGKILL')
      await closed
    }
  }
}

/** Milliseconds from each change to its mail. A user's changes and mails follow each other. */
function listDelays (changed: readonly Line[], accepted: readonly Line[]): number[] {
  const mails = Map.groupBy(accepted, ({ user }) => user)
  return changed.map(({ user, time }) => Math.max(0, (mails.get(user)?.shift()?.time ?? Infinity) - time)).sort((one, other) => one - other)
}

/** Changes users at a rate. @returns the changes in a second, and the delay of 99 of 100 mails */
async function measure (database: string, name: string, rate: number): Promise<{ reached: number, p99: number }> {
  const changes = startChanges(database, name, rate, SECONDS)
  try {
    await changes.ready
    await waitUntil('the end of the changes', () => changes.find('ended').length > 0, 6 * SECONDS * 1_000)
    await waitUntil('the mail of each change', () => changes.find('accepted').length >= changes.find('changed').length, 60_000)
    const delays = listDelays(changes.find('changed'), changes.find('accepted'))
    return { reached: delays.length / SECONDS, p99: delays[Math.floor(delays.length * 0.99)]! }
  } finally {
    await changes.kill()
  }
}

/** Kills the process that publishes. @returns the milliseconds until another one has accepted a mail */
async function measureKill (database: string, name: string, rate: number): Promise<number> {
  const first = startChanges(database, `${name}-first`, rate / 2, 60)
  const other = startChanges(database, `${name}-other`, rate / 2, 60)
  try {
    await Promise.all([first.ready, other.ready])
    const holder = await waitUntil('a process that publishes', () => [first, other].find(({ find }) => find('accepted').at(-1)?.time! > Date.now() - 500), 60_000)
    const left = holder === first ? other : first
    await holder.kill()
    const time = Date.now()
    const next = await waitUntil('a mail after the kill', () => left.find('accepted').find((line) => line.time > time), 60_000)
    return next.time - time
  } finally {
    await Promise.all([first.kill(), other.kill()])
  }
}

async function check (engine: string, makeDatabase: (name: string) => string, asked?: number): Promise<string> {
  // The most that it reaches, with as many changes at a time as the process takes.
  const most = await measure(makeDatabase('most'), 'most', 100_000)
  const rate = asked ?? Math.round(most.reached / 2)
  const { reached, p99 } = await measure(makeDatabase('rate'), 'rate', rate)
  const killed = await measureKill(makeDatabase('kill'), 'kill', Math.min(rate, most.reached) / 2)
  const text = `${engine}: at ${Math.round(reached)} changes a second of ${rate} asked for (most: ${Math.round(most.reached)}), 99 of 100 mails are in the queue after ${p99} ms; ${killed} ms after a kill of the process that publishes (load ${loadavg()[0]!.toFixed(1)})`
  if (p99 > P99 || killed > AFTER_KILL) throw new Error(text)
  return text
}

/**
 * The time from a change to its mail in the queue, beside 1,000 changes a second on SQLite and half of what the server reaches on MongoDB, and
 * after a kill of the process that publishes.
 */
export async function run (rate = 1_000, engines = ['SQLite', 'MongoDB']): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'identity-notice-times-'))
  try {
    const lines: string[] = []
    if (engines.includes('SQLite')) lines.push(await check('SQLite', (name) => `sqlite:${join(directory, `${name}.db`)}`, rate))
    if (engines.includes('MongoDB') && MONGODB_URL !== undefined) {
      const names: string[] = []
      const client = new MongoClient(MONGODB_URL)
      try {
        lines.push(await check('MongoDB', (name) => `${MONGODB_URL}/${names[names.push(`notices_${name}_${process.pid}`) - 1]}`))
      } finally {
        for (const name of names) await client.db(name).dropDatabase()
        await client.close()
      }
    }
    return `mails from change to queue: ${lines.join('\n  ')}`
  } finally {
    rmSync(directory, { recursive: true })
  }
}

if (import.meta.main) console.log(await run(Number(process.argv[2] ?? 1_000), process.argv[3]?.split(',')))
