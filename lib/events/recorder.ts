import { type Clock, toTimestamp } from '../clock.ts'
import { defined } from '../defined.ts'
import { createUlids } from '../ids.ts'
import { retryWrite } from '../retry.ts'
import { type Document, DuplicateKeyError, type Filter, type Json, type Store } from '../store/port.ts'
import type { Notice } from '../notice.ts'
import { keepAddress, type AddressMode } from './address.ts'
import { findOrigin, type Origin } from './origin.ts'
import { MACHINE, type Machine } from './machine.ts'
import { type Pending, checkRoom, listPending, readOldest, EVENT_LETTER, toFieldNames, toFields, toSame } from './pending.ts'
import { EVENT_TYPES, type EventContent, type Happening, type Recorded, endsAccess } from './types.ts'

/** Events that no other document carries: about records that expire, deleted documents, and operations that change nothing. */
export interface InboxRecord extends Document {
  /**
   * The collection and the id of a document that somebody deletes, or of a session or token whose end was decided. The sign-in session
   * of a browser is named by its uid.
   */
  collection?: string
  target?: string
  /**
   * When that document was created: a later document with the same id is another one. The id of this record is made of all three.
   * Absent in a record of an early release, and for a document without this time.
   */
  target_created_at?: string | undefined
  /** Only this revision of the document is deleted: once it has another one, and still exists, this record is void. Absent for an end. */
  target_revision?: number
  /** The key of the event that has the id of this record as its unique key. It is published after all others of the record. */
  last?: string
  created_at: string
}

/** A document whose revision every write increments. Clients have `createdAt`. */
export type Versioned = Document & { revision?: number, created_at?: string, createdAt?: string, [EVENT_LETTER]?: string }

/** The time at which a document was created. */
export const findCreation = ({ created_at, createdAt }: Versioned): string | undefined => created_at ?? createdAt

/** The same id for all deletions of a document, so that there is one at a time. An id that is in use again has another. */
export const toDeletionId = (collection: string, target: string, created_at = ''): string => `${collection}/${target}/${created_at}`

/** The records of the inbox that are deletions from this collection, or of this document. '0' follows the slash that ends the prefix. */
export function toDeletionRange (collection: string, target?: string): Pick<Filter, 'since' | 'before'> {
  const prefix = target === undefined ? collection : `${collection}/${target}`
  return { since: { id: `${prefix}/` }, before: { id: `${prefix}0` } }
}

interface RecorderParts {
  store: Store
  now: Clock
  /** The `via` of events outside of requests. */
  via: Origin['via']
  addresses: AddressMode
  machine?: Machine
}

/** Bytes that an event takes in SQLite beside its content, measured: its ids, its entries in the indexes, and space that pages leave free. */
const ROW = 1_000

