import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MongoClient } from 'mongodb'
import { MONGODB_URL } from '../helpers/mongodb.ts'
import { interleave } from '../people/interleavings.ts'

async function check (engine: string, database: string, runs: number, seed: number): Promise<string> {
  const closers: (() => Promise<void>)[] = []
  try {
    const { orders, outcomes, problems } = await interleave({ teardown: (close) => { closers.push(close) } }, { database, runs, seed })
    for (const [outcome, count] of Object.entries(outcomes).sort()) console.log(`  ${count} ${outcome}`)
    if (problems.length > 0) throw new Error(`${engine}: ${problems.length} of ${runs} races\n${problems.slice(0, 5).join('\n')}`)
    return `${engine}: ${runs} races from seed ${seed}, ${orders} different orders, ${Object.keys(outcomes).length} outcomes, one winner each`
  } finally {
    for (const close of closers) await close()
  }
}

/**
 * Races resets with resets, password changes, disabling and the undo of a change of address, and invitations with sign-ups, over
 * HTTP in random orders of their store calls. On SQLite, and on MongoDB if there is a server.
 * @param seed of the first race
 */
export async function run (runs = 10_000, seed = Math.floor(Date.now() / 86_400_000) * 100_000, engines = ['SQLite', 'MongoDB']): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'interleavings-'))
  const lines: string[] = []
  try {
    if (engines.includes('SQLite')) lines.push(await check('SQLite', `sqlite:${join(directory, 'identity.db')}`, runs, seed))
    if (engines.includes('MongoDB') && MONGODB_URL !== undefined) {
      const name = `interleavings_${process.pid}`
      const client = new MongoClient(MONGODB_URL)
      try {
        lines.push(await check('MongoDB', `${MONGODB_URL}/${name}`, runs, seed))
      } finally {
        await client.db(name).dropDatabase()
        await client.close()
      }
    }
    return `interleavings: ${lines.join('\n  ')}`
  } finally {
    rmSync(directory, { recursive: true })
  }
}

if (import.meta.main) {
  const [runs, seed, ...engines] = process.argv.slice(2)
  console.log(await run(runs === undefined ? undefined : Number(runs), seed === undefined ? undefined : Number(seed), engines.length > 0 ? engines : undefined))
}
