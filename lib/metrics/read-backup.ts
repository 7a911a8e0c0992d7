import { findLastBackup } from '../maintenance/last-backup.ts'
import type { Store } from '../store/port.ts'
import type { Meter } from './meter.ts'

/**
 * Reads at each scrape when the last backup was made. An SQLite database without one counts as one of 1970, so that a timer that was never
 * enabled is seen. Other databases are backed up by other tools, which may record it.
 * @param database the store's URL; undefined where the store was handed in
 */
export function readBackup (store: Store, database: string | undefined, meter: Meter): void {
  const isFile = database?.startsWith('sqlite:') === true && database !== 'sqlite::memory:'
  meter.read('last_backup_timestamp_seconds', 'Time of the last backup that was recorded.', async () => {
    const made = await findLastBackup(store)
    return made === undefined ? isFile ? 0 : undefined : Date.parse(made) / 1000
  })
}
