import { type Clock, toTimestamp } from '../clock.ts'
import { readFirst } from '../lists/first.ts'
import { BATCH_SIZE, type Collection, type Document, DuplicateKeyError, type Store } from '../store/port.ts'
import { TIMERS, type Timers } from '../timers.ts'
import { createLease, type FeedRecord, readFeedRecord } from './lease.ts'
import { runFor } from './origin.ts'
import { EVENT_DUE, type Pending, listPending, toField, toFields } from './pending.ts'
import { type InboxRecord, type Versioned, findCreation } from './recorder.ts'
import { type EventRecord, toNumberId } from './types.ts'

/** Collections whose documents carry events. */
export const CARRIERS = ['event_inbox', 'users', 'clients', 'resources', 'webhooks'] as const

/** Documents that one round of the relay reads from each of them: a short list, which never waits for a cursor. */
const BATCH = BATCH_SIZE

/** Milliseconds that a process has to carry out a deletion that it decided. After that, the relay does it. */
const GRACE = 10_000

/** Milliseconds to the first round after an event was recorded or published, and at most to the following rounds. */
const FIRST_DELAY = 20
const LAST_DELAY = 1_000

/** Milliseconds that a write with an event may take. For this time rounds follow each other at short intervals. */
const PATIENCE = 6_000

/** Milliseconds between two polls for events that a dead process has left. */
const POLL_INTERVAL = 5_000

const DAY = 24 * 60 * 60 * 1000

/** A document with the events that it carries. */
interface Carrier {
  collection: Collection<Document>
  document: Document
  /** The oldest first. */
  pending: Pending[]
  /** How many of them are published. */
  published: number
  /** Whether the document exists only for its events. */
  isInbox: boolean
  /** For a deletion: the unique key of its last event, because a document is deleted once. */
  once?: string
}

export interface RelayParts {
  store: Store
  now: Clock
  /** Days for which events are kept. */
  days: number
  /** Called before an event is published, with work that must not be lost; it may be called again. */
  onPublish: (record: EventRecord) => Promise<void>
  /** Called with the published records. */
  onPublished: (records: EventRecord[]) => void
  /** Receives failures that no caller waits for. */
  onError: (error: unknown) => void
  timers?: Timers
}

/**
 * Moves pending events from the documents that carry them to the feed, in one order. One process does this at a time, under a
 * lease. Each event is published once, because its ULID is unique in the feed, and so is its number.
 */
