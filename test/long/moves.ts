import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { fileURLToPath } from 'node:url'
import { move } from '../../lib/maintenance/move.ts'
import { openStore } from '../../lib/store/index.ts'
import type { Store, StoreOptions } from '../../lib/store/port.ts'
import { COLLECTIONS, type Thing } from '../lib/store/conformance/collections.ts'

/** When the process is killed, relative to a write. */
export type When = 'before' | 'during' | 'after'

const options: StoreOptions = { collections: COLLECTIONS, now: Date.now }
const DOCUMENTS = 250

async function use<R> (url: string, run: (store: Store) => Promise<R>, moving = true): Promise<R> {
  const store = await openStore(url, { ...options, moving })
  try {
    return await run(store)
  } finally {
    await store.close()
  }
}

async function readAll (store: Store): Promise<Thing[]> {
  const all: Thing[] = []
  for (const { name } of COLLECTIONS) for await (const batch of store.collection<Thing>(name).stream()) all.push(...batch)
  return all
}

/** Whether the process was killed before it had finished. */
async function runChild (args: string[]): Promise<boolean> {
  const child = spawn(process.execPath, [fileURLToPath(new URL('../fixtures/moving-child.ts', import.meta.url)), ...args], { stdio: ['ignore', 'ignore', 'inherit'] })
  const [code, signal] = await once(child, 'close') as [number | null, string | null]
  if (signal === null && code !== 0) throw new Error(`the moving process ended with ${code}`)
  return signal !== null
}

async function refusal (url: string): Promise<string> {
  return await use(url, async () => 'opened', false).catch((error: Error) => error.message)
}

/**
 * Kills a move at each of its writes, checks that nothing starts on a marked store, repeats the move, and compares the stores.
 * @param makeTarget the URL of another empty database each time
 * @returns the number of kills
 * @throws Error when a move breaks a promise
 */
export async function killMoves (directory: string, makeTarget: () => string, ways: readonly When[], step = 1): Promise<number> {
  const template = join(directory, 'template.db')
  const before = await use(`sqlite:${template}`, async (store) => {
    await store.collection<Thing>('things').insertMany(Array.from({ length: DOCUMENTS }, (_, number) => ({ id: `t${number}`, name: `n${number}`, aliases: [`a${number}`] })))
    await store.collection<Thing>('owners').insert({ id: 'o' })
    return await readAll(store)
  })
  let kills = 0
  for (const when of ways) {
    for (let at = 1; ; at += step) {
      const label = `killed ${when} write ${at}`
      const check = (holds: boolean, what: string) => {
        if (!holds) throw new Error(`${label}: ${what}`)
      }
      const path = join(directory, `${when}-${at}.db`)
      copyFileSync(template, path)
      const [from, to] = [`sqlite:${path}`, makeTarget()]
      if (!await runChild([from, to, when, String(at)])) break
      kills++
      await use(from, (source) => use(to, async (target) => {
        const [{ state: here }, { state: there }] = [await source.state.read(), await target.state.read()]
        // At the first write no store is marked, and after the last one only the source.
        if (here.move !== undefined) check(/: it (is being|was) moved to the target/.test(await refusal(from)), 'the source opens')
        if (there.move !== undefined) check(/: it is the target of an unfinished move from the source/.test(await refusal(to)), 'the target opens')
        const again = move({ from: { store: source, name: 'a' }, to: { store: target, name: 'b' }, collections: COLLECTIONS, now: Date.now })
        if (here.move?.isDone && there.move === undefined) check(await again.then(() => false, ({ message }: Error) => message.startsWith('from: was moved to')), 'it moves twice')
        else check((await again)[0]?.documents === DOCUMENTS, 'not everything is compared')
        check(isDeepStrictEqual(await readAll(target), before), 'the target differs')
      }))
    }
  }
  return kills
}

/** The long test: every write of a move, in three ways. Resolves to a line of figures. */
export async function run (): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'moves-'))
  try {
    let targets = 0
    const kills = await killMoves(directory, () => `sqlite:${join(directory, `target-${targets++}.db`)}`, ['before', 'during', 'after'])
    return `move: ${kills} kills, each move went on and ended with equal documents`
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

if (import.meta.main) console.log(await run())
