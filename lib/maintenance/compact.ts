import { existsSync, realpathSync } from 'node:fs'
import { rename, stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { isInUse, measureDatabase, vacuumInto } from '../store/copies.ts'
import { writeWholeFile } from '../whole-file.ts'
import { checkCopy } from './copies.ts'

const MIB = 2 ** 20

/** Milliseconds between two reports of the progress. */
const INTERVAL = 1_000

interface CompactOptions {
  /** Receives the share that is written, from 0 to 1. */
  onProgress?: (share: number) => void
  /** Stops it while the file is unchanged. */
  signal?: AbortSignal | undefined
}

/** Bytes of the file. */
interface Compacted {
  before: number
  after: number
}

/**
 * Gives the free pages of a database back to the file system: writes a copy without them beside it, checks the copy, and puts it in
 * the place of the file. A crash at any moment leaves the one or the other, whole.
 * @throws Error when a process has the database open, or the disk has no room for the copy; the file is then unchanged
 */
export async function compact (database: string, { onProgress = () => {}, signal }: CompactOptions = {}): Promise<Compacted> {
  if (!existsSync(database)) throw new Error(`DATABASE_URL: there is no database at ${database}`)
  // A link stays one.
  const path = realpathSync(database)
  const { size: before, mode, uid, gid } = await stat(path)
  const needed = measureDatabase(path)
  const { bavail, bsize } = await statfs(dirname(path))
  if (bavail * bsize < needed) {
    throw new Error(`the copy needs ${Math.ceil(needed / MIB)} MiB beside ${path}, and ${Math.floor(bavail * bsize / MIB)} MiB are free`)
  }
  await writeWholeFile(path, async (handle, draft) => {
    // The command may be run by another user than the service.
    await handle.chown(uid, gid)
    await handle.chmod(mode & 0o777)
    const report = async () => onProgress(Math.min(1, (await handle.stat()).size / needed))
    // A report that fails stops no copy.
    const timer = setInterval(() => { report().catch(() => {}) }, INTERVAL)
    try {
      await vacuumInto(path, draft, {
        alone: true,
        signal,
        // Under the lock: a service that started meanwhile would write to the previous file.
        async use () {
          await checkCopy(draft, path, signal)
          await handle.sync()
          await rename(draft, path)
        }
      })
    } catch (error) {
      if (isInUse(error)) throw new Error(`DATABASE_URL: another process has ${path} open: stop the service first`, { cause: error })
      throw error
    } finally {
      clearInterval(timer)
    }
  }, async () => {})
  return { before, after: (await stat(path)).size }
}