/** Records events, so that every change has its event, and every event its change. */
export function createRecorder ({ store, now, via, addresses, machine = MACHINE }: RecorderParts) {
  const listeners = new Set<(key: string) => void>()
  const tell = ({ key }: Pending) => { for (const listener of listeners) listener(key) }
  const inbox = store.collection<InboxRecord>('event_inbox')
  const generateUlid = createUlids()

  function describe (
    time: number, { type, id, kind = EVENT_TYPES[type], user_id, client_id, owner_id, outcome = 'success', ...rest }: Happening
  ): EventContent {
    const origin = findOrigin() ?? { via }
    const actor = { via: origin.via, ...origin.readCaller?.() }
    const user = user_id === undefined ? (kind === 'user' ? id : actor.user_id) : user_id ?? undefined
    const client = client_id ?? (kind === 'client' ? id : actor.client_id)
    const address = keepAddress(origin.address, addresses)
    return defined({
      type,
      time: toTimestamp(time),
      actor,
      target: { kind, id },
      user_id: user,
      client_id: client,
      owner_id,
      address,
      request_id: origin.request_id,
      outcome,
      ...rest
    })
  }

  function toPending (happening: Happening, notices: readonly Notice[] = []): Pending {
    const time = now()
    return {
      key: generateUlid(time),
      content: describe(time, happening),
      made: { machine: machine.id, ticks: machine.read() },
      notices: notices.length > 0 ? notices : undefined
    }
  }

  type Decision = Omit<InboxRecord, 'id' | 'created_at'>

  /**
   * Stores an end, or a deletion that follows, with the events that the document still carries. Another caller may have stored it.
   * @returns false when it was removed meanwhile
   */
  async function announce (id: string, record: Decision, carried: readonly Pending[], own: Pending): Promise<boolean> {
    const announced = { ...record, created_at: toTimestamp(now()), ...toFields([...carried, own]) }
    try {
      await inbox.insert({ id, ...announced })
      return true
    } catch (error) {
      if (!(error instanceof DuplicateKeyError)) throw error
    }
    const other = await inbox.get(id)
    if (other === null) return false
    const { target_revision: latest = -1, last } = other
    if (latest >= (record.target_revision ?? -1)) return true
    // That deletion is void, and this one takes its place.
    return await inbox.update(id, { set: announced, unset: toFieldNames(last!) }, toSame(other)) !== null
  }

  return {
    /** Calls a function with the ULID of each event that was recorded, or is about to be. */
    listen: (listener: (key: string) => void): void => { listeners.add(listener) },

    /**
     * The fields that make events part of a write: the document is inserted or updated with them.
     * @param record the document as it was read; null for a new one
     * @throws ErrBusy when too many events of the document wait to be published
     */
    attach (record: Document | null, { happened = [], notices }: Recorded): { [field: string]: Json } {
      if (happened.length === 0) return {}
      checkRoom(record, happened.some(endsAccess))
      const added = happened.map((one, index) => toPending(one, index === 0 ? notices : []))
      for (const pending of added) tell(pending)
      return toFields(added, record === null ? undefined : readOldest(record))
    },

    /** The bytes that an event takes, as long as it is stored. */
    measure: (happening: Happening): number => Buffer.byteLength(JSON.stringify(describe(now(), happening))) + ROW,

    /**
     * Records an event that no document carries, with the mails about it. It is durable when this resolves.
     * @param once the unique key of the event: of several with the same one, the first is published. Absent: it has none
     */
    async insert (happening: Happening, notices: readonly Notice[] = [], once?: string): Promise<void> {
      const pending = toPending(happening, notices)
      const record = defined({ created_at: toTimestamp(now()), ...toFields([pending]), last: once === undefined ? undefined : pending.key })
      try {
        await inbox.insert({ id: once ?? pending.key, ...record })
      } catch (error) {
        if (once === undefined || !(error instanceof DuplicateKeyError)) throw error
      }
      tell(pending)
    },

    /**
     * Decides the end of a session or token, with its event, by one durable write. The caller then deletes what ends. If it is
     * interrupted, the relay of any process finishes that at once, before it publishes the event (RelayParts.ends).
     * @param since distinguishes an end from earlier ones of the same target
     */
    async end (collection: string, target: string, since: string, happening: Happening): Promise<void> {
      const own = toPending(happening)
      await announce(toDeletionId(collection, target, since), { collection, target, target_created_at: since, last: own.key }, [], own)
      tell(own)
    },

    /**
     * Deletes a document, and records the deletion. The event is stored first, beside the document, and published only when the
     * document is gone. After an interruption, or a failure of the deletion, the relay drops the event and the document stays. If
     * another deletion of the document was already published, the relay drops the second event.
     * @param permit called with the record that is deleted. An error from it prevents the deletion. It returns the mails about that
     * @returns false when there is no such document, or another caller deleted it first
     * @throws ErrBusy
     */
    async remove<T extends Document> (
      name: string, target: string, happening: Happening, permit?: (record: T) => Promise<readonly Notice[] | void>
    ): Promise<boolean> {
      const collection = store.collection<T & Versioned>(name)
      return await retryWrite('the record', async () => {
        const record = await collection.get(target)
        if (record === null) return false
        const { revision } = record
        if (revision === undefined) {
          // A record of an early release has no revision, and the deletion needs one: it deletes only the version that it has read.
          await collection.update(target, { increment: { revision: 1 } })
          return null
        }
        const notices = await permit?.(record) ?? []
        const target_created_at = findCreation(record)
        // Another event in each attempt: `event_due` then tells the attempts apart.
        const own = toPending(happening, notices)
        tell(own)
        const letter = record[EVENT_LETTER]
        const deletion = defined({
          collection: name, target, target_created_at, target_revision: revision, last: own.key, [EVENT_LETTER]: letter
        })
        if (!await announce(toDeletionId(name, target, target_created_at), deletion, listPending(record), own)) return null
        return await collection.delete(target, { equal: { revision } }) || null
      })
    }
  }
}

export type Recorder = ReturnType<typeof createRecorder>
