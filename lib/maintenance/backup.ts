import { existsSync } from 'node:fs'
import { copyFile, link, rename, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type Clock, toTimestamp } from '../clock.ts'
import { paramError } from '../errors.ts'
import { SEAL_ID, type Seal, toRestored } from '../crypto/seal.ts'
import { FEED_ID, createGeneration } from '../events/lease.ts'
import { RESTORED } from '../work/failure.ts'
import { COLLECTIONS } from '../store/collections.ts'
import { Copy, keepAside, measureDatabase, vacuumInto } from '../store/copies.ts'
import { makeDirectory, writeWholeFile } from '../whole-file.ts'

const MIB = 2 ** 20

/** The content of a complete copy of a database. */
interface CopyContent {
  users: number
  clients: number
  /** The key that its secrets are sealed with. */
  keyId: string
}

/** Collections of deliveries (lib/mail, lib/logout). */
const OUTBOXES = ['deliveries', 'logouts']

/** Collections of expiring documents that grant no access. A restore keeps them. */
const KEPT = ['attempts', 'events', 'secret_ends', 'webhook_failures', 'webhook_attempts', ...OUTBOXES]

/** Collections of records that grant access until they expire: tokens, grants, sessions, links, codes and requests in progress. */
const EPHEMERAL = COLLECTIONS.filter(({ name, expiry }) => expiry !== undefined && !KEPT.includes(name)).map(({ name }) => name)

/**
 * Reads a copy, and checks that it is intact and a database of this service.
 * @throws Error that tells the operator why it cannot be used
 */
function inspect (copy: Copy): CopyContent & { seal: Seal } {
  copy.check()
  const seal = copy.get<Seal>('meta', SEAL_ID)
  if (seal === undefined) throw new Error('no service has opened it with a key yet')
  return { users: copy.count('users'), clients: copy.count('clients'), keyId: seal.key_id, seal }
}

/** Makes a copy safe to use: changes made after the backup may have had effects outside the database. */
function setBack (copy: Copy, seal: Seal): void {
  copy.change(() => {
    copy.put('meta', seal)
    for (const name of EPHEMERAL) copy.clear(name)
    for (const name of OUTBOXES) copy.set(name, { state: 'failed', failure: RESTORED }, ['state', 'due'])
    // Readers of the feed have seen other events under the next numbers.
    copy.set('feed', { generation: createGeneration() }, ['id', FEED_ID])
  })
}

/** Opens a copy and passes it to `use`. An error names the file. */
function useCopy<T> (path: string, name: string, use: (copy: Copy) => T): T {
  let copy: Copy | undefined
  try {
    copy = new Copy(path, COLLECTIONS)
    return use(copy)
  } catch (error) {
    throw new Error(`${name}: cannot be used: ${(error as Error).message}`, { cause: error })
  } finally {
    copy?.close()
  }
}

/**
 * Reads a whole copy of the database `name`, and checks it.
 * @throws Error that names the database and says why the copy cannot be used
 */
export function checkCopy (path: string, name: string): CopyContent {
  return useCopy(path, name, inspect)
}

/**
 * Writes a consistent copy of a database, without its free pages, while services use it. The copy gets its name only after it was read and checked.
 * @param path the database file
 * @param file the new file; an existing one is never replaced
 * @throws ErrParam, Error
 */
export async function backUp (path: string, file: string): Promise<CopyContent> {
  if (!existsSync(path)) throw new Error(`DATABASE_URL: there is no database at ${path}`)
  if (existsSync(file)) throw paramError('file', 'exists already')
  const needed = measureDatabase(path)
  const { bavail, bsize } = await statfs(dirname(file)).catch(() => { throw paramError('file', 'its folder does not exist') })
  if (bavail * bsize < needed) throw paramError('file', `needs ${Math.ceil(needed / MIB)} MiB, and ${Math.floor(bavail * bsize / MIB)} MiB are free`)
  let content: CopyContent | undefined
  await writeWholeFile(file, async (_handle, draft) => {
    await vacuumInto(path, draft)
    content = checkCopy(draft, path)
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
}

/** The restored content, and the new path of the former database. */
type Restored = CopyContent & { former?: string }

/**
 * Replaces the database with a backup. All tokens and sessions in the backup end, because some were revoked after it was
 * made. Due mails and logout tokens are marked as failed, and cursors of the event feed become invalid. The former database is
 * kept in the same directory.
 * @throws ErrParam, Error; the database is then unchanged
 */
export async function restore ({ file, path, keyIds, now }: RestoreOptions): Promise<Restored> {
  if (!existsSync(file)) throw paramError('file', 'does not exist')
  await makeDirectory(dirname(path))
  const former = existsSync(path) ? `${path}.before-${toTimestamp(now()).replaceAll(/[:.]/g, '-')}` : undefined
  let content: CopyContent | undefined
  await writeWholeFile(path, async (handle, draft) => {
    await copyFile(file, draft)
    // copyFile copied the mode too.
    await handle.chmod(0o600)
    content = useCopy(draft, '--file', (copy) => {
      const { seal, ...found } = inspect(copy)
      const missing = [seal.key_id, ...seal.former ?? []].find((id) => !keyIds.includes(id))
      if (missing !== undefined) throw new Error(`it was sealed with another secret key than the configured one: it needs the one with the id ${missing}`)
      // A backup of an earlier release may lack tables.
      copy.migrate()
      setBack(copy, toRestored(seal, keyIds))
      return found
    })
  }, async (draft, name) => {
    if (former !== undefined) await keepAside(name, former)
    await rename(draft, name)
  })
  return { ...content!, ...(former !== undefined && { former }) }
}
