import { statSync } from 'node:fs'
import { runApart } from '../../apart.ts'
import { COLLECTIONS } from '../collections.ts'
import type { EngineReport } from '../engine-report.ts'
import { DatabaseSync } from './node-sqlite.ts'
import { listTables, readTables } from './tables.ts'

/** KiB of pages that the check caches, and bytes of the file that it maps. */
const CACHE = 64 * 1024
const MAPPED = 2 ** 36

/** The most lines of SQLite's own check. */
const LINES = 100

/** Checks a file. Runs apart. */
export function readReport (path: string): EngineReport {
  const database = new DatabaseSync(path, { readOnly: true })
  try {
    // The check reads every index entry by itself: through memory that costs a fraction of the calls.
    database.exec(`PRAGMA cache_size = -${CACHE}; PRAGMA mmap_size = ${MAPPED}`)
    const all = <T> (sql: string) => database.prepare(sql).all() as T[]
    const broken = all<{ integrity_check: string }>(`PRAGMA integrity_check(${LINES})`).map(({ integrity_check: line }) => line).filter((line) => line !== 'ok')
    const found = readTables({ all })
    const expected = new Set(listTables(COLLECTIONS))
    const [sizes] = all<Record<string, number>>(`SELECT page_size, page_count, freelist_count AS free_pages
      FROM pragma_page_size, pragma_page_count, pragma_freelist_count`)
    return {
      broken,
      missing: [...expected].filter((name) => !found.has(name)),
      unknown: [...found].filter((name) => !expected.has(name)),
      version: all<{ version: string }>('SELECT sqlite_version() AS version')[0]!.version,
      sizes: { file_bytes: statSync(path).size, wal_bytes: statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0, ...sizes }
    }
  } finally {
    database.close()
  }
}

/**
 * Checks a file that services may have open: SQLite's integrity check, and the tables. The lines name tables and indexes, and no content.
 * @throws Error of SQLite for a file that is not a database
 */
export async function inspectFile (path: string, signal?: AbortSignal): Promise<EngineReport> {
  return await runApart({ module: import.meta.url, name: 'readReport', args: [path] }, { signal })
}
