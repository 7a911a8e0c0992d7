import { type Clock, toTimestamp } from '../clock.ts'
import { scan } from '../store/scan.ts'
import type { OutboundAnswer } from '../outbound/fetcher.ts'
import type { Change, Collection } from '../store/port.ts'
import type { Timers } from '../timers.ts'
import { CutOffError, RefusedError } from '../work/failure.ts'
import { keepLease } from '../work/lease.ts'
import type { OutageNotes } from '../work/outage.ts'
import { createAttempt } from './attempt.ts'
import { createAttemptLog } from './attempt-log.ts'
import { type WebhookFeed, isGone, recoverCursor } from './cursors.ts'
import { type FailedEvents, LEASE, toFailedEvent } from './failed-events.ts'
import { createHeldLease } from './held-lease.ts'
import { type Entry, type Failure, createProgress } from './progress.ts'
import type { FailedEvent, WebhookAttemptsRecord, WebhookRecord } from './record.ts'

/** Milliseconds between two looks for failed events that are due. */
const LOOK_INTERVAL = 1_000

/** Milliseconds that a webhook without work stays leased, so that the next event needs no new lease. */
const LINGER = 1_000

export interface WorkerParts {
  webhooks: Collection<WebhookRecord>
  attempts: Collection<WebhookAttemptsRecord>
  records: Collection<FailedEvent>
  queue: Pick<FailedEvents, 'keep' | 'first' | 'free' | 'take' | 'hurry' | 'pace'>
  feed: WebhookFeed
  now: Clock
  timers: Timers
  send: (record: WebhookRecord, message: { id: string, body: string }, signal: AbortSignal) => Promise<OutboundAnswer>
  /** Notes whether the receiver accepts events. */
  outage: OutageNotes | undefined
  /** Disables the webhook with this claim, and stores the progress. */
  disable: (record: WebhookRecord, failure: Failure, progress: Change<WebhookRecord>) => Promise<void>
  /** Whether to wait up to LINGER for further events before the lease is released. */
  lingers: () => boolean
  /** Waits for events after the cursor. Never rejects. */
  wait: (after: string, timeout: number) => Promise<void>
}

interface WorkerSignals {
  /** Starts no further attempt. */
  stop: AbortSignal
  /** Aborts the attempts in flight too. */
  abort: AbortSignal
}

