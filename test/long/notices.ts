import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { MongoClient } from 'mongodb'
import { MONGODB_URL } from '../helpers/mongodb.ts'
import { type Mode, SCENES, killEach } from '../people/notice-kills.ts'

/** Kills at every write of every scene, in each of these modes. */
async function check (engine: string, database: string, modes: readonly Mode[]): Promise<string> {
  const closers: (() => unknown)[] = []
  const store = await openStore(database, { collections: COLLECTIONS, now: Date.now })
  try {
    let [kills, decided] = [0, 0]
    const problems: string[] = []
    for (const mode of modes) {
      for (const name of Object.keys(SCENES)) {
        const report = await killEach({ teardown: (close: () => unknown) => { closers.push(close) } }, { store, database }, name, mode)
        kills += report.decided + report.undecided
        decided += report.decided
        problems.push(...report.problems.map((problem) => `${JSON.stringify(mode)} ${problem}`))
        for (const close of closers.splice(0)) await close()
      }
    }
    if (problems.length > 0) throw new Error(`${engine}: ${problems.length} problems\n${problems.slice(0, 10).join('\n')}`)
    return `${engine}: ${kills} kills at each write of ${Object.keys(SCENES).length} changes, ${decided} of them after the decision, each change with its mail once`
  } finally {
    for (const close of closers) await close()
    await store.close()
  }
}

/**
 * Kills a process at every write between a change and its sent mail: another process publishes, with a mail server or without, the queue of
 * mails is full, or a backup of that moment is restored. On SQLite, and on MongoDB where there is a server.
 */
export async function run (every = 1): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'identity-notices-'))
  const modes: Mode[] = (['other', 'sender'] as const).flatMap((publisher) => [false, true].map((isFull) => ({ publisher, isFull, every })))
  try {
    const lines = [await check('SQLite', `sqlite:${join(directory, 'identity.db')}`, [...modes, { publisher: 'other', restoreIn: directory, every }])]
    if (MONGODB_URL !== undefined) {
      const name = `notices_${process.pid}`
      const client = new MongoClient(MONGODB_URL)
      try {
        lines.push(await check('MongoDB', `${MONGODB_URL}/${name}`, modes))
      } finally {
        await client.db(name).dropDatabase()
        await client.close()
      }
    }
    return `mails about changes: ${lines.join('\n  ')}`
  } finally {
    rmSync(directory, { recursive: true })
  }
}

if (import.meta.main) console.log(await run(Number(process.argv[2] ?? 1)))
