import { statSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { parsePath } from '../store/sqlite.ts'
import type { Meter } from './meter.ts'

/**
 * Reads at each scrape the size of an SQLite database and of its log, and the free space of its disk. Another store has none of these.
 * @param database the store's URL; undefined where the store was handed in
 */
export function readDisk (database: string | undefined, meter: Meter): void {
  const path = database?.startsWith('sqlite:') === true && database !== 'sqlite::memory:' ? parsePath(database) : undefined
  const measure = (suffix: string) => path === undefined ? undefined : statSync(path + suffix, { throwIfNoEntry: false })?.size ?? 0
  meter.read('wal_bytes', 'Size of the write-ahead log of an SQLite database.', () => measure('-wal'))
  meter.read('database_bytes', 'Size of the file of an SQLite database.', () => measure(''))
  meter.read('disk_free_bytes', 'Free space of the disk of an SQLite database.', async () => {
    if (path === undefined) return
    const { bavail, bsize } = await statfs(dirname(path))
    return bavail * bsize
  })
}