export function createRelay ({ store, now, days, onPublish, onPublished, onError, timers = TIMERS }: RelayParts) {
  const events = store.collection<EventRecord>('events')
  const inbox = store.collection<InboxRecord>('event_inbox')
  const feeds = store.collection<FeedRecord>('feed')
  const lease = createLease({ store, now })
  /** The number of the last event. Undefined until it was read, and after a write whose result is unknown. */
  let last: number | undefined
  let running: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined
  let delay = FIRST_DELAY
  let lookUntil = Number.NEGATIVE_INFINITY
  let started = false
  let closed = false

  const toExpiry = () => toTimestamp(now() + days * DAY)

  async function insertGap (number: number): Promise<void> {
    try {
      await events.insert({ id: toNumberId(number), expired_at: toExpiry() })
    } catch (error) {
      if (!(error instanceof DuplicateKeyError)) throw error
    }
  }

  /** Finds the last number, and fills missing numbers below it with gaps, so that a late write of a former lease holder fails. */
  async function resume (): Promise<number> {
    let { last: highest } = await readFeedRecord(feeds)
    // Short lists never wait for a cursor.
    for (let isMore = true; isMore;) {
      const position = { values: [toNumberId(highest)], id: toNumberId(highest) }
      isMore = false
      for await (const batch of events.list({ sort: [{ key: 'id', direction: 'asc' }], after: position, limit: BATCH })) {
        isMore = true
        for (const { id } of batch) {
          while (highest + 1 < Number(id)) await insertGap(++highest)
          highest++
        }
      }
    }
    return highest
  }

  /** Finishes a decided deletion. @returns its record, or null while its events cannot be published */
  async function finishDeletion (record: InboxRecord): Promise<InboxRecord | null> {
    const { collection: name, target, target_created_at, id, created_at } = record
    if (name === undefined || target === undefined) return record
    const collection = store.collection<Versioned>(name)
    const document = await collection.get(target)
    if (document === null) return record
    const isAnother = target_created_at !== undefined && findCreation(document) !== target_created_at
    if (isAnother) return record
    if (Date.parse(created_at) > now() - GRACE) return null
    const carried = listPending(document)
    if (carried.length > 0 && await inbox.update(id, { set: toFields(carried) }) === null) return null
    if (document.revision !== undefined) await collection.delete(target, { equal: { revision: document.revision } })
    return null
  }

  /** Removes published events: the deleted document carried them too, and they may have been published from there. */
  async function findUnpublished (carried: Pending[]): Promise<Pending[]> {
    const published = await Promise.all(carried.map(async ({ key }) => await events.getBy('key', key) !== null))
    return carried.filter((_, index) => !published[index])
  }

  async function toCarrier (name: string, document: Document): Promise<Carrier | null> {
    const found = { collection: store.collection<Document>(name), document, published: 0 }
    if (name !== 'event_inbox') return { ...found, pending: listPending(document), isInbox: false }
    const record = await finishDeletion(document as InboxRecord)
    if (record === null) return null
    const pending = listPending(record)
    const { last } = record
    if (last === undefined) return { ...found, pending, isInbox: true }
    const carried = await findUnpublished(pending.filter(({ key }) => key !== last))
    return { ...found, pending: [...carried, ...pending.filter(({ key }) => key === last)], isInbox: true, once: record.id }
  }

  /** The documents that carry events, those with the oldest ones first. */
  async function gather (): Promise<Carrier[]> {
    const query = { filter: { since: { [EVENT_DUE]: '' } }, sort: [{ key: EVENT_DUE, direction: 'asc' as const }], limit: BATCH }
    const found = await Promise.all(CARRIERS.map(async (name) => {
      const carriers: (Carrier | null)[] = []
      for await (const batch of store.collection<Document>(name).list(query)) {
        carriers.push(...await Promise.all(batch.map(async (document) => await toCarrier(name, document))))
      }
      return carriers
    }))
    const readable = found.flat().filter((carrier) => carrier !== null)
    // Two deletions at once can leave a record without events. It would take a place in every later batch.
    await Promise.all(readable.filter(({ pending }) => pending.length === 0).map(clear))
    const full = readable.filter(({ pending }) => pending.length > 0)
    return full.sort((one, other) => one.pending[0]!.key < other.pending[0]!.key ? -1 : 1)
  }

  /** @returns the record; null when another process has used the number, or has used a later one for this event */
  async function publish ({ pending, published: index, once }: Carrier, number: number): Promise<EventRecord | null> {
    const { key, content } = pending[index]!
    const record: EventRecord = {
      id: toNumberId(number),
      key,
      ...(once !== undefined && index === pending.length - 1 && { once }),
      type: content.type as NonNullable<EventRecord['type']>,
      ...(content.user_id !== undefined && { user: content.user_id }),
      ...(content.client_id !== undefined && { client: content.client_id }),
      ...(content.owner_id !== undefined && { owner: content.owner_id }),
      content,
      expired_at: toExpiry()
    }
    await onPublish(record)
    try {
      await events.insert(record)
      return record
    } catch (error) {
      if (!(error instanceof DuplicateKeyError)) throw error
      const published = await events.getBy('key', key) ?? (record.once === undefined ? null : await events.getBy('once', record.once))
      // A process that was suspended has published it under a later number. The next event of this document must come after it.
      if (published === null || published.id > record.id) return null
      if (published.id !== record.id) await insertGap(number)
      return published
    }
  }

  /** Removes published events from the document that carries them. */
  async function clear ({ collection, document, pending, published, isInbox }: Carrier): Promise<void> {
    const unset = pending.slice(0, published).map(({ key }) => toField(key))
    const { [EVENT_DUE]: due } = document as Document & { [EVENT_DUE]: string }
    if (published === pending.length) {
      // Unless another event was added since.
      const where = { equal: { [EVENT_DUE]: due } }
      const isCleared = isInbox ? await collection.delete(document.id, where) : await collection.update(document.id, { unset: [...unset, EVENT_DUE] }, where) !== null
      if (isCleared) return
    }
    await collection.update(document.id, { unset })
  }

  /**
   * Publishes the next event of each document. Events of one document are published one after another, so that they keep their
   * order when another process interferes.
   * @param start the number of the first one
   * @returns whether all of them are published
   */
  async function publishNext (carriers: Carrier[], start: number): Promise<boolean> {
    const results = await Promise.allSettled(carriers.map((carrier, index) => publish(carrier, start + index)))
    const records = results.map((result) => result.status === 'fulfilled' ? result.value : null)
    for (const [index, carrier] of carriers.entries()) if (records[index] !== null) carrier.published++
    onPublished(records.filter((record) => record !== null))
    const failed = results.find((result) => result.status === 'rejected')
    if (failed !== undefined) throw failed.reason
    return !records.includes(null)
  }

  /** Takes or renews the lease. @returns whether this process has it. If so, `last` is correct */
  async function hold (): Promise<boolean> {
    const right = await lease.hold(last)
    if (right !== 'held') last = undefined
    if (right !== false) last ??= await resume()
    return right !== false
  }

  /** Fills missing numbers before a late write of a former lease holder. While no event is pending, publishing does not find them. */
  async function mend (): Promise<void> {
    const { last: stored } = await readFeedRecord(feeds)
    const highest = Number((await readFirst(events, { sort: [{ key: 'id', direction: 'desc' }] }))?.id ?? 0)
    if (highest <= Math.max(stored, last ?? 0)) return
    last = undefined
    await hold()
  }

  /** Publishes the events of some documents. @returns their number, 0 when another process has the lease, BATCH to retry at once */
  async function publishSome (): Promise<number> {
    const carriers = await gather()
    if (carriers.length === 0) {
      await mend()
      return 0
    }
    if (!await hold()) return 0
    let number = last!
    last = undefined
    try {
      for (let due = carriers; due.length > 0; due = due.filter(({ pending, published }) => published < pending.length)) {
        if (!await publishNext(due, number + 1)) {
          // Another process has used a number: this process was suspended for longer than its lease.
          lease.doubt()
          return BATCH
        }
        number += due.length
      }
      last = number
      return carriers.length
    } finally {
      await Promise.all(carriers.filter(({ published }) => published > 0).map(clear))
    }
  }

  /** Publishes until a round finds fewer documents than `least`, or another process has the lease. */
  async function drain (least: number): Promise<void> {
    for (let found = least; found >= least;) {
      found = closed ? 0 : await publishSome()
      if (found > 0) delay = FIRST_DELAY
    }
  }

  function schedule (): void {
    if (closed || timer !== undefined || running !== undefined || !started) return
    const isExpected = timers.now() < lookUntil
    // Without the origin of the request that caused it.
    timer = runFor(undefined, () => timers.set(run, isExpected ? delay : POLL_INTERVAL))
    timer.unref?.()
    delay = Math.min(2 * delay, LAST_DELAY)
  }

  function begin (least: number): Promise<void> {
    timers.clear(timer)
    timer = undefined
    running = drain(least).finally(() => {
      running = undefined
      schedule()
    })
    return running
  }

  function run (): void {
    // Pauses after a round that is not full, so that the next one has more documents for each write.
    begin(BATCH).then(async () => {
      if (timers.now() >= lookUntil) await lease.release(last)
    }).catch((error: unknown) => {
      if (!closed) onError(error)
    })
  }

  /** Publishes all pending events. Resolves at once when another process has the lease. */
  async function flush (): Promise<void> {
    for (let current = running; current !== undefined; current = running) await current.catch(() => {})
    await begin(1)
  }

  return {
    /** To be called when this process has recorded an event, or is about to. */
    notice (): void {
      lookUntil = timers.now() + PATIENCE
      delay = FIRST_DELAY
      if (running !== undefined) return
      timers.clear(timer)
      timer = undefined
      schedule()
    },

    /** Publishes the events of all processes until `close`. */
    start (): void {
      started = true
      lookUntil = timers.now() + PATIENCE
      schedule()
    },

    flush,

    async close (): Promise<void> {
      closed = true
      timers.clear(timer)
      await running?.catch(() => {})
      await lease.release(last).catch(onError)
    }
  }
}

export type Relay = ReturnType<typeof createRelay>
