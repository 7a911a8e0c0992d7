import { type Clock, toTimestamp } from '../clock.ts'
import { defined } from '../defined.ts'
import { BATCH_SIZE, DuplicateKeyError, type Store } from '../store/port.ts'
import { isOutage } from '../errors.ts'
import { type Carrier, type Failed, findOnce } from './carrier.ts'
import { type End, type FeedRecord, readFeedRecord } from './lease.ts'
import type { Pending } from './pending.ts'
import { type EventRecord, type EventType, toNumberId } from './types.ts'

const HOUR = 60 * 60 * 1000
const DAY = 24 * HOUR

/** Milliseconds. If a clock is set back by more, it was wrong, and `time` goes back with it. */
const MOST_BACK = HOUR

/** An event, with the document that carries it. */
interface Queued {
  chain: Carrier
  pending: Pending
}

/** What has become of the events of a round. */
interface Outcome {
  /** The ULIDs of the published events. */
  done: Set<string>
  /** Documents that are left out, from the event on that failed. */
  failed: Failed
}

/** Whether the store refuses an event for what it is: see Collection. */
const isRefused = (error: unknown): boolean => error instanceof TypeError

/** What rooms do by type of event. */
export type Handlers = { readonly [type in EventType]?: ((record: EventRecord) => Promise<void>) | undefined }

export interface PublishParts {
  store: Store
  now: Clock
  /** Days for which events are kept. */
  days: number
  /** What must follow an event: called before it is published, possibly more than once. Absent: nothing follows. */
  handlers?: Handlers | undefined
  /** Called with the published records. */
  onPublished: (records: EventRecord[]) => void
}

/** Writes events under consecutive numbers. */
export function createPublisher ({ store, now, days, handlers = {}, onPublished }: PublishParts) {
  const events = store.collection<EventRecord>('events')
  const feeds = store.collection<FeedRecord>('feed')

  const toExpiry = () => toTimestamp(now() + days * DAY)

  async function insertGap (number: number): Promise<void> {
    try {
      await events.insert({ id: toNumberId(number), expired_at: toExpiry() })
    } catch (error) {
      if (!(error instanceof DuplicateKeyError)) throw error
    }
  }

  /** Finds the end of the feed, and fills missing numbers with gaps, so that a late write of a previous lease holder fails. */
  async function resume (): Promise<End> {
    let { last, time = '' } = await readFeedRecord(feeds)
    for (let isMore = true; isMore;) {
      const position = { values: [toNumberId(last)], id: toNumberId(last) }
      isMore = false
      for await (const batch of events.page({ sort: [{ key: 'id', direction: 'asc' }], after: position, urgent: true })) {
        isMore = true
        for (const { id, content } of batch) {
          while (last + 1 < Number(id)) await insertGap(++last)
          last++
          time = content?.time ?? time
        }
      }
    }
    return { last, time }
  }

  /** The time of an event after one of the time `previous`. It does not go back: the write of the previous one may have taken longer. */
  const toTime = (time: string, previous: string): string =>
    time < previous && Date.parse(previous) - Date.parse(time) <= MOST_BACK ? previous : time

  function toRecord ({ chain, pending }: Queued, { last, time }: End): EventRecord {
    const { key, content } = pending
    const once = findOnce(chain, pending)
    return defined({
      id: toNumberId(last + 1),
      key,
      once,
      type: content.type as NonNullable<EventRecord['type']>,
      user: content.user_id,
      client: content.client_id,
      owner: content.owner_id,
      reason: content.reason,
      content: { ...content, time: toTime(content.time, time) },
      expired_at: toExpiry()
    })
  }

  const toEnd = ({ id, content }: EventRecord): End => ({ last: Number(id), time: content!.time })

  function toRecords (queued: readonly Queued[], end: End): EventRecord[] {
    const records: EventRecord[] = []
    for (const one of queued) {
      records.push(toRecord(one, end))
      end = toEnd(records.at(-1)!)
    }
    return records
  }

  /**
   * Publishes an event that may have been published already.
   * @returns the published record; null when another process has used the number, or has used a later one for this event
   */
  async function insert (record: EventRecord): Promise<EventRecord | null> {
    try {
      await events.insert(record)
      return record
    } catch (error) {
      if (!(error instanceof DuplicateKeyError)) throw error
      const { key, once } = record
      const published = await events.getBy('key', key!) ?? (once === undefined ? null : await events.getBy('once', once))
      // A process that was suspended has published it under a later number. The next events must come after it.
      return published === null || published.id > record.id ? null : published
    }
  }

  /** Calls the handler of an event. Unless all share the cause of a failure, its document is left out of the round. */
  async function prepare (one: Queued, end: End, failed: Failed): Promise<void> {
    try {
      await handlers[one.pending.content.type as EventType]?.(toRecord(one, end))
    } catch (error) {
      if (isOutage(error)) throw error
      failed.set(one.chain, error)
    }
  }

  /** Publishes one event after another, after a clash or a failure. @returns the new end; null as `insert` */
  async function insertEach (queued: readonly Queued[], end: End, { done, failed }: Outcome): Promise<End | null> {
    for (const one of queued) {
      if (failed.has(one.chain)) continue
      const record = toRecord(one, end)
      const published = await insert(record).catch((error: unknown) => {
        if (!isRefused(error)) throw error
        failed.set(one.chain, error)
      })
      if (published === null) return null
      if (published === undefined) {
        await insertGap(++end.last)
        continue
      }
      done.add(record.key!)
      onPublished([published])
      if (published.id === record.id) end = toEnd(published)
    }
    return end
  }

  return {
    resume,

    /**
     * Publishes events in their order. If it is interrupted, only a first part of them is published.
     * @returns the new end of the feed; null when another process has used a number
     */
    async publish (queued: readonly Queued[], end: End, { done, failed }: Outcome): Promise<End | null> {
      for (let start = 0; start < queued.length; start += BATCH_SIZE) {
        const isLeft = ({ chain }: Queued) => !failed.has(chain)
        const ready = queued.slice(start, start + BATCH_SIZE).filter(isLeft)
        await Promise.all(ready.map(async (one) => await prepare(one, end, failed)))
        const batch = ready.filter(isLeft)
        if (batch.length === 0) continue
        const records = toRecords(batch, end)
        try {
          await events.insertMany(records)
          for (const { key } of records) done.add(key!)
          onPublished(records)
          end = toEnd(records.at(-1)!)
        } catch (error) {
          if (!(error instanceof DuplicateKeyError) && !isRefused(error)) throw error
          const next = await insertEach(batch, { ...end }, { done, failed })
          if (next === null) return null
          end = next
        }
      }
      return end
    }
  }
}
