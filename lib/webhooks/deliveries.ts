import { type Clock, toTimestamp } from '../clock.ts'
import { LeaseWatch, isAhead } from '../deadline.ts'
import { runFor } from '../events/origin.ts'
import { readSome } from '../lists/first.ts'
import type { OutboundAnswer } from '../outbound/fetcher.ts'
import type { Change, Collection, Store } from '../store/port.ts'
import { TIMERS, type Timers } from '../timers.ts'
import { waitForEnd } from '../work/close.ts'
import { CutOffError } from '../work/failure.ts'
import { claim } from '../work/lease.ts'
import { STALL } from '../work/pace.ts'
import type { WebhookFeed } from './cursors.ts'
import { FAILED_EVENTS, LEASE, createFailedEvents } from './failed-events.ts'
import { createFailedReads } from './failed-reads.ts'
import type { Failure } from './progress.ts'
import { type FailedEvent, type WebhookAttemptsRecord, MAX_PARKED, MAX_WEBHOOKS, type WebhookRecord, findWait } from './record.ts'
import { shareReads } from './shared-reads.ts'
import type { Outages } from '../work/outage.ts'
import { type Worker, createWorker } from './worker.ts'

/** The most milliseconds between two polls, so that deliveries left by commands and other processes are found, and the least. */
const POLL_INTERVAL = 2_000
const PAUSE = 100

/** Milliseconds to the next poll after a failure. */
const AFTER_FAILURE = 1_000

export interface DeliveriesParts {
  store: Store
  feed: WebhookFeed
  now: Clock
  send: (record: WebhookRecord, message: { id: string, body: string }, signal: AbortSignal) => Promise<OutboundAnswer>
  outages?: Pick<Outages, 'of'> | undefined
  disable: (record: WebhookRecord, failure: Failure, progress: Change) => Promise<void>
  onGivenUp: (record: FailedEvent) => void
  /** Receives failures that no caller waits for. */
  onError: (error: unknown) => void
  timers?: Timers
  random?: () => number
}

/**
 * Delivers events to webhooks. One process at a time leases a webhook, by one conditional update. A lease that is not released
 * expires, and events that were not yet stored as delivered are delivered again.
 */
