import { runApart } from '../apart.ts'
import { SEAL_ID, type Seal, toRestored } from '../crypto/seal.ts'
import { FEED_ID, createGeneration } from '../events/lease.ts'
import { NOTICE_PREFIX, withRestoredNotices } from '../events/pending.ts'
import { COLLECTIONS } from '../store/collections.ts'
import { Copy } from '../store/copies.ts'
import { RESTORED } from '../work/failure.ts'
import { readMessage } from '../failure.ts'

/** The content of a complete copy of a database. */
export interface CopyContent {
  users: number
  clients: number
  /** The key that its secrets are sealed with. */
  keyId: string
}

/** Collections of deliveries (lib/mail, lib/logout). */
const OUTBOXES = ['deliveries', 'logouts']

/** Collections of expiring documents that grant no access. A restore keeps them. */
const KEPT = ['attempts', 'events', 'secret_ends', 'webhook_failures', 'webhook_attempts', ...OUTBOXES]

/** Collections whose documents carry events and mails that are not published yet. */
const CARRIERS = COLLECTIONS.filter(({ keys }) => 'event_due' in keys).map(({ name }) => name)

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
    // What was not published yet, with its mails.
    for (const name of CARRIERS) for (const found of copy.find(name, NOTICE_PREFIX)) copy.put(name, withRestoredNotices(found))
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
    throw new Error(`${name}: cannot be used: ${readMessage(error)}`, { cause: error })
  } finally {
    copy?.close()
  }
}

/** Reads a whole copy of the database `name`, and checks it. Runs apart. */
export function readCopy (path: string, name: string): CopyContent {
  const { users, clients, keyId } = useCopy(path, name, inspect)
  return { users, clients, keyId }
}

/** Makes a copy of a backup the next database. Runs apart. */
export function prepareRestored (draft: string, name: string, keyIds: readonly string[]): CopyContent {
  return useCopy(draft, name, (copy) => {
    const { seal, users, clients, keyId } = inspect(copy)
    const missing = [seal.key_id, ...seal.former ?? []].find((id) => !keyIds.includes(id))
    if (missing !== undefined) throw new Error(`it was sealed with another secret key than the configured one: it needs the one with the id ${missing}`)
    // A backup of an earlier release may lack tables.
    copy.migrate()
    setBack(copy, toRestored(seal, keyIds))
    return { users, clients, keyId }
  })
}

/**
 * Reads a whole copy of the database `name`, and checks it.
 * @throws Error that names the database and says why the copy cannot be used
 */
export async function checkCopy (path: string, name: string, signal?: AbortSignal): Promise<CopyContent> {
  return await runApart({ module: import.meta.url, name: 'readCopy', args: [path, name] }, { signal })
}

/** Checks a copy of a backup, and ends in it what has ended since. */
export async function restoreCopy (draft: string, name: string, keyIds: readonly string[], signal?: AbortSignal): Promise<CopyContent> {
  return await runApart({ module: import.meta.url, name: 'prepareRestored', args: [draft, name, [...keyIds]] }, { signal })
}
