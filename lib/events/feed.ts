import { setTimeout as sleep } from 'node:timers/promises'
import type { Event } from '../../schemas/event.ts'
import { IdentityError, paramError } from '../errors.ts'
import { readFirst, readSome } from '../lists/first.ts'
import type { Store } from '../store/port.ts'
import { type FeedRecord, readFeedRecord } from './lease.ts'
import { type EventRecord, toNumberId } from './types.ts'

/** Events of one read at most. */
const FEED_BATCH = 100

/** Milliseconds between two polls of the store for events of other processes, while readers wait. */
const POLL_INTERVAL = 500

/** Milliseconds that a reader waits when there are events that it cannot read yet. */
const SHORT = 50

/** A cursor: the generation of the feed, and the number of the last event that the reader has. */
const CURSOR = /^([0-9A-Za-z]{1,16})\.(0|[1-9]\d{0,15})$/

function goneError (why: string): IdentityError {
  return new IdentityError('ErrGone', `after: ${why}`)
}

/** The event of a published record, in its public form. */
export function showEvent ({ id, key, content }: EventRecord, generation: string): Event {
  const { actor, target, ...rest } = content!
  return { id: key!, cursor: `${generation}.${Number(id)}`, ...rest, actor, target }
}

/**
 * The events in one order, for readers that follow them. A read stops at the first missing number, because its event may still
 * be published.
 */
export function createFeed ({ store, pollInterval = POLL_INTERVAL }: { store: Store, pollInterval?: number }) {
  const events = store.collection<EventRecord>('events')
  const feeds = store.collection<FeedRecord>('feed')
  const waiting = new Set<() => void>()
  let generation: string | undefined
  let polling = false
  /** The last poll of the store. */
  let reading: Promise<number | undefined> | undefined

  async function readEdge (direction: 'asc' | 'desc'): Promise<number | undefined> {
    const record = await readFirst(events, { sort: [{ key: 'id', direction }], urgent: true })
    return record && Number(record.id)
  }

  async function readLast (): Promise<number> {
    const { last } = await readFeedRecord(feeds)
    return Math.max(last, await readEdge('desc') ?? 0)
  }

  async function getGeneration (): Promise<string> {
    generation ??= (await readFeedRecord(feeds)).generation
    return generation
  }

  async function toCursor (number: number): Promise<string> {
    return `${await getGeneration()}.${number}`
  }

  async function parse (after: string): Promise<number> {
    const [, given, number] = CURSOR.exec(after) ?? []
    if (given === undefined) throw paramError('after', 'is not a cursor of the feed')
    if (given !== await getGeneration()) throw goneError('is a cursor of another feed: a backup was restored, or it is another service')
    return Number(number)
  }

  async function readAfter (number: number, limit: number): Promise<EventRecord[]> {
    const position = { values: [toNumberId(number)], id: toNumberId(number) }
    const found = await readSome(events, { sort: [{ key: 'id', direction: 'asc' }], after: position, limit, urgent: true })
    const next = Number(found[0]?.id ?? number + 1)
    const first = await isRemoved(number, next) ? next : number + 1
    const end = found.findIndex(({ id }, index) => Number(id) !== first + index)
    return end < 0 ? found : found.slice(0, end)
  }

  /**
   * Whether the events between two numbers expired before older ones, which happens after `auditDays` was lowered. All numbers up
   * to `last` are used, so a missing one was removed. Where no older events are left, the reader gets ErrGone instead.
   */
  async function isRemoved (number: number, next: number): Promise<boolean> {
    if (next === number + 1 || (await readFeedRecord(feeds)).last < next - 1) return false
    return (await readEdge('asc') ?? next) <= number
  }

  /** @throws ErrGone when events after this number were removed, and for a number that was never assigned */
  async function checkKept (number: number): Promise<void> {
    const last = await readLast()
    if (number > last) throw goneError('is ahead of the feed')
    const oldest = await readEdge('asc') ?? last + 1
    if (number < oldest - 1) throw goneError('is older than the events that are kept: begin again')
  }

  function announce (): void {
    for (const resolve of waiting) resolve()
    waiting.clear()
  }

  /** Polls for events of other processes while readers wait. */
  async function poll (last: number): Promise<void> {
    if (polling) return
    polling = true
    try {
      while (waiting.size > 0) {
        await sleep(pollInterval, undefined, { ref: false })
        if (waiting.size === 0) return
        reading = readEdge('desc')
        const now = await reading ?? last
        if (now !== last) announce()
        last = now
      }
    } catch {
      // The waiting readers read again, and get the failure.
      announce()
    } finally {
      polling = false
    }
  }

  return {
    /**
     * The events after a cursor, the oldest first.
     * @returns also the cursor to continue from
     * @throws ErrParam, ErrGone
     */
    async read ({ after, limit = FEED_BATCH }: { after: string, limit?: number }): Promise<{ events: Event[], after: string }> {
      const number = await parse(after)
      const records = await readAfter(number, Math.min(limit, FEED_BATCH))
      if (records.length === 0) await checkKept(number)
      const shown = records.filter(({ key }) => key !== undefined)
      const name = await getGeneration()
      return { events: shown.map((record) => showEvent(record, name)), after: await toCursor(Number(records.at(-1)?.id ?? number)) }
    },

    /** The event with this ULID; undefined when it is not published, or not kept any more. */
    async find (key: string): Promise<Event | undefined> {
      const record = await events.getBy('key', key)
      return record === null ? undefined : showEvent(record, await getGeneration())
    },

    /** The cursor of the last event. */
    last: async (): Promise<string> => await toCursor(await readLast()),

    /** The oldest cursor that the feed can be read from. */
    async first (): Promise<string> {
      return await toCursor((await readEdge('asc') ?? await readLast() + 1) - 1)
    },

    getGeneration,

    /**
     * Resolves when there may be events after a cursor that was read to the end, or after `timeout` milliseconds.
     * @throws as `read`
     */
    async wait (after: string, { timeout, signal }: { timeout: number, signal?: AbortSignal | undefined }): Promise<void> {
      const number = await parse(after)
      const { promise, resolve } = Promise.withResolvers<void>()
      waiting.add(resolve)
      try {
        const last = await readLast()
        // An event may have been published since the read. It may come after a missing number, so the reader still waits a little.
        const isBehind = last > number
        const timer = setTimeout(resolve, isBehind ? Math.min(timeout, SHORT) : timeout)
        const end = () => resolve()
        signal?.addEventListener('abort', end, { once: true })
        if (signal?.aborted === true) resolve()
        void poll(last)
        await promise
        signal?.removeEventListener('abort', end)
        clearTimeout(timer)
      } finally {
        waiting.delete(resolve)
      }
    },

    /** The events of published records, without gaps. */
    async show (records: readonly EventRecord[]): Promise<Event[]> {
      const name = await getGeneration()
      return records.filter(({ key }) => key !== undefined).map((record) => showEvent(record, name))
    },

    /** Waits for a poll in flight. Without waiting readers, no other one follows. */
    async settle (): Promise<void> {
      await reading?.catch(() => {})
    },

    /** The number of waiting readers. */
    countWaiting: () => waiting.size,

    /** Wakes the waiting readers: this process has published events. */
    announce
  }
}

export type Feed = ReturnType<typeof createFeed>
