import { runApart } from '../../apart.ts'
import { DatabaseSync } from './node-sqlite.ts'

/** Milliseconds to wait while another process opens the database. */
const BUSY = 10_000

interface VacuumOptions {
  /** No other connection may have the database open, until the end of `use`. */
  alone?: boolean
  /** Is called with the copy written, while a lock is still held. No signal stops it. */
  use?: () => Promise<unknown>
  signal?: AbortSignal | undefined
}

/** Keeps the connection, and with it the lock, until the process ends. */
const open: unknown[] = []

/** Writes the copy, in a process of its own. With `alone` it takes the lock that excludes every other connection, and merges the log into the file. */
export function vacuum (path: string, copy: string, alone: boolean): void {
  const database = new DatabaseSync(path, { readOnly: !alone, timeout: alone ? 0 : BUSY })
  open.push(database)
  if (alone) database.exec('PRAGMA journal_mode = DELETE; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT')
  database.prepare('VACUUM INTO ?').run(copy)
}

/**
 * Copies the content of one moment without the free pages into an empty file, on a connection of its own. Other processes may read and
 * write the database, unless `alone`. Memory does not grow with the database. The copy is not synced.
 * @throws Error of SQLite: SQLITE_BUSY when `alone` and a process has the database open
 */
export async function vacuumInto (path: string, copy: string, { alone = false, use, signal }: VacuumOptions = {}): Promise<void> {
  await runApart({ module: import.meta.url, name: 'vacuum', args: [path, copy, alone] }, { use, signal })
}
