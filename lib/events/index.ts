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
import { createFollower } from './follower.ts'
import { createDeadLetterList } from './dead-letters.ts'
import { type SignInHistory, createEventList } from './list.ts'
import { findOldestPending } from './oldest.ts'
import type { Origin } from './origin.ts'
import { createRecorder } from './recorder.ts'
import { createRelay } from './relay.ts'
import { createRevocations } from './revocations.ts'
import type { EventType } from './types.ts'

interface EventParts {
  store: Store
  now: Clock
  /** The `via` of events outside of requests. */
  via: Origin['via']
  /** How much of a network address is stored. */
  addresses: AddressMode
  /** The key of the hashes that stand for unknown accounts. */
  getKey: () => KeyObject
  onError: (error: unknown) => void
}

/** The events, for embedders and the API. */
export interface Events extends Pick<Feed, 'read' | 'find' | 'first' | 'last' | 'wait' | 'countWaiting'> {
  page (query?: EventListQuery, actor?: Actor): Promise<Page<Event>>
  list (query?: EventListQuery): AsyncIterable<Event[]>
  listOwn (user_id: string): Promise<Event[]>
  listSignIns (user_id: string, limit: number): Promise<SignInHistory>
  listOfClients (owner_id: string): Promise<Event[]>
  /**
   * Calls a function for each event of one type, or of all types, from now on while this process runs. Best effort, unlike `read`.
   * @returns a function that removes the listener
   */
  on (type: EventType | '*', listener: (event: Event) => void): () => void
  /** Publishes recorded events now, instead of in the next round of the relay. */
  flush (): Promise<void>
}

/** Records what happens, and reads what was published. Nothing is published before `openRelay`. */
export function createEvents ({ store, now, via, addresses, getKey, onError }: EventParts) {
  const reader = createFeed({ store })
  const feed = { ...reader, ...createEventList({ store, feed: reader }) }
  const recorder = createRecorder({ store, now, via, addresses })
  const failures = createFailures({ recorder, getKey, onError })
  const revocations = createRevocations({ recorder, onError })
  return {
    recorder,
    feed,
    failures,
    revocations,

    /** Records what was counted. */
    async settle (): Promise<void> {
      await Promise.all([failures.settle(), revocations.settle()])
    },

    async close (): Promise<void> {
      await Promise.all([failures.close(), revocations.close()])
      await feed.settle()
    }
  }
}

interface RelayParts extends Omit<Parameters<typeof createRelay>[0], 'onPublished'> {
  record: ReturnType<typeof createEvents>
  /** Receives the events that this process published, for the log. */
  onPublished: (events: Event[]) => void
}

/** Opens the publication. What follows an event is done by rooms that are opened before. */
export function openRelay ({ record: { recorder, feed, settle }, onPublished, ...parts }: RelayParts) {
  const { store, now, onError } = parts
  const relay = createRelay({
    ...parts,
    onPublished (records) {
      feed.announce()
      feed.show(records).then(onPublished, onError)
    }
  })
  recorder.listen(relay.notice)
  const follower = createFollower({ feed, onError })
  async function flush (): Promise<void> {
    await settle()
    await relay.flush()
  }
  const { read, find, first, last, wait, countWaiting, page, list, listOwn, listSignIns, listOfClients } = feed
  const events: Events = { read, find, first, last, wait, countWaiting, page, list, listOwn, listSignIns, listOfClients, on: follower.on, flush }
  return {
    events,
    /** Publishes the events of all processes until `close`. */
    start: relay.start,
    /** The publication, for operators. */
    work: {
      ...createDeadLetterList({ store, now }),
      pace: relay.pace,
      async findStall () {
        const oldest = await findOldestPending(store)
        return oldest === undefined || oldest > now() - STALL ? undefined : toTimestamp(oldest)
      }
    } satisfies Work,
    async close (): Promise<void> {
      await follower.close()
      await relay.close()
    }
  }
}
