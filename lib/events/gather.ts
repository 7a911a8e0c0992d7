import { decodeTime } from 'ulid'
import { type Clock, toTimestamp } from '../clock.ts'
import { isAhead } from '../deadline.ts'
import { isOutage } from '../errors.ts'
import { scan } from '../store/scan.ts'
import { BATCH_SIZE, type Collection, type Document, type Store } from '../store/port.ts'
import type { Carrier, Failed } from './carrier.ts'
import { DEAD_LETTERS, type DeadLetters } from './dead-letters.ts'
import { EVENT_DUE, EVENT_LETTER, type Pending, listPending, readOldest, toDue, toFieldNames, toSame } from './pending.ts'
import { type InboxRecord, type Versioned, findCreation } from './recorder.ts'
import type { EventRecord } from './types.ts'

/** Collections whose documents carry events. */
export const CARRIERS = ['event_inbox', 'users', 'clients', 'resources', 'webhooks'] as const

/** Documents that one round reads from each of them, at most. A round that does not read all must leave most of their events. */
export const BATCH = 5 * BATCH_SIZE

/** Milliseconds that a process has for a deletion whose event it has stored. After that, the relay withdraws it. */
const GRACE = 10_000

type Due = Document & { [EVENT_DUE]: string }

/** Collections whose documents exist only for their events. */
const OWN: readonly string[] = ['event_inbox', DEAD_LETTERS]

/** Deletes what a decided end left, for each collection of an inbox record. It may be called again, and for what is gone. */
export type Ends = { readonly [collection: string]: ((target: string) => Promise<void>) | undefined }

interface GatherParts {
  store: Store
  now: Clock
  ends: Ends
  deadLetters: Pick<DeadLetters, 'join' | 'readDue'>
  /** Receives failures of the store to finish an end. Its event waits, the others do not. */
  onError: (error: unknown) => void
}

