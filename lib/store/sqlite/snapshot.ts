import { existsSync } from 'node:fs'
import { link, rename } from 'node:fs/promises'
import { Connection } from './connection.ts'
import { DatabaseSync } from './node-sqlite.ts'

/** SQLITE_BUSY and SQLITE_LOCKED. */
const IN_USE = [5, 6]

/** The suffixes of the other files of a database. */
const LOGS = ['-wal', '-shm', '-journal']

/** Bytes of the database at this path without its free pages, including the content of its log. */
export function measureDatabase (path: string): number {
  const database = new DatabaseSync(path, { readOnly: true })
  try {
    const { bytes } = database.prepare('SELECT (page_count - freelist_count) * page_size AS bytes FROM pragma_page_count, pragma_freelist_count, pragma_page_size').get() as { bytes: number }
    return bytes
  } finally {
    database.close()
  }
}

/** Opens a copy that no other process uses. It becomes a single file without a log. */
export function openCopy (copy: string): Connection {
  const connection = new Connection(copy, { busy: 0 })
  try {
    connection.database.exec('PRAGMA journal_mode = DELETE')
    return connection
  } catch (error) {
    connection.close()
    throw error
  }
}

/** Whether an error says that another process has the database open. */
export function isInUse (error: unknown): boolean {
  return IN_USE.includes(((error as { errcode?: number }).errcode ?? 0) & 0xff)
}

/** @throws Error for a damaged file */
export function checkIntegrity (connection: Connection): void {
  const [first] = connection.all<{ integrity_check: string }>('PRAGMA integrity_check(1)')
  if (first?.integrity_check !== 'ok') throw new Error(`it is damaged: ${first?.integrity_check}`)
}

/**
 * Gives a database a second name, so that another file can take the first one. The logs of an unreadable database are renamed too.
 * @throws Error when a process has it open
 */
export async function keepAside (path: string, target: string): Promise<void> {
  try {
    // Takes the only lock that excludes every other connection. It also merges the log into the file.
    openCopy(path).close()
  } catch (error) {
    if (isInUse(error)) throw new Error(`DATABASE_URL: another process has ${path} open: stop the service first`, { cause: error })
  }
  for (const log of LOGS) {
    if (existsSync(path + log)) await rename(path + log, target + log)
  }
  await link(path, target)
}