/** Delivers the events of a webhook that this process has leased. */
export function createWorker (leased: WebhookRecord, parts: WorkerParts, { stop, abort }: WorkerSignals) {
  const { webhooks, records, queue, feed, now, timers } = parts
  const { id, parked, hurries } = leased
  const equal = { webhook_id: id }
  const progress = createProgress(leased, parts)
  const log = createAttemptLog(id, parts)
  const running = new Set<Promise<void>>()
  /** Failed events that are queued or in flight. */
  let retries = 0
  let lookAt = 0
  let hasWorked = false
  /** Until all failed events were read, the stored progress stays as it is. */
  let isReady = false
  const errors: unknown[] = []
  const lease = createHeldLease(leased, { webhooks, now, timers, toChange: () => isReady ? progress.toChange() : {}, onSaved: log.save })
  const { save, isSaveDue } = lease

  const goesOn = () => !lease.isLost() && !stop.aborted && errors.length === 0
  const mayBegin = () => goesOn() && progress.mayBegin()
  const attempt = createAttempt({
    ...parts,
    lease,
    progress,
    log,
    goesOn,
    disable: async (record, failure) => await parts.disable(record, failure, progress.toChange()),
    onBack: async () => await queue.hurry(equal),
    abort
  })

  /** Reads which events have failed, after those that a process of an early release has parked became records. */
  async function readFailed (): Promise<void> {
    for (const { id: event_id, since, attempts, due_at } of parked) {
      const event = await feed.find(event_id)
      if (event !== undefined) await queue.keep(toFailedEvent(id, event, since, { attempts, due_at }))
    }
    const failed = scan(records, { equal: { ...equal, state: 'due' } }, { key: 'due_at', urgent: true })
    for await (const batch of failed) {
      for (const { event_id } of batch) progress.addFailed(event_id)
      await Promise.all(batch.map(queue.free))
    }
    if (hurries === true) await queue.hurry(equal)
    isReady = true
    if (parked.length > 0) await save()
  }

  /** @returns whether the position has moved */
  async function readMore (): Promise<boolean> {
    const { position } = progress
    try {
      const { events, after } = await feed.read({ after: position })
      if (after === position) return false
      progress.add(events, after)
    } catch (error) {
      if (!isGone(error)) throw error
      const other = await recoverCursor(feed, position)
      if (other === position) return false
      progress.moveTo(other)
    }
    hasWorked = true
    queue.pace.note()
    return true
  }

  /** Makes an attempt for the queue. */
  async function perform ({ event_id, attempts }: FailedEvent): Promise<void> {
    try {
      const event = progress.getEvent(event_id) ?? await feed.find(event_id)
      // The feed may no longer have it.
      if (event === undefined) return
      if (!mayBegin()) throw new CutOffError()
      hasWorked = true
      await attempt(event, attempts)
    } catch (error) {
      if (error instanceof RefusedError || error instanceof CutOffError) throw error
      errors.push(error)
      // A failure of the store is no attempt.
      throw new CutOffError()
    }
  }

  function track (work: Promise<unknown>): void {
    const ended = work.then(() => {}, (error: unknown) => { errors.push(error) }).finally(() => running.delete(ended))
    running.add(ended)
  }

  /** Queues failed events that are due. */
  async function takeFailed (): Promise<void> {
    if (retries > 0 || timers.now() < lookAt || !mayBegin()) return
    const ends = await queue.take(equal, progress.isDown ? 1 : undefined)
    lookAt = ends.length > 0 ? 0 : timers.now() + LOOK_INTERVAL
    retries = ends.length
    for (const end of ends) track(end.finally(() => { retries-- }))
  }

  async function deliver (entry: Entry): Promise<void> {
    const time = toTimestamp(now())
    entry.state = await queue.first(toFailedEvent(id, entry.event, time, { attempts: 1, due_at: time })) ? 'done' : 'new'
  }

  /** Reads ahead, and starts as many attempts as are allowed. @returns whether all events were read */
  async function fill (): Promise<boolean> {
    await takeFailed()
    let isAtEnd = false
    while (!isAtEnd && goesOn() && progress.wantsEvents()) {
      isAtEnd = !await readMore()
      // Reading past many events of other types takes longer than the lease.
      if (isSaveDue()) await save()
    }
    for (let entry = progress.take(); entry !== undefined; entry = progress.take()) track(deliver(entry))
    return isAtEnd
  }

  async function work (): Promise<void> {
    await readFailed()
    let waiting: Promise<void> | undefined
    let idleSince: number | undefined
    while (goesOn()) {
      const { position } = progress
      const isAtEnd = await fill()
      if (running.size > 0 || progress.position !== position) idleSince = undefined
      if (running.size === 0) {
        idleSince ??= timers.now()
        if (!parts.lingers() || timers.now() - idleSince >= LINGER) return
      }
      if (parts.lingers() && (isAtEnd || running.size === 0)) waiting ??= parts.wait(progress.position, LINGER).finally(() => { waiting = undefined })
      await Promise.race([...running, ...(waiting === undefined ? [] : [waiting])])
      if (isSaveDue()) await save()
    }
  }

  return {
    mayBegin,
    perform,

    /**
     * Delivers until there is no more work.
     * @returns whether there was any
     * @throws the errors of the store. If the lease could not be released, it expires
     */
    async run (): Promise<boolean> {
      // While all attempts hang, nothing else renews the lease.
      const release = keepLease(async () => { if (!lease.isLost()) await save() }, { timers, interval: LEASE / 3, onError: (error) => { errors.push(error) } })
      await work().catch((error: unknown) => { errors.push(error) })
      await Promise.all(running)
      await release()
      // Also after a failure: it may have been a short one, and other processes need not wait until the lease expires.
      if (!lease.isLost()) await save(toTimestamp(0)).catch((error: unknown) => { errors.push(error) })
      if (errors.length > 0) throw errors[0]
      return hasWorked
    }
  }
}

export type Worker = ReturnType<typeof createWorker>
