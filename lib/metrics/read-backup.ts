import type { Clock } from '../clock.ts'
import { findLastBackup } from '../maintenance/last-backup.ts'
import type { Store } from '../store/port.ts'
import type { Meter } from './meter.ts'

/**
 * Reads at each scrape how old the last backup is. An SQLite database without one counts as one of 1970, so that a timer that was never
 * enabled is seen. Other databases are backed up by other tools, which may record it.
 * @param database the store's URL; undefined where the store was handed in
 */
export function readBackup (store: Store, database: string | undefined, now: Clock, meter: Meter): void {
  const isFile = database?.startsWith('sqlite:') === true && database !== 'sqlite::memory:'
  meter.read('backup_age_seconds', 'Age of the last backup that was recorded.', async () => {
    const made = await findLastBackup(store)
    if (made === undefined && !isFile) return undefined
    return (now() - (made === undefined ? 0 : Date.parse(made))) / 1000
  })
}
