import type { Event } from '../../schemas/event.ts'
import { type Clock, toTimestamp } from '../clock.ts'
import type { Change, Json } from '../store/port.ts'
import { compareCursors } from './cursors.ts'
import { MAX_PARKED, type Parked, type Replay, type WebhookRecord } from './record.ts'
import { DOWN_AFTER, GIVE_UP_AFTER, GIVE_UP_FAILURES, toPause, toRetryDelay } from './schedule.ts'
import { matchesType } from './types.ts'

/** Concurrent deliveries of one webhook. */
const AT_ONCE = 4

/** Events that are read ahead of the first undelivered one. */
const WINDOW = 200

/** A position that the cursor moves to when everything up to it is done, with the event to deliver there, if any. */
interface Entry {
  end: string
  event?: Event
  isDone: boolean
  endsReplay?: true
}

/** An event to deliver: a new one, or a parked one. */
export type Task = { entry: Entry & { event: Event } } | { parked: Parked }

/** Why a webhook is disabled. */
export type Failure = 'HTTP_410' | 'FAILING'

/** The progress of the deliveries of a leased webhook. It is all synchronous. */
export function createProgress (record: WebhookRecord, { now, random }: { now: Clock, random: () => number }) {
  const start = toTimestamp(now())
  const parked = new Map(record.parked.map((one) => [one.id, record.hurries === true ? { ...one, due_at: start } : one]))
  const entries: Entry[] = []
  /** Entries from this index on have not been started. */
  let begun = 0
  let running = 0
  const retrying = new Set<string>()
  let { cursor, replay, failures, failing_since, wait_until } = record
  let position = cursor
  /** The replay, until all its events are read. */
  let reading: Replay | undefined = replay
  let next: string | undefined
  let isParkedChanged = record.hurries === true

  function findNext (): void {
    next = undefined
    for (const { id, due_at } of parked.values()) if (!retrying.has(id) && (next === undefined || due_at < next)) next = due_at
  }

  function skipDone (): void {
    while (begun < entries.length && entries[begun]!.isDone) begun++
  }

  /** Moves the cursor past everything that is done. */
  function advance (): void {
    let count = 0
    while (count < entries.length && entries[count]!.isDone) {
      const { end, endsReplay } = entries[count++]!
      cursor = end
      if (endsReplay === true) replay = undefined
    }
    entries.splice(0, count)
    // An end marker is done without having been started.
    begun = Math.max(0, begun - count)
  }

  function takeParked (time: string): Task | undefined {
    if (next === undefined || next > time) return
    for (const one of parked.values()) {
      if (one.due_at > time || retrying.has(one.id)) continue
      retrying.add(one.id)
      findNext()
      return { parked: one }
    }
  }

  function takeNew (): Task | undefined {
    skipDone()
    const entry = entries[begun]
    if (entry?.event === undefined || parked.size + running >= MAX_PARKED) return
    begun++
    return { entry: entry as Entry & { event: Event } }
  }

  function finish (task: Task): void {
    running--
    if ('entry' in task) task.entry.isDone = true
    else retrying.delete(task.parked.id)
  }

  findNext()
  return {
    /** The cursor to read on from. */
    get position () { return position },

    /** Whether more events should be read now. */
    wantsEvents (): boolean {
      skipDone()
      advance()
      return entries.length < WINDOW && entries.length - begun < AT_ONCE && parked.size + running < MAX_PARKED
    },

    /** Adds the events that were read after the position. */
    add (events: readonly Event[], after: string): void {
      const end = reading
      for (const event of events) {
        if (end !== undefined && compareCursors(event.cursor, end.to) > 0) break
        if (matchesType(record.types, event.type) && !parked.has(event.id)) entries.push({ end: event.cursor, event, isDone: false })
      }
      const isEnded = end !== undefined && compareCursors(after, end.to) >= 0
      if (isEnded) reading = undefined
      position = isEnded ? end.resume : after
      entries.push({ end: position, isDone: true, ...(isEnded && { endsReplay: true }) })
    },

    /** Continues at another cursor, because the position cannot be read. */
    moveTo (other: string): void {
      position = other
      entries.push({ end: other, isDone: true })
    },

    /** The next event to deliver now. Undefined when there is none, or enough are in flight. */
    take (): Task | undefined {
      const time = toTimestamp(now())
      if (wait_until !== undefined && wait_until > time) return
      if (running >= (failures < DOWN_AFTER ? AT_ONCE : 1)) return
      const task = takeParked(time) ?? takeNew()
      if (task !== undefined) running++
      return task
    },

    /** Returns an event whose attempt had no outcome. */
    putBack (task: Task): void {
      running--
      if ('parked' in task) retrying.delete(task.parked.id)
    },

    /** Drops an event that is no longer in the feed. */
    drop (task: Task): void {
      finish(task)
      if ('parked' in task) {
        parked.delete(task.parked.id)
        isParkedChanged = true
      }
      findNext()
    },

    succeed (task: Task): void {
      finish(task)
      if ('parked' in task) {
        parked.delete(task.parked.id)
        isParkedChanged = true
      }
      if (failures >= DOWN_AFTER) {
        // The receiver was down, and is back.
        const due_at = toTimestamp(now())
        for (const [id, one] of parked) parked.set(id, { ...one, due_at })
        isParkedChanged = true
      }
      failures = 0
      failing_since = undefined
      findNext()
    },

    /** @returns whether the event was given up, and the reason if the webhook must be disabled */
    fail (task: Task, { status, retryAfter }: { status?: number | undefined, retryAfter?: number | undefined }): { isGivenUp: boolean, failure?: Failure } {
      finish(task)
      const time = now()
      const { id, cursor: place, attempts, since } = 'parked' in task
        ? task.parked
        : { id: task.entry.event.id, cursor: task.entry.event.cursor, attempts: 0, since: toTimestamp(time) }
      failing_since ??= toTimestamp(time)
      const pause = toPause(++failures, retryAfter)
      const until = toTimestamp(time + pause)
      if (pause > 0 && (wait_until === undefined || wait_until < until)) wait_until = until
      const delay = toRetryDelay(attempts + 1, random)
      if (delay === undefined) parked.delete(id)
      else parked.set(id, { id, cursor: place, attempts: attempts + 1, due_at: toTimestamp(time + Math.max(delay, pause)), since })
      isParkedChanged = true
      findNext()
      const isFailing = failures >= GIVE_UP_FAILURES && time - Date.parse(failing_since) >= GIVE_UP_AFTER
      const failure = status === 410 ? 'HTTP_410' : isFailing ? 'FAILING' : undefined
      if (failure === undefined && parked.size === 0) {
        // With nothing left to retry, the next failure may come after a month: it begins a new count.
        failures = 0
        failing_since = undefined
      }
      return { isGivenUp: delay === undefined, ...(failure && { failure }) }
    },

    /** The progress to store, from which the next process continues. */
    toChange (): Change {
      advance()
      const isWaiting = wait_until !== undefined && wait_until > toTimestamp(now())
      const optional = { replay, failing_since, wait_until: isWaiting ? wait_until : undefined }
      const change = {
        set: { cursor, failures, ...(isParkedChanged && { parked: [...parked.values()] }), ...Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== undefined)) } as { [field: string]: Json },
        unset: ['hurries', ...Object.entries(optional).filter(([, value]) => value === undefined).map(([field]) => field)]
      }
      isParkedChanged = false
      return change
    }
  }
}

export type Progress = ReturnType<typeof createProgress>