/** Finds the documents that carry events, and removes published events from them. */
export function createGatherer ({ store, now, ends, deadLetters, onError }: GatherParts) {
  const events = store.collection<EventRecord>('events')

  /** Withdraws a deletion that its caller did not carry out in time. @returns the record if the document was deleted, or else null */
  async function settleDeletion (own: Collection<Document>, record: InboxRecord, name: string, target: string): Promise<InboxRecord | null> {
    const { id, target_created_at, created_at } = record
    const collection = store.collection<Versioned>(name)
    const document = await collection.get(target)
    if (document === null || (target_created_at !== undefined && findCreation(document) !== target_created_at)) return record
    if (isAhead({ at: toTimestamp(Date.parse(created_at) + GRACE), longest: GRACE }, now())) return null
    const { revision = 0 } = document
    const { target_revision = revision } = record
    // With another revision of the document, a write of the caller that is still under way deletes nothing.
    const isVoid = revision !== target_revision || await collection.update(target, { increment: { revision: 1 } }, { equal: { revision } }) !== null
    if (isVoid) await own.delete(id, toSame(record))
    return null
  }

  /** Finishes an end that a record of the inbox decided, or settles a deletion. @returns the record, or null while its events cannot be published */
  async function finish (own: Collection<Document>, record: InboxRecord): Promise<InboxRecord | null> {
    const { collection: name, target } = record
    if (name === undefined || target === undefined) return record
    const end = ends[name]
    if (end === undefined) return await settleDeletion(own, record, name, target)
    try {
      await end(target)
      return record
    } catch (error) {
      if (!isOutage(error)) throw error
      onError(error)
      return null
    }
  }

  /**
   * Removes published events: the deleted document carried them too, and they may have been published from there. Those with mails stay,
   * because the mails may not have been stored.
   */
  async function findUnpublished (carried: Pending[]): Promise<Pending[]> {
    const published = await Promise.all(carried.map(async ({ key }) => await events.getBy('key', key) !== null))
    return carried.filter(({ notices }, index) => notices !== undefined || !published[index])
  }

  async function toCarrier (name: string, document: Document): Promise<Carrier | null> {
    const collection = store.collection<Document>(name)
    const isOwn = OWN.includes(name)
    const record: InboxRecord | Document | null = isOwn ? await finish(collection, document as InboxRecord) : document
    if (record === null || (name !== DEAD_LETTERS && await deadLetters.join({ name, document }))) return null
    const pending = listPending(record)
    // Throws for what is no ULID.
    for (const { key } of pending) decodeTime(key)
    const found = { name, collection, document, pending }
    const { last } = record as InboxRecord
    if (!isOwn || last === undefined) return found
    const carried = await findUnpublished(pending.filter(({ key }) => key !== last))
    return { ...found, pending: [...carried, ...pending.filter(({ key }) => key === last)], once: record.id }
  }

  async function toCarriers (name: string, documents: readonly Document[], failed: Failed): Promise<Carrier[]> {
    const found = await Promise.all(documents.map(async (document) => {
      try {
        return await toCarrier(name, document)
      } catch (error) {
        if (isOutage(error)) throw error
        failed.set({ name, document }, error)
        return null
      }
    }))
    return found.filter((carrier) => carrier !== null)
  }

  /** The documents with pending events, those with the oldest ones first, at most BATCH. */
  async function readDue (collection: Collection<Due>): Promise<Due[]> {
    const documents: Due[] = []
    for await (const batch of scan(collection, { since: { [EVENT_DUE]: '' } }, { key: EVENT_DUE, urgent: true })) {
      documents.push(...batch)
      if (documents.length >= BATCH) break
    }
    return documents
  }

  /** @returns also the lowest ULID that an unread document may carry; absent when all were read */
  async function gatherFrom (name: string, failed: Failed): Promise<{ carriers: Carrier[], cut?: string | undefined }> {
    const documents = await readDue(store.collection<Due>(name))
    const carriers = await toCarriers(name, documents, failed)
    return { carriers, cut: documents.length < BATCH ? undefined : readOldest(documents.at(-1)!) }
  }

  /** Removes events from the document that carries them. */
  async function clear ({ name, collection, document, pending }: Carrier, isDone: (pending: Pending) => boolean): Promise<void> {
    const unset = pending.filter(isDone).flatMap(({ key, notices }) => toFieldNames(key).slice(0, notices === undefined ? 1 : 2))
    const left = pending.filter((one) => !isDone(one))
    // Unless another event was added since.
    const where = toSame(document)
    const isCleared = left.length > 0
      ? await collection.update(document.id, { set: { [EVENT_DUE]: toDue(left) }, unset }, where) !== null
      : OWN.includes(name)
        ? await collection.delete(document.id, where)
        : await collection.update(document.id, { unset: [...unset, EVENT_DUE, EVENT_LETTER] }, where) !== null
    if (!isCleared && unset.length > 0) await collection.update(document.id, { unset })
  }

  /** Whether EVENT_DUE is far too low. Such documents would take places in every batch, and `cut` would never rise. */
  const isStale = ({ document, pending }: Carrier): boolean => pending.every(({ key }) => key > readOldest(document)!)

  async function repair (carrier: Carrier): Promise<void> {
    await clear(carrier, () => false)
    const { document, pending } = carrier
    if (pending.length > 0) carrier.document = { ...document, [EVENT_DUE]: toDue(pending) } as Document
  }

  return {
    /** The documents that carry events, at most BATCH of each collection. */
    async gather (): Promise<{ carriers: Carrier[], failed: Failed, cut?: string | undefined }> {
      const [first, ...others] = CARRIERS
      const failed: Failed = new Map()
      // The inbox last: the event of a document that was deleted meanwhile has moved there.
      const found = await Promise.all(others.map(async (name) => await gatherFrom(name, failed)))
      found.push(await gatherFrom(first, failed), { carriers: await toCarriers(DEAD_LETTERS, await deadLetters.readDue(), failed) })
      const carriers = found.flatMap((part) => part.carriers)
      // Two deletions at once can leave a record without events.
      await Promise.all(carriers.filter(isStale).map(repair))
      const cut = found.map((part) => part.cut).filter((one) => one !== undefined).sort()[0]
      return { carriers: carriers.filter(({ pending }) => pending.length > 0), failed, cut }
    },

    clear
  }
}
