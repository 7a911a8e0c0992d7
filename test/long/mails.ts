import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MongoClient } from 'mongodb'
import { MONGODB_URL } from '../helpers/mongodb.ts'
import { deliver } from '../people/senders.ts'

const PROCESSES = 4

async function measure (engine: string, makeDatabase: (name: string) => string, kills: number, mails: number): Promise<string> {
  const calm = await deliver(makeDatabase('calm'), { processes: PROCESSES, mails, kills: 0 })
  const killed = await deliver(makeDatabase('killed'), { processes: PROCESSES, mails, kills })
  const isCalm = calm.mails === mails && calm.lost + calm.duplicates + calm.inFlight === 0
  // At most one duplicate of each mail that was in flight at a kill. Mail programs recognize duplicates by the Message-ID.
  const isDurable = killed.lost === 0 && killed.ids === 1 && killed.copies <= 2 && killed.duplicates <= killed.inFlight
  if (!isCalm || !isDurable) throw new Error(`${engine}: ${JSON.stringify({ calm, killed })}`)
  return `${engine}: ${calm.mails} by ${PROCESSES} processes, none lost, none twice; ${killed.mails} beside ${killed.kills} kills, none lost, ${killed.inFlight} in flight at a kill, ${killed.duplicates} of them twice`
}

/**
 * 4 processes on one database deliver 2,000 mails, each once; and 2,000 more while processes are killed 100 times, at most one
 * duplicate of each mail in flight. On SQLite, and on MongoDB where there is a server.
 */
export async function run (kills = 100, mails = 2_000): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'identity-mails-'))
  try {
    const lines = [await measure('SQLite', (name) => `sqlite:${join(directory, `${name}.db`)}`, kills, mails)]
    if (MONGODB_URL !== undefined) {
      const names: string[] = []
      const makeDatabase = (name: string) => `${MONGODB_URL}/${names[names.push(`mails_${name}_${process.pid}`) - 1]}`
      const client = new MongoClient(MONGODB_URL)
      try {
        lines.push(await measure('MongoDB', makeDatabase, kills, mails))
      } finally {
        for (const name of names) await client.db(name).dropDatabase()
        await client.close()
      }
    }
    return `mails: ${lines.join('\n  ')}`
  } finally {
    rmSync(directory, { recursive: true })
  }
}

if (import.meta.main) console.log(await run(Number(process.argv[2] ?? 100), Number(process.argv[3] ?? 2_000)))
