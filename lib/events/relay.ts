import { readFirst } from '../lists/first.ts'
import { TIMERS, type Timers } from '../timers.ts'
import { type Ends, BATCH, createGatherer } from './gather.ts'
import { createDeadLetterList, createDeadLetters } from './dead-letters.ts'
import { createLease, type End, type FeedRecord, readFeedRecord } from './lease.ts'
import { MACHINE, type Machine } from './machine.ts'
import { isOutage } from '../errors.ts'
import { Pace } from '../work/pace.ts'
import { type Carrier, type Failed, findOnce } from './carrier.ts'
import { type Horizon, orderEvents } from './order.ts'
import type { Pending } from './pending.ts'
import { runFor } from './origin.ts'
import { type PublishParts, createPublisher } from './publish.ts'
import type { EventRecord } from './types.ts'

/** Milliseconds to the first round after an event was recorded or published, and at most to the following rounds. */
const FIRST_DELAY = 20
const LAST_DELAY = 1_000

/** Milliseconds that a write with an event may take, and for which this process looks for the event. */
const PATIENCE = 6_000

/** Milliseconds between two polls for events that a dead process has left. */
const POLL_INTERVAL = 6_000

interface RelayParts extends PublishParts {
  /** Receives failures that no caller waits for. */
  onError: (error: unknown) => void
  /**
   * Stores the mails about a published event, possibly more than once, before the event leaves its document. Absent: there are none.
   * @param name the unique key of the event, or its ULID where it has none
   */
  acceptMails?: ((event: Pending, name: string) => Promise<void>) | undefined
  /** Deletes what a decided end left. Absent: only documents end. */
  ends?: Ends | undefined
  timers?: Timers
  machine?: Machine
}

/**
 * Moves pending events from the documents that carry them to the feed, in one order, cause before effect (order.ts). One process
 * does this at a time, under a lease. Each event is published once, because its ULID is unique in the feed, and so is its number.
 */
