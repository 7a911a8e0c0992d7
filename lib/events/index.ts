import type { KeyObject } from 'node:crypto'
import type { Event, EventListQuery } from '../../schemas/event.ts'
import type { Clock } from '../clock.ts'
import type { Page } from '../lists/cursor.ts'
import type { Actor } from '../roles.ts'
import type { Store } from '../store/port.ts'
import type { AddressMode } from './address.ts'
import { type Failures, createFailures } from './failures.ts'
import { type Feed, createFeed } from './feed.ts'
import { createFollower } from './follower.ts'
import { createEventList } from './list.ts'
import type { Origin } from './origin.ts'
import { type Recorder, createRecorder } from './recorder.ts'
import { createRelay } from './relay.ts'
import type { EventRecord, EventType } from './types.ts'

export interface EventOptions {
  /** Who acts where no request says it. */
  via: Origin['via']
  /** How much of a network address is kept. */
  addresses: AddressMode
  /** Days for which events are kept. */
  days: number
}

export interface EventParts extends EventOptions {
  store: Store
  now: Clock
  /** The key of the hashes that stand for unknown accounts. */
  key: KeyObject
  /** Called before an event is published, and perhaps again. */
  onPublish: (record: EventRecord) => Promise<void>
  /** Told of the events that this process published, for the log. */
  onPublished: (events: Event[]) => void
  onError: (error: unknown) => void
}

/** What happened, for embedders and the API. */
export interface Events extends Pick<Feed, 'read' | 'first' | 'last' | 'wait' | 'countWaiting'> {
  page (query?: EventListQuery, actor?: Actor): Promise<Page<Event>>
  list (query?: EventListQuery): AsyncIterable<Event[]>
  listOwn (user_id: string): Promise<Event[]>
  /**
   * Calls a function for each event of a type, or of all, from now on and while this process runs: best effort, unlike `read`.
   * @returns a function that ends it
   */
  on (type: EventType | '*', listener: (event: Event) => void): () => void
  /** Publishes what was recorded, without waiting for it to be due. */
  flush (): Promise<void>
}

/** Everything about events, for the services. */
export interface EventServices {
  events: Events
  recorder: Recorder
  failures: Failures
  /** Publishes, what other processes record too, until `close`. */
  start (): void
  close (): Promise<void>
}

/** Opens the record of what happens: the recorder, the relay and the feed. */
export function createEvents ({ store, now, via, addresses, days, key, onPublish, onPublished, onError }: EventParts): EventServices {
  const feed = createFeed({ store })
  const relay = createRelay({
    store,
    now,
    days,
    onPublish,
    onError,
    onPublished (records) {
      feed.announce()
      feed.show(records).then(onPublished, onError)
    }
  })
  const recorder = createRecorder({ store, now, via, addresses, onRecord: relay.notice })
  const failures = createFailures({ recorder, key, onError })
  const follower = createFollower({ feed, onError })
  async function flush (): Promise<void> {
    await failures.settle()
    await relay.flush()
  }
  const { read, first, last, wait, countWaiting } = feed
  return {
    events: { read, first, last, wait, countWaiting, ...createEventList({ store, feed }), on: follower.on, flush },
    recorder,
    failures,
    start: relay.start,
    async close () {
      follower.close()
      await failures.close()
      await relay.close()
    }
  }
}
