import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deliver } from '../people/senders.ts'

/**
 * 4 processes on one SQLite file deliver 2,000 mails, each once; and 2,000 more while processes are killed 100 times, at most one
 * duplicate for each mail in flight.
 */
export async function run (kills = 100, mails = 2_000): Promise<string | false> {
  const directory = mkdtempSync(join(tmpdir(), 'identity-mails-'))
  try {
    const calm = await deliver(`sqlite:${join(directory, 'calm.db')}`, { processes: 4, mails, kills: 0 })
    const killed = await deliver(`sqlite:${join(directory, 'killed.db')}`, { processes: 4, mails, kills })
    const isRight = calm.mails === mails && calm.lost + calm.duplicates + killed.lost === 0 && killed.ids === 1 && killed.duplicates <= kills * killed.inFlight
    if (!isRight) console.log(JSON.stringify({ calm, killed }))
    return isRight && `mails: ${calm.mails} by 4 processes, none lost, none twice; ${killed.mails} beside ${killed.kills} kills, none lost, ${killed.duplicates} twice`
  } finally {
    rmSync(directory, { recursive: true })
  }
}
