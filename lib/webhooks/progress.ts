import type { Event } from '../../schemas/event.ts'
import { type Clock, toTimestamp } from '../clock.ts'
import { setOrUnset } from '../defined.ts'
import type { OutboundAnswer } from '../outbound/fetcher.ts'
import type { Change } from '../store/port.ts'
import { compareCursors } from './cursors.ts'
import { MAX_PARKED, type Replay, type WebhookRecord, findWait } from './record.ts'
import { AT_ONCE, DOWN_AFTER, GIVE_UP_AFTER, GIVE_UP_FAILURES, RETRIES, toPause } from './schedule.ts'
import { matchesType } from './types.ts'

/** Events that are read ahead of the first undelivered one. */
const WINDOW = 200

/** A position that the cursor moves to when everything up to it is done. */
interface Position {
  end: string
  event?: Event
  state: 'new' | 'taken' | 'done'
  endsReplay?: true
}

/** A new event to deliver. */
export type Entry = Position & { event: Event }

/** Why a webhook is disabled. */
export type Failure = 'HTTP_410' | 'FAILING'

/** The progress of the deliveries of a leased webhook. It is all synchronous. */
export function createProgress (record: WebhookRecord, { now }: { now: Clock }) {
  /** The events that wait for a retry, by their ids, and those that did at the beginning of the lease: the cursor may be before them. */
  const failed = new Set<string>()
  const earlier = new Set<string>()
  const entries: Position[] = []
  let running = 0
  let { cursor, replay, failures, failing_since, wait_until, wait_set_at } = record
  let position = cursor
  /** The replay, until all its events are read. */
  let reading: Replay | undefined = replay

  const count = (state: Entry['state']) => entries.filter((entry) => entry.event !== undefined && entry.state === state).length
  const isFull = () => failed.size + count('taken') >= MAX_PARKED
  const getMost = () => failures < DOWN_AFTER ? AT_ONCE : 1

  /** Moves the cursor past everything that is done. */
  function advance (): void {
    while (entries[0]?.state === 'done') {
      const { end, endsReplay } = entries.shift()!
      cursor = end
      if (endsReplay === true) replay = undefined
    }
  }

  const isWaiting = () => findWait({ wait_until, wait_set_at }, now()) !== undefined

  /** Whether an attempt may begin now. */
  const mayBegin = () => !isWaiting() && running < getMost()

  return {
    /** The cursor to read on from. */
    get position () { return position },

    mayBegin,

    /** Whether the receiver is down: one attempt is made at a time. */
    get isDown () { return getMost() === 1 },

    /** To be called before any event is read, for each event that waits for a retry. */
    addFailed (event_id: string): void {
      failed.add(event_id)
      earlier.add(event_id)
    },

    /** Whether more events should be read now. */
    wantsEvents (): boolean {
      advance()
      return entries.length < WINDOW && count('new') < AT_ONCE && !isFull()
    },

    /** Adds the events that were read after the position. */
    add (events: readonly Event[], after: string): void {
      const end = reading
      for (const event of events) {
        if (end !== undefined && compareCursors(event.cursor, end.to) > 0) break
        if (matchesType(record.types, event.type) && !earlier.has(event.id)) entries.push({ end: event.cursor, event, state: 'new' })
      }
      const isEnded = end !== undefined && compareCursors(after, end.to) >= 0
      if (isEnded) reading = undefined
      position = isEnded ? end.resume : after
      entries.push({ end: position, state: 'done', endsReplay: isEnded ? true : undefined })
    },

    /** Continues at another cursor, because the position cannot be read. */
    moveTo (other: string): void {
      position = other
      entries.push({ end: other, state: 'done' })
    },

    /** A new event that was read and is not delivered. */
    getEvent: (event_id: string) => entries.find(({ event }) => event?.id === event_id)?.event,

    /** The next new event to deliver now. Undefined when there is none, or enough are in flight. */
    take (): Entry | undefined {
      if (!mayBegin() || count('taken') >= getMost() || isFull()) return
      const entry = entries.find(({ state }) => state === 'new') as Entry | undefined
      if (entry !== undefined) entry.state = 'taken'
      return entry
    },

    begin (): void { running++ },
    end (): void { running-- },

    /** @returns whether the receiver was down, and is back */
    succeed (event_id: string): boolean {
      const wasDown = failures >= DOWN_AFTER
      failed.delete(event_id)
      failures = 0
      failing_since = undefined
      return wasDown
    },

    /**
     * @param attempt which attempt of this event failed
     * @returns the milliseconds to the next attempt at least, and the reason if the webhook must be disabled
     */
    fail (event_id: string, attempt: number, { status, retryAfter }: Partial<OutboundAnswer>): { pause: number, failure: Failure | undefined } {
      const time = now()
      failing_since ??= toTimestamp(time)
      const pause = toPause(++failures, retryAfter)
      const until = toTimestamp(time + pause)
      if (pause > 0 && (!isWaiting() || wait_until! < until)) [wait_until, wait_set_at] = [until, toTimestamp(time)]
      if (attempt > RETRIES.length) failed.delete(event_id)
      else failed.add(event_id)
      const isFailing = failures >= GIVE_UP_FAILURES && time - Date.parse(failing_since) >= GIVE_UP_AFTER
      const failure = status === 410 ? 'HTTP_410' : isFailing ? 'FAILING' : undefined
      if (failure === undefined && failed.size === 0) {
        // With nothing left to retry, the next failure may come after a month: it begins a new count.
        failures = 0
        failing_since = undefined
      }
      return { pause, failure }
    },

    /** The progress to store, from which the next process continues. */
    toChange (): Change<WebhookRecord> {
      advance()
      const wait = isWaiting() ? { wait_until, wait_set_at } : { wait_until: undefined, wait_set_at: undefined }
      return setOrUnset({ cursor, failures, parked: [], replay, failing_since, ...wait, hurries: undefined })
    }
  }
}

export type Progress = ReturnType<typeof createProgress>
