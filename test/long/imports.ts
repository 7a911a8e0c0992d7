import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { UserRecord } from '../../lib/records/user.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'

/** Lines of the file. */
const LINES = Number(process.env['IMPORT_LINES'] ?? 1_000_000)
/** Kills before the run that ends. */
const KILLS = Number(process.env['IMPORT_KILLS'] ?? 20)
/** Bytes by which memory may grow. */
const GROWTH = 64 * 1_048_576
/** The part of the rate of insertMany that an import reaches at least. */
const RATE = 0.5

const CHILD = fileURLToPath(new URL('../fixtures/importing-child.ts', import.meta.url))

interface Counts { created: number, same: number, updated: number, refused: number, ms: number, growth: number }

/** Runs an import of the whole file, and kills it after so many lines. */
async function importAll (url: string, killAfter = Infinity): Promise<Counts | null> {
  const child = spawn(process.execPath, [CHILD, url, String(LINES)], { stdio: ['ignore', 'pipe', 'inherit'] })
  let last = ''
  for await (const line of createInterface(child.stdout)) {
    last = line
    if (Number(line) >= killAfter) child.kill('SIGKILL')
  }
  if (child.exitCode === null && child.signalCode === null) await once(child, 'close')
  return last.startsWith('{') ? JSON.parse(last) as Counts : null
}

/** Milliseconds of insertMany for the users of a store. */
async function measureInserts (from: string, to: string): Promise<number> {
  const options = { collections: COLLECTIONS, now: Date.now, timeout: 60_000 }
  const [source, target] = [await openStore(from, options), await openStore(to, options)]
  let ms = 0
  for await (const batch of source.collection<UserRecord>('users').stream()) {
    const start = performance.now()
    await target.collection<UserRecord>('users').insertMany(batch)
    ms += performance.now() - start
  }
  await Promise.all([source.close(), target.close()])
  return ms
}

/** A file of users that is imported and killed again and again: nobody comes in twice or is lost, in constant memory. */
export async function run (): Promise<string> {
  const directory = mkdtempSync(join(process.env['IMPORT_DIR'] ?? tmpdir(), 'imports-'))
  try {
    const url = (name: string) => `sqlite:${join(directory, name)}.db`
    const fresh = (await importAll(url('fresh')))!
    if (fresh.created !== LINES) throw new Error(`created ${fresh.created} of ${LINES}`)
    if (fresh.growth > GROWTH) throw new Error(`memory grew by ${Math.round(fresh.growth / 1_048_576)} MiB`)
    const inserts = await measureInserts(url('fresh'), url('inserts'))
    const rate = inserts / fresh.ms
    if (rate < RATE) throw new Error(`the rate was ${rate.toFixed(2)} of that of insertMany`)
    for (let kill = 0; kill < KILLS; kill++) await importAll(url('killed'), Math.floor(LINES * (kill + 1) / (KILLS + 1)))
    const rest = (await importAll(url('killed')))!
    const store = await openStore(url('killed'), { collections: COLLECTIONS, now: Date.now })
    const stored = await store.collection('users').count()
    await store.close()
    if (rest.created + rest.same !== LINES || stored !== LINES) throw new Error(`${stored} users of ${LINES} lines: ${JSON.stringify(rest)}`)
    return `import: ${LINES} lines, ${Math.round(LINES / fresh.ms * 1_000)} a second, ${rate.toFixed(2)} of insertMany, memory +${Math.round(fresh.growth / 1_048_576)} MiB; ` +
      `killed ${KILLS} times, ${rest.created} created in the last run, none twice, none lost`
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
