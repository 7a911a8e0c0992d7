import { existsSync } from 'node:fs'
import { copyFile, link, rename, rm, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type Clock, toTimestamp } from '../clock.ts'
import { paramError } from '../errors.ts'
import { keepAside, measureDatabase, vacuumInto } from '../store/copies.ts'
import { makeDirectory, writeWholeFile } from '../whole-file.ts'
import { type CopyContent, checkCopy, restoreCopy } from './copies.ts'

const MIB = 2 ** 20

/**
 * Writes a consistent copy of a database, without its free pages, while services use it. The copy gets its name only after it was read and checked.
 * @param path the database file
 * @param file the new file; an existing one is never replaced
 * @param signal stops it, and leaves no file
 * @throws ErrParam, Error
 */
export async function backUp (path: string, file: string, signal?: AbortSignal): Promise<CopyContent> {
  if (!existsSync(path)) throw new Error(`DATABASE_URL: there is no database at ${path}`)
  if (existsSync(file)) throw paramError('file', 'exists already')
  const needed = measureDatabase(path)
  const { bavail, bsize } = await statfs(dirname(file)).catch(() => { throw paramError('file', 'its folder does not exist') })
  if (bavail * bsize < needed) throw paramError('file', `needs ${Math.ceil(needed / MIB)} MiB, and ${Math.floor(bavail * bsize / MIB)} MiB are free`)
  let content: CopyContent | undefined
  await writeWholeFile(file, async (_handle, draft) => {
    await vacuumInto(path, draft, { signal })
    content = await checkCopy(draft, path, signal)
  }, link)
  return content!
}

interface RestoreOptions {
  /** The backup. It is only read. */
  file: string
  /** The database file that it becomes. */
  path: string
  /** The configured keys; the first one seals. */
  keyIds: readonly string[]
  now: Clock
  /** Stops it while the database is unchanged. */
  signal?: AbortSignal | undefined
}

/** The restored content, and the new path of the former database. */
type Restored = CopyContent & { former?: string }

/**
 * Replaces the database with a backup. All tokens and sessions in the backup end, because some were revoked after it was
 * made. Due mails and logout tokens are marked as failed, and cursors of the event feed become invalid. The former database is
 * kept in the same directory.
 * @throws ErrParam, Error; the database is then unchanged
 */
export async function restore ({ file, path, keyIds, now, signal }: RestoreOptions): Promise<Restored> {
  if (!existsSync(file)) throw paramError('file', 'does not exist')
  await makeDirectory(dirname(path))
  const former = existsSync(path) ? `${path}.before-${toTimestamp(now()).replaceAll(/[:.]/g, '-')}` : undefined
  let content: CopyContent | undefined
  await writeWholeFile(path, async (handle, draft) => {
    await copyFile(file, draft)
    // copyFile copied the mode too.
    await handle.chmod(0o600)
    try {
      content = await restoreCopy(draft, '--file', keyIds, signal)
    } finally {
      // Of a process that was ended in the middle of its changes.
      await rm(`${draft}-journal`, { force: true })
    }
  }, async (draft, name) => {
    if (former !== undefined) await keepAside(name, former)
    await rename(draft, name)
  })
  return { ...content!, ...(former !== undefined && { former }) }
}