export function createDeliveries ({ store, feed, now, send, outages, disable, onGivenUp, onError, timers = TIMERS, random }: DeliveriesParts) {
  const webhooks: Collection<WebhookRecord> = store.collection('webhooks')
  const attempts: Collection<WebhookAttemptsRecord> = store.collection('webhook_attempts')
  const records = store.collection<FailedEvent>(FAILED_EVENTS)
  const failed = createFailedReads(records, now)
  const shared = shareReads(feed)
  const workers = new Map<string, Pick<Worker, 'mayBegin' | 'perform'> & { abort: AbortController, ended: Promise<boolean> }>()
  const leases = new LeaseWatch({ now, timers, lease: LEASE })
  const waits = new Set<AbortController>()
  const stopping = new AbortController()
  let loop: Promise<void> | undefined
  let isFollowing = false
  let flushes = 0
  let waking = new AbortController()

  const queue = createFailedEvents({
    async perform (record) {
      const worker = workers.get(record.webhook_id)
      if (worker === undefined) throw new CutOffError()
      await worker.perform(record)
    },
    isHeld: ({ webhook_id }) => workers.get(webhook_id)?.mayBegin() !== true
  }, { store, now, onError, timers, random, onFailed: onGivenUp })

  /** Resolves after `timeout`, when there may be events, or when the wait is aborted. */
  async function wait (after: string | undefined, timeout: number, ending = new AbortController()): Promise<void> {
    if (stopping.signal.aborted || ending.signal.aborted) return
    waits.add(ending)
    const { promise, resolve } = Promise.withResolvers<void>()
    ending.signal.addEventListener('abort', () => resolve())
    const timer = timers.set(resolve, timeout)
    timer.unref?.()
    const seen = after === undefined ? [] : [feed.wait(after, { timeout, signal: ending.signal }).catch(() => promise)]
    await Promise.race([promise, ...seen])
    timers.clear(timer)
    waits.delete(ending)
    // Ends the wait for the feed too, if it is still pending, and lets its read end: no read follows `close`.
    ending.abort()
    await Promise.all(seen)
  }

  function begin (record: WebhookRecord): void {
    const abort = new AbortController()
    const { run, ...worker } = createWorker(record, {
      webhooks,
      attempts,
      records,
      queue,
      feed: shared,
      now,
      timers,
      send,
      outage: outages?.of('webhook', record.id),
      disable,
      lingers: () => isFollowing && flushes === 0,
      wait
    }, { stop: stopping.signal, abort: abort.signal })
    const running = Promise.withResolvers<boolean>()
    const ended = running.promise.finally(() => workers.delete(record.id)).then((hasWorked) => {
      wake()
      return hasWorked
    }, (error: unknown) => {
      if (!stopping.signal.aborted) onError(error)
      timers.set(wake, AFTER_FAILURE).unref?.()
      return false
    })
    workers.set(record.id, { ...worker, abort, ended })
    running.resolve(run())
  }

  async function listOn (): Promise<WebhookRecord[]> {
    return await readSome(webhooks, { filter: { equal: { state: 'on' } }, limit: MAX_WEBHOOKS, urgent: true })
  }

  /** The time (ms) from which a process may make attempts for a webhook, once nobody has its lease. */
  const toStart = (record: WebhookRecord) => Date.parse(findWait(record, now()) ?? toTimestamp(0))

  /** The time (ms) from which a webhook has work, at least. Undefined when it has none. */
  async function findDue (record: WebhookRecord, last: string): Promise<number | undefined> {
    const { id, cursor, replay, hurries, parked } = record
    const start = toStart(record)
    if (start > now() || hurries === true || parked.length > 0) return start
    const next = await failed.findFirst(id)
    const isBehind = cursor !== last || replay !== undefined
    if (isBehind && (next === undefined || await failed.count(id) < MAX_PARKED)) return start
    if (next === undefined || await failed.hasLate(id)) return next && start
    return Math.max(start, Date.parse(next.due_at))
  }

  /** Leases the webhooks that have work. @returns when the next one is due, and the end of the feed if any webhook waits for events */
  async function look (): Promise<{ next: number, last?: string }> {
    const found = (await listOn()).filter(({ id }) => !workers.has(id))
    const last = found.length === 0 ? undefined : await feed.last()
    let next = Infinity
    for (const record of found) {
      if (!leases.isOver(record, record.leased_until)) continue
      const due = await findDue(record, last!)
      if (due === undefined) continue
      const time = now()
      if (due > time) {
        next = Math.min(next, due)
        continue
      }
      if (stopping.signal.aborted) break
      const leased = await claim(webhooks, record, { set: { leased_until: toTimestamp(time + LEASE) } }, { state: 'on' })
      if (leased !== null) begin(leased)
    }
    if (workers.size === 0) queue.pace.note()
    return { next, ...(last !== undefined && { last }) }
  }

  async function follow (): Promise<void> {
    while (!stopping.signal.aborted) {
      let [after, next]: [string | undefined, number] = [undefined, Infinity]
      const looked = timers.now()
      waking = new AbortController()
      try {
        ({ last: after, next } = await look())
      } catch (error) {
        if (!stopping.signal.aborted) onError(error)
        next = now() + AFTER_FAILURE
      }
      await wait(after, Math.min(Math.max(next - now(), PAUSE), POLL_INTERVAL), waking)
      const rest = PAUSE - (timers.now() - looked)
      if (rest > 0) await wait(undefined, rest)
    }
  }

  /** Ends the wait for the next poll, for example after a change of a webhook. */
  function wake (): void {
    waking.abort()
  }

  /** @returns whether any worker had work */
  async function settle (): Promise<boolean> {
    const results = await Promise.all([...workers.values()].map(({ ended }) => ended))
    return results.includes(true)
  }

  return {
    list: queue.list,
    pace: queue.pace,

    /** Since when a webhook has work that no process does. */
    async findStall (): Promise<string | undefined> {
      const last = await feed.last()
      let since = Infinity
      for (const record of await listOn()) {
        const due = isAhead({ at: record.leased_until, longest: LEASE }, now()) ? undefined : await findDue(record, last)
        if (due === undefined || due > now()) continue
        const [first, { events: [event] }] = await Promise.all([
          failed.findFirst(record.id), feed.read({ after: record.cursor, limit: 1 }).catch(() => ({ events: [] }))
        ])
        const times = [first?.due_at, event?.time].filter((time) => time !== undefined).map((time) => Date.parse(time))
        since = Math.min(since, Math.max(Date.parse(record.leased_until), Date.parse(record.wait_until ?? record.leased_until), Math.min(...times)))
      }
      return since > now() - STALL ? undefined : toTimestamp(since)
    },

    /** Makes an event due that was given up. @throws ErrNotFound */
    async retry (id: string): Promise<FailedEvent> {
      const record = await queue.retry(id)
      wake()
      return record
    },

    /** Delivers until `close`. */
    start (): void {
      isFollowing = true
      queue.pace.note()
      loop ??= runFor({ via: 'system' }, follow)
    },

    wake,

    /** Ends the attempts of a webhook that was changed, disabled or deleted. */
    interrupt (id: string): void {
      workers.get(id)?.abort.abort()
      wake()
    },

    /** Delivers everything due. */
    async flush (): Promise<void> {
      flushes++
      try {
        for (const ending of waits) ending.abort()
        await settle()
        do await runFor({ via: 'system' }, look)
        while (await settle())
      } finally {
        flushes--
      }
    },

    /** Stops. Aborts attempts that take too long; another process repeats them. */
    async close (): Promise<void> {
      stopping.abort()
      for (const ending of waits) ending.abort()
      await loop
      await waitForEnd(settle(), { timers })
      for (const { abort } of workers.values()) abort.abort()
      await settle()
      await queue.close()
    }
  }
}

export type Deliveries = ReturnType<typeof createDeliveries>
