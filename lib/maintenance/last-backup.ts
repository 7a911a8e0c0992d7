import { type Clock, toTimestamp } from '../clock.ts'
import type { Document, Store } from '../store/port.ts'

/** When the last backup was made that this database knows of. */
export interface BackupRecord extends Document {
  made_at: string
}

export const LAST_BACKUP = 'last-backup'

/** Keeps that a backup was made, for the metric and its alert. */
export async function recordBackup (store: Store, now: Clock): Promise<string> {
  const made_at = toTimestamp(now())
  await store.collection<BackupRecord>('meta').put({ id: LAST_BACKUP, made_at })
  return made_at
}

/** ISO 8601; undefined: none was ever recorded. */
export async function findLastBackup (store: Store): Promise<string | undefined> {
  return (await store.collection<BackupRecord>('meta').get(LAST_BACKUP))?.made_at
}
