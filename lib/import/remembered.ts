import { IdentityError } from '../errors.ts'
import { type InboxRecord, toDeletionRange } from '../events/recorder.ts'
import type { EventRecord } from '../events/types.ts'
import { readFirst } from '../lists/first.ts'
import type { ClientRecord } from '../records/client.ts'
import { scan } from '../store/scan.ts'
import type { Store } from '../store/port.ts'

/** The most ids that are held at once. With more of them, each line reads for itself. */
const MOST = 10_000

const DELETED = { equal: { type: 'user.deleted' } }

/**
 * The ids of users who are gone, and whom events or clients still name: whoever got such an id would be taken for them. The ids of
 * clients count too, because apps know them as `sub`. Ask only about an id that no user has.
 */
export function createRemembered (store: Store) {
  const clients = store.collection<ClientRecord>('clients')
  const events = store.collection<EventRecord>('events')
  const inbox = store.collection<InboxRecord>('event_inbox')
  /** Absent before the first batch; null when there are too many. */
  let known: Set<string> | null | undefined
  let latest: string | undefined
  /** Those whose deletion is about to be published. Absent before the first batch; null when there are too many. */
  let leaving: Set<string> | null | undefined

  /** Those who were deleted, as long as an event says so, and the owners of all clients. */
  async function load (): Promise<Set<string> | null> {
    const ids = new Set<string>()
    for await (const batch of scan(events, DELETED, { key: 'key', urgent: true })) {
      for (const { user } of batch) if (user !== undefined) ids.add(user)
      if (ids.size > MOST) return null
    }
    for await (const batch of scan(clients, {})) {
      for (const { userId } of batch) if (userId !== undefined) ids.add(userId)
      if (ids.size > MOST) return null
    }
    return ids
  }

  async function readLeaving (): Promise<Set<string> | null> {
    const ids = new Set<string>()
    for await (const batch of scan(inbox, toDeletionRange('users'), { urgent: true })) {
      for (const { target } of batch) if (target !== undefined) ids.add(target)
      if (ids.size > MOST) return null
    }
    return ids
  }

  async function isLeaving (id: string): Promise<boolean> {
    return await readFirst(inbox, { filter: toDeletionRange('users', id), urgent: true }) !== undefined
  }

  return {
    /** Before each batch: learns of those who were deleted since the last one. */
    async refresh (): Promise<void> {
      // Before the events are read: who is in neither was not deleted.
      leaving = await readLeaving()
      const newest = (await readFirst(events, { filter: DELETED, sort: [{ key: 'key', direction: 'desc' }], urgent: true }))?.key
      if (known !== undefined && newest === latest) return
      latest = newest
      known = await load()
    },

    /**
     * @param isTheirs whether it is the id of the person who comes back: then only that of a client counts
     * @throws ErrBusy while the deletion of that person is not finished
     */
    async has (id: string, isTheirs = false): Promise<boolean> {
      if (isTheirs) {
        if (await isLeaving(id)) throw new IdentityError('ErrBusy', 'the deletion of the user is not finished', { headers: { 'retry-after': '1' } })
        return await clients.get(id) !== null
      }
      if (leaving?.has(id) ?? await isLeaving(id)) return true
      if (await clients.get(id) !== null) return true
      if (known !== null && known !== undefined) return known.has(id)
      const named = await Promise.all([
        readFirst(events, { filter: { equal: { user: id } }, sort: [{ key: 'key', direction: 'asc' }], urgent: true }),
        readFirst(clients, { filter: { equal: { userId: id } }, sort: [{ key: 'name', direction: 'asc' }], urgent: true })
      ])
      return named.some((document) => document !== undefined)
    }
  }
}

export type Remembered = ReturnType<typeof createRemembered>
