import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openStore } from '../../lib/store/index.ts'
import { COLLECTIONS, type Thing } from '../lib/store/conformance/collections.ts'

export interface KillResult {
  kills: number
  /** Writes that were acknowledged before a kill. */
  acknowledged: number
  /** Documents that were acknowledged and are missing, or were acknowledged as removed and still exist. */
  lost: string[]
  /** SQLite's own check of the file; `ok` when it is whole. */
  integrity: string
}

/** The expected state of a document: of this rank at least, removed, or either. */
type State = number | 'gone' | 'maybe gone'

/**
 * Kills a process in the middle of its writes, repeatedly, each on the file that the previous one left, and compares the
 * acknowledged writes with the stored documents.
 */
export async function killRepeatedly (kills: number, directory: string): Promise<KillResult> {
  const path = join(directory, 'store.db')
  const result: KillResult = { kills, acknowledged: 0, lost: [], integrity: 'ok' }
  // Opened once before, so that the first process is not killed while it creates the store.
  await (await openStore(`sqlite:${path}`, { collections: COLLECTIONS, now: Date.now })).close()
  const all = new Map<string, State>()
  for (let round = 0; round < kills; round++) {
    // The kill comes at another place of the stream in each round, and at a random place of a transaction.
    const expected = new Map<string, State>()
    for (const line of await runUntilKilled(`sqlite:${path}`, `r${round}`, 50 + (round * 377) % 4_000)) {
      const [sign, id, rank] = line.split(' ') as [string, string, string?]
      if (sign !== '?') result.acknowledged++
      expected.set(id, sign === '?' ? 'maybe gone' : sign === '-' ? 'gone' : Number(rank ?? 0))
    }
    result.lost.push(...await findLost(`sqlite:${path}`, expected))
    for (const [id, state] of expected) all.set(id, state)
  }
  // Documents that survived their own round must survive all rounds.
  result.lost.push(...await findLost(`sqlite:${path}`, all))
  const database = new DatabaseSync(path)
  result.integrity = String(database.prepare('PRAGMA integrity_check').get()?.integrity_check)
  database.close()
  return result
}

/** Runs a writing process until it has printed `count` lines, kills it, and resolves to all complete lines of its output. */
async function runUntilKilled (url: string, prefix: string, count: number): Promise<string[]> {
  const child = spawn(process.execPath, [fileURLToPath(new URL('../fixtures/acknowledging-child.ts', import.meta.url)), url, prefix], { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  let lines = 0
  for await (const chunk of child.stdout.setEncoding('utf8') as AsyncIterable<string>) {
    text += chunk
    lines += chunk.split('\n').length - 1
    if (lines >= count) child.kill('SIGKILL')
  }
  if (lines < count) throw new Error('the writing process ended by itself')
  return text.slice(0, text.lastIndexOf('\n')).split('\n')
}

async function findLost (url: string, expected: ReadonlyMap<string, State>): Promise<string[]> {
  const store = await openStore(url, { collections: COLLECTIONS, now: Date.now })
  const things = store.collection<Thing>('things')
  const lost: string[] = []
  for (const [id, state] of expected) {
    const thing = await things.get(id)
    const isThere = state === 'gone' ? thing === null : state === 'maybe gone' || (thing !== null && thing.name === id && Number(thing.rank) >= state)
    if (!isThere) lost.push(`${id} ${state}`)
  }
  await store.close()
  return lost
}

/** The long test: a hundred kills. Resolves to a line of figures. */
export async function run (kills = 100): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'kill-'))
  try {
    const { acknowledged, lost, integrity } = await killRepeatedly(kills, directory)
    if (lost.length > 0 || integrity !== 'ok') throw new Error(`kill -9: ${lost.length} writes lost (${lost.slice(0, 5).join(', ')}), integrity ${integrity}`)
    return `kill -9: ${kills} kills, ${acknowledged} acknowledged writes, all there, integrity ${integrity}`
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

if (import.meta.main) console.log(await run(Number(process.argv[2] ?? 100)))