export function createRelay (parts: RelayParts) {
  const { store, now, days, handlers, onPublished, onError, acceptMails = async () => {}, ends = {}, timers = TIMERS, machine = MACHINE } = parts
  const events = store.collection<EventRecord>('events')
  const feeds = store.collection<FeedRecord>('feed')
  const lease = createLease({ store, now, timers, onError, getEnd: () => end })
  const deadLetters = createDeadLetters({ store, now, onError, timers })
  const { gather, clear } = createGatherer({ store, now, ends, deadLetters, onError })
  const { publish, resume } = createPublisher({ store, now, days, handlers, onPublished })
  /** Undefined until it was read, and after a write whose result is unknown. */
  let end: End | undefined
  const pace = new Pace(timers)
  let running: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined
  /** When the timer ends. */
  let nextAt = 0
  let delay = FIRST_DELAY
  /** The ULIDs of the events that this process has recorded and not published, with the end of the search for each, the earliest first. */
  const expected = new Map<string, number>()
  /** Whether the last round has found events that it left to the next one, or to another process. */
  let isLeft = false
  let lookUntil = Number.NEGATIVE_INFINITY
  /** Ends when the letters that are to be tried again were made due. */
  let retrying: Promise<unknown> | undefined
  let started = false
  let closed = false

  /** Takes or renews the lease. @returns the end of the feed; undefined when another process has the lease */
  async function hold (): Promise<End | undefined> {
    const right = await lease.hold()
    if (right !== 'held') end = undefined
    if (right !== false) end ??= await resume()
    return end
  }

  /** Fills missing numbers before a late write of a previous lease holder. While no event is pending, publishing does not find them. */
  async function mend (): Promise<void> {
    const { last: stored } = await readFeedRecord(feeds)
    const highest = Number((await readFirst(events, { sort: [{ key: 'id', direction: 'desc' }], urgent: true }))?.id ?? 0)
    if (highest <= Math.max(stored, end?.last ?? 0)) return
    end = undefined
    await hold()
  }

  /**
   * Stores the mails about published events, and removes the events from their documents. A document whose mails cannot be stored keeps
   * its events, and holds up no other.
   * @throws the error of an outage, when all others have ended
   */
  async function finish (carriers: readonly Carrier[], isDone: (pending: Pending) => boolean, failed: Failed): Promise<void> {
    const ended = carriers.filter(({ pending }) => pending.some(isDone))
    const outcomes = await Promise.allSettled(ended.map(async (carrier) => {
      for (const pending of carrier.pending.filter(isDone)) {
        if (pending.notices !== undefined) await acceptMails(pending, findOnce(carrier, pending) ?? pending.key)
      }
      await clear(carrier, isDone)
    }))
    const errors = outcomes.map((outcome) => outcome.status === 'rejected' ? { error: outcome.reason as unknown } : undefined)
    for (const [index, failure] of errors.entries()) if (failure !== undefined && !isOutage(failure.error)) failed.set(ended[index]!, failure.error)
    const outage = errors.find((failure) => failure !== undefined && isOutage(failure.error))
    if (outage !== undefined) throw outage.error
  }

  /** Whether rounds are to follow at short intervals. */
  function isExpecting (): boolean {
    const time = timers.now()
    for (const [key, until] of expected) {
      if (time < until) return true
      expected.delete(key)
    }
    return isLeft || time < lookUntil
  }

  /** One round: gather, order, number and publish, store mails, clear. @returns how many documents it found; 0 when it changed nothing */
  async function publishSome (): Promise<number> {
    const begun: Horizon = { time: now(), made: { machine: machine.id, ticks: machine.read() } }
    const { carriers, failed, cut } = await gather()
    isLeft = false
    if (carriers.length === 0) {
      await mend()
      return await deadLetters.note(failed, false)
    }
    const { queued, isAll } = orderEvents(carriers, { ...begun, cut })
    const from = queued.length === 0 ? undefined : await hold()
    isLeft = !isAll || from === undefined
    if (!isAll) delay = FIRST_DELAY
    if (from === undefined) return await deadLetters.note(failed, false)
    end = undefined
    const done = new Set<string>()
    const isDone = ({ key }: Pending) => done.has(key)
    try {
      const reached = await publish(queued, from, { done, failed })
      // Another process has used a number: this process was suspended for longer than its lease.
      if (reached === null) lease.doubt()
      else end = reached
      if (reached === null) return BATCH
    } finally {
      await finish(carriers, isDone, failed)
      for (const key of done) expected.delete(key)
    }
    const any = queued.some(({ chain, pending }) => isDone(pending) && !failed.has(chain))
    const gone = await deadLetters.note(failed, any)
    return any || gone > 0 ? carriers.length : 0
  }

  /** Publishes until a round finds fewer documents than `least`, or another process has the lease. */
  async function drain (least: number): Promise<void> {
    for (let found = least; found >= least;) {
      found = closed ? 0 : await publishSome()
      if (found > 0) delay = FIRST_DELAY
    }
    if (started && !closed) pace.note()
  }

  function schedule (): void {
    if (closed || timer !== undefined || running !== undefined || !started) return
    // Without the origin of the request that caused it.
    const wait = isExpecting() ? delay : POLL_INTERVAL
    nextAt = timers.now() + wait
    timer = runFor(undefined, () => timers.set(run, wait))
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
      if (!isExpecting()) await lease.release()
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
    /** To be called when this process has recorded an event, or is about to. @param key its ULID */
    notice (key: string): void {
      // A process that publishes by `flush` alone, as a command does, looks for no event of its own.
      if (!started || closed) return
      const time = timers.now()
      expected.set(key, time + PATIENCE)
      delay = FIRST_DELAY
      // A round that is about to begin is not put off: where changes follow each other closely, none would ever begin.
      if (running !== undefined || (timer !== undefined && nextAt <= time + FIRST_DELAY)) return
      timers.clear(timer)
      timer = undefined
      schedule()
    },

    /** Publishes the events of all processes until `close`. */
    start (): void {
      started = true
      pace.note()
      lookUntil = timers.now() + PATIENCE
      schedule()
      retrying = createDeadLetterList({ store, now }).retry().catch((error: unknown) => { if (!closed) onError(error) })
    },

    flush,

    /** How this process goes on with the publication. */
    pace,

    async close (): Promise<void> {
      closed = true
      pace.end()
      timers.clear(timer)
      await running?.catch(() => {})
      await retrying
      await lease.release().catch(onError)
    }
  }
}
