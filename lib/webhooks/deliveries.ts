import type { Event } from '../../schemas/event.ts'
import { type Clock, toTimestamp } from '../clock.ts'
import { runFor } from '../events/origin.ts'
import type { OutboundAnswer } from '../outbound/fetcher.ts'
import type { Change, Collection, Store } from '../store/port.ts'
import { TIMERS, type Timers } from '../timers.ts'
import { waitForEnd } from '../work/close.ts'
import { Slots } from '../work/slots.ts'
import type { WebhookFeed } from './cursors.ts'
import type { Failure } from './progress.ts'
import { type WebhookAttemptsRecord, MAX_PARKED, MAX_WEBHOOKS, type WebhookRecord } from './record.ts'
import { shareReads } from './shared-reads.ts'
import { LEASE, deliver } from './worker.ts'

/** Concurrent attempts of this process, for all webhooks. */
const SLOTS = 64

/** The most milliseconds between two polls, so that deliveries left by other processes are found, and the least. */
const POLL_INTERVAL = 15_000
const PAUSE = 100

/** Milliseconds to the next poll after a failure. */
const AFTER_FAILURE = 1_000

export interface DeliveriesParts {
  store: Store
  feed: WebhookFeed
  now: Clock
  send: (record: WebhookRecord, message: { id: string, body: string }, signal: AbortSignal) => Promise<OutboundAnswer>
  disable: (record: WebhookRecord, failure: Failure, progress: Change) => Promise<void>
  onGivenUp: (webhookId: string, event: Event) => void
  /** Receives failures that no caller waits for. */
  onError: (error: unknown) => void
  timers?: Timers
  random?: () => number
}

/** The time (ms) from which a webhook has work. Undefined when it has none. */
function toDue ({ cursor, replay, hurries, parked, leased_until, wait_until }: WebhookRecord, last: string): number | undefined {
  const isBehind = (cursor !== last || replay !== undefined) && parked.length < MAX_PARKED
  const due = isBehind || hurries === true ? 0 : Math.min(...parked.map(({ due_at }) => Date.parse(due_at)))
  if (due === Infinity) return
  return Math.max(due, Date.parse(leased_until), wait_until === undefined ? 0 : Date.parse(wait_until))
}

/**
 * Delivers events to webhooks. One process at a time leases a webhook, by one conditional update. A lease that is not released
 * expires, and events that were not yet stored as delivered are delivered again.
 */
export function createDeliveries ({ store, feed, now, send, disable, onGivenUp, onError, timers = TIMERS, random = Math.random }: DeliveriesParts) {
  const webhooks: Collection<WebhookRecord> = store.collection('webhooks')
  const attempts: Collection<WebhookAttemptsRecord> = store.collection('webhook_attempts')
  const slots = new Slots({ size: SLOTS })
  const shared = shareReads(feed)
  const workers = new Map<string, { abort: AbortController, ended: Promise<boolean> }>()
  const waits = new Set<AbortController>()
  const stopping = new AbortController()
  let loop: Promise<void> | undefined
  let isFollowing = false
  let flushes = 0
  let waking = new AbortController()

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
    // Ends the wait for the feed too, if it is still pending.
    ending.abort()
  }

  function begin (record: WebhookRecord): void {
    const abort = new AbortController()
    const parts = {
      webhooks,
      attempts,
      feed: shared,
      now,
      timers,
      random,
      slots,
      send,
      disable,
      onGivenUp,
      lingers: () => isFollowing && flushes === 0,
      wait
    }
    const ended = deliver(record, parts, { stop: stopping.signal, abort: abort.signal }).finally(() => workers.delete(record.id)).then((hasWorked) => {
      wake()
      return hasWorked
    }, (error: unknown) => {
      if (!stopping.signal.aborted) onError(error)
      timers.set(wake, AFTER_FAILURE).unref?.()
      return false
    })
    workers.set(record.id, { abort, ended })
  }

  /** Leases the webhooks that have work. @returns when the next one is due, and the end of the feed if any webhook waits for events */
  async function look (): Promise<{ next: number, last?: string }> {
    const found: WebhookRecord[] = []
    for await (const batch of webhooks.list({ filter: { equal: { state: 'on' } }, limit: MAX_WEBHOOKS })) found.push(...batch.filter(({ id }) => !workers.has(id)))
    if (found.length === 0) return { next: Infinity }
    const last = await feed.last()
    let next = Infinity
    for (const record of found) {
      const due = toDue(record, last)
      if (due === undefined) continue
      const time = now()
      if (due > time) {
        next = Math.min(next, due)
        continue
      }
      if (stopping.signal.aborted) break
      const change = { set: { leased_until: toTimestamp(time + LEASE) }, increment: { claim: 1 } }
      const leased = await webhooks.update(record.id, change, { equal: { claim: record.claim, state: 'on' } })
      if (leased !== null) begin(leased)
    }
    return { next, last }
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
    /** Delivers until `close`. */
    start (): void {
      isFollowing = true
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
      await waitForEnd(settle())
      for (const { abort } of workers.values()) abort.abort()
      await settle()
    }
  }
}

export type Deliveries = ReturnType<typeof createDeliveries>
