import type { KeyObject } from 'node:crypto'
import type { Event, EventListQuery } from '../../schemas/event.ts'
import { type Clock, toTimestamp } from '../clock.ts'
import type { Page } from '../lists/cursor.ts'
import type { Actor } from '../roles.ts'
import type { Store } from '../store/port.ts'
import { STALL } from '../work/pace.ts'
import type { Work } from '../work/watch.ts'
import type { AddressMode } from './address.ts'
import { createFailures } from './failures.ts'
import { type Feed, createFeed } from './feed.ts'
import type { Ends } from './gather.ts'
import { createFollower } from './follower.ts'
import { createLetterList } from './letters.ts'
import { createEventList } from './list.ts'
import { findOldestPending } from './oldest.ts'
import type { Origin } from './origin.ts'
import { createRecorder } from './recorder.ts'
import type { Pending } from './pending.ts'
import { createRelay } from './relay.ts'
import { createRevocations } from './revocations.ts'
import type { EventRecord, EventType } from './types.ts'

interface EventOptions {
  /** The `via` of events outside of requests. */
  via: Origin['via']
  /** How much of a network address is stored. */
  addresses: AddressMode
  /** Days for which events are kept. */
  days: number
}

interface EventParts extends EventOptions {
  store: Store
  now: Clock
  /** The key of the hashes that stand for unknown accounts. */
  getKey: () => KeyObject
  /** Called before an event is published, possibly more than once. */
  onPublish: (record: EventRecord) => Promise<void>
  /** Stores the mails about a published event: see RelayParts. */
  acceptMails?: ((event: Pending, name: string) => Promise<void>) | undefined
  /** Receives the events that this process published, for the log. */
  onPublished: (events: Event[]) => void
  onError: (error: unknown) => void
  /** Finishes decided ends of sessions. A function, because the sessions are created later. Absent: there are none. */
  getEnds?: () => Ends
}

/** The events, for embedders and the API. */
export interface Events extends Pick<Feed, 'read' | 'find' | 'first' | 'last' | 'wait' | 'countWaiting'> {
  page (query?: EventListQuery, actor?: Actor): Promise<Page<Event>>
  list (query?: EventListQuery): AsyncIterable<Event[]>
  listOwn (user_id: string): Promise<Event[]>
  listOfClients (owner_id: string): Promise<Event[]>
  /**
   * Calls a function for each event of one type, or of all types, from now on while this process runs. Best effort, unlike `read`.
   * @returns a function that removes the listener
   */
  on (type: EventType | '*', listener: (event: Event) => void): () => void
  /** Publishes recorded events now, instead of in the next round of the relay. */
  flush (): Promise<void>
}

/** Creates the recorder, the relay and the feed: everything about events, for the services. */
export function createEvents ({ store, now, via, addresses, days, getKey, onPublish, acceptMails, onPublished, onError, getEnds }: EventParts) {
  const feed = createFeed({ store })
  const relay = createRelay({
    store,
    now,
    days,
    onPublish,
    acceptMails,
    onError,
    ...(getEnds !== undefined && { getEnds }),
    onPublished (records) {
      feed.announce()
      feed.show(records).then(onPublished, onError)
    }
  })
  const recorder = createRecorder({ store, now, via, addresses, onRecord: relay.notice })
  const failures = createFailures({ recorder, getKey, onError })
  const revocations = createRevocations({ recorder, onError })
  const follower = createFollower({ feed, onError })
  async function flush (): Promise<void> {
    await Promise.all([failures.settle(), revocations.settle()])
    await relay.flush()
  }
  const { read, find, first, last, wait, countWaiting } = feed
  const events: Events = { read, find, first, last, wait, countWaiting, ...createEventList({ store, feed }), on: follower.on, flush }
  return {
    events,
    recorder,
    failures,
    revocations,
    /** Publishes the events of all processes until `close`. */
    start: relay.start,
    /** The publication, for operators. */
    work: {
      ...createLetterList({ store, now }),
      pace: relay.pace,
      async findStall () {
        const oldest = await findOldestPending(store)
        return oldest === undefined || oldest > now() - STALL ? undefined : toTimestamp(oldest)
      }
    } satisfies Work,
    async close (): Promise<void> {
      await Promise.all([follower.close(), failures.close(), revocations.close()])
      await relay.close()
      await feed.settle()
    }
  }
}
