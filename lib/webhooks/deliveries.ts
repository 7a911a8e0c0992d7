import { type Clock, toTimestamp } from '../clock.ts'
import { LeaseWatch } from '../deadline.ts'
import { runFor } from '../events/origin.ts'
import { readSome } from '../lists/first.ts'
import type { OutboundAnswer } from '../outbound/fetcher.ts'
import type { Change, Store } from '../store/port.ts'
import { TIMERS, type Timers } from '../timers.ts'
import { waitForEnd } from '../work/close.ts'
import { claim } from '../work/lease.ts'
import type { Outages } from '../work/outage.ts'
import { STALL } from '../work/pace.ts'
import type { WebhookFeed } from './cursors.ts'
import { createDueTimes } from './due.ts'
import { FAILED_EVENTS, LEASE, createFailedEvents } from './failed-events.ts'
import { createFailedReads } from './failed-reads.ts'
import type { Failure } from './progress.ts'
import { type FailedEvent, type WebhookAttemptsRecord, MAX_WEBHOOKS, type WebhookRecord } from './record.ts'
import { shareReads } from './shared-reads.ts'
import { createWaits } from './waits.ts'
import { AFTER_FAILURE, createWorkers } from './workers.ts'

/** The most milliseconds between two polls, so that deliveries left by commands and other processes are found, and the least. */
const POLL_INTERVAL = 2_000
const PAUSE = 100

export interface DeliveriesParts {
  store: Store
  feed: WebhookFeed
  now: Clock
  send: (record: WebhookRecord, message: { id: string, body: string }, signal: AbortSignal) => Promise<OutboundAnswer>
  outages?: Pick<Outages, 'of'> | undefined
  disable: (record: WebhookRecord, failure: Failure, progress: Change<WebhookRecord>) => Promise<void>
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
  const webhooks = store.collection<WebhookRecord>('webhooks')
  const records = store.collection<FailedEvent>(FAILED_EVENTS)
  const stopping = new AbortController()
  const { findDue, findIdleSince } = createDueTimes({ feed, failed: createFailedReads(records, now), now })
  const leases = new LeaseWatch({ now, timers, lease: LEASE })
  const waits = createWaits({ feed, timers, stopped: stopping.signal })
  const workers = createWorkers({ timers, stopped: stopping.signal, onError, onEnded: wake })
  const queue = createFailedEvents(
    { perform: workers.perform, isHeld: ({ webhook_id }) => !workers.mayBegin(webhook_id) },
    { store, now, onError, timers, random, onFailed: onGivenUp }
  )
  let loop: Promise<void> | undefined
  let flushes = 0
  let waking = new AbortController()

  const workerParts = {
    webhooks,
    attempts: store.collection<WebhookAttemptsRecord>('webhook_attempts'),
    records,
    queue,
    feed: shareReads(feed),
    now,
    timers,
    send,
    disable,
    lingers: () => loop !== undefined && flushes === 0,
    wait: waits.wait
  }

  async function listOn (): Promise<WebhookRecord[]> {
    return await readSome(webhooks, { filter: { equal: { state: 'on' } }, limit: MAX_WEBHOOKS, urgent: true })
  }

  /** Leases a webhook and begins to deliver, unless another process does. */
  async function lease (record: WebhookRecord): Promise<void> {
    const leased = await claim(webhooks, record, { set: { leased_until: toTimestamp(now() + LEASE) } }, { state: 'on' })
    if (leased !== null) workers.begin(leased, { ...workerParts, outage: outages?.of('webhook', leased.id) })
  }

  /** Leases the webhooks that have work. @returns when the next one is due, and the end of the feed if any webhook waits for events */
  async function look (): Promise<{ next: number, last: string | undefined }> {
    const found = (await listOn()).filter(({ id }) => !workers.has(id))
    const last = found.length === 0 ? undefined : await feed.last()
    let next = Infinity
    for (const record of found) {
      if (!leases.isOver(record, record.leased_until)) continue
      const due = await findDue(record, last!)
      if (due !== undefined && due > now()) next = Math.min(next, due)
      else if (due !== undefined) {
        if (stopping.signal.aborted) break
        await lease(record)
      }
    }
    if (workers.isEmpty()) queue.pace.note()
    return { next, last }
  }

  /** Looks for work, and waits until there may be more. After a failure it waits a second. */
  async function poll (): Promise<void> {
    const started = timers.now()
    waking = new AbortController()
    const { next, last } = await look().catch((error: unknown) => {
      if (!stopping.signal.aborted) onError(error)
      return { next: now() + AFTER_FAILURE, last: undefined }
    })
    await waits.wait(last, Math.min(Math.max(next - now(), PAUSE), POLL_INTERVAL), waking)
    const rest = PAUSE - (timers.now() - started)
    if (rest > 0) await waits.wait(undefined, rest)
  }

  async function follow (): Promise<void> {
    while (!stopping.signal.aborted) await poll()
  }

  /** Ends the wait for the next poll, for example after a change of a webhook. */
  function wake (): void {
    waking.abort()
  }

  return {
    list: queue.list,
    countFailed: queue.countFailed,
    pace: queue.pace,

    /** Since when a webhook has work that no process does. */
    async findStall (): Promise<string | undefined> {
      const since = await findIdleSince(await listOn())
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
      queue.pace.note()
      loop ??= runFor({ via: 'system' }, follow)
    },

    wake,

    /** Ends the attempts of a webhook that was changed, disabled or deleted. */
    interrupt (id: string): void {
      workers.abort(id)
      wake()
    },

    /** Delivers everything due. */
    async flush (): Promise<void> {
      flushes++
      try {
        waits.end()
        await workers.settle()
        do await runFor({ via: 'system' }, look)
        while (await workers.settle())
      } finally {
        flushes--
      }
    },

    /** Stops. Aborts attempts that take too long; another process repeats them. */
    async close (): Promise<void> {
      stopping.abort()
      waits.end()
      await loop
      await waitForEnd(workers.settle(), { timers })
      workers.abortAll()
      await workers.settle()
      await queue.close()
    }
  }
}

export type Deliveries = ReturnType<typeof createDeliveries>
