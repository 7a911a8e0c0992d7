import { type Clock, toTimestamp } from '../clock.ts'
import { createUlids } from '../ids.ts'
import { retryWrite } from '../retry.ts'
import { type Document, DuplicateKeyError, type Json, type Store } from '../store/port.ts'
import { keepAddress, type AddressMode } from './address.ts'
import { findOrigin, type Origin } from './origin.ts'
import { type Pending, checkRoom, listPending, toFields } from './pending.ts'
import { EVENT_TYPES, type EventContent, type Happening } from './types.ts'

/** Events that no document carries: of what expires, of what was deleted, and of what changes nothing. */
export interface InboxRecord extends Document {
  /** The collection and the id of a document whose deletion was decided. The id of this record is made of both. */
  collection?: string
  target?: string
  /** The event of the deletion, which is published last. */
  last?: string
  created_at: string
}

/** One deletion of a document is decided at a time. */
const toDeletionId = (collection: string, target: string): string => `${collection}/${target}`

/** A document that every write gives a higher revision. */
export type Versioned = Document & { revision?: number }

export interface RecorderParts {
  store: Store
  now: Clock
  /** Who acts where no request says it. */
  via: Origin['via']
  addresses: AddressMode
  /** Called when something was recorded, or is about to be. */
  onRecord: () => void
}

/** Records what happens, so that no change is without its event, and no event without its change. */
export function createRecorder ({ store, now, via, addresses, onRecord }: RecorderParts) {
  const inbox = store.collection<InboxRecord>('event_inbox')
  const generateUlid = createUlids()

  function describe ({ type, id, kind = EVENT_TYPES[type], user_id, client_id, outcome = 'success', ...rest }: Happening): EventContent {
    const origin = findOrigin() ?? { via }
    const actor = { via: origin.via, ...origin.readCaller?.() }
    const user = user_id ?? (kind === 'user' ? id : actor.user_id)
    const client = client_id ?? (kind === 'client' ? id : actor.client_id)
    const address = keepAddress(origin.address, addresses)
    return {
      type,
      time: toTimestamp(now()),
      actor,
      target: { kind, id },
      ...(user !== undefined && { user_id: user }),
      ...(client !== undefined && { client_id: client }),
      ...(address !== undefined && { address }),
      ...(origin.request_id !== undefined && { request_id: origin.request_id }),
      outcome,
      ...rest
    }
  }

  function toPending (happening: Happening): Pending {
    return { key: generateUlid(now()), content: describe(happening) }
  }

  /** Writes down that a document is to be deleted, with the events that it still carries. Somebody else may have done so. */
  async function decide (id: string, record: Omit<InboxRecord, 'id' | 'created_at'>, carried: readonly Pending[], own: Pending): Promise<void> {
    try {
      await inbox.insert({ id, ...record, created_at: toTimestamp(now()), ...toFields([...carried, own]) })
    } catch (error) {
      if (!(error instanceof DuplicateKeyError)) throw error
      if (carried.length > 0) await inbox.update(id, { set: toFields(carried) })
    }
  }

  return {
    /**
     * The fields that make events part of a write: the document is inserted or updated with them.
     * @param record the document as it was read; null for a new one
     * @throws ErrBusy when too many events of the document wait to be published
     */
    attach (record: Document | null, ...happenings: Happening[]): { [field: string]: Json } {
      if (happenings.length === 0) return {}
      checkRoom(record)
      onRecord()
      return toFields(happenings.map(toPending))
    },

    /** Records an event that no document carries. When this resolves it is durable. */
    async insert (happening: Happening): Promise<void> {
      const pending = toPending(happening)
      await inbox.insert({ id: pending.key, created_at: toTimestamp(now()), ...toFields([pending]) })
      onRecord()
    },

    /**
     * Deletes a document, and records that. The decision is written first, with the events that the document still carries; the
     * relay finishes a deletion that was interrupted after it. If the deletion was published already, the
     * relay drops the second event.
     * @returns false when there is no such document, or somebody else deleted it first
     * @throws ErrBusy
     */
    async remove (name: string, target: string, happening: Happening): Promise<boolean> {
      const collection = store.collection<Versioned>(name)
      const own = toPending(happening)
      onRecord()
      return await retryWrite('the record', async () => {
        const record = await collection.get(target)
        if (record === null) return false
        const { revision } = record
        if (revision === undefined) {
          // A record of an early release. A deletion requires the record whose events it carries.
          await collection.update(target, { increment: { revision: 1 } })
          return null
        }
        await decide(toDeletionId(name, target), { collection: name, target, last: own.key }, listPending(record), own)
        return await collection.delete(target, { equal: { revision } }) || null
      })
    }
  }
}

export type Recorder = ReturnType<typeof createRecorder>
