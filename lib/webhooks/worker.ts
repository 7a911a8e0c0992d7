import type { Event } from '../../schemas/event.ts'
import { type Clock, toTimestamp } from '../clock.ts'
import { IdentityError } from '../errors.ts'
import { type OutboundAnswer, OutboundError } from '../outbound/fetcher.ts'
import type { Change, Collection } from '../store/port.ts'
import type { Timers } from '../timers.ts'
import { keepLease } from '../work/lease.ts'
import type { Slots } from '../work/slots.ts'
import { type WebhookFeed, isGone, recoverCursor, toBefore } from './cursors.ts'
import { toBody } from './message.ts'
import { type Failure, type Task, createProgress } from './progress.ts'
import type { Attempt, WebhookAttemptsRecord, WebhookRecord } from './record.ts'
import { isDelivered } from './schedule.ts'

/** Milliseconds for which a lease lasts, and after which its holder renews it, also while all attempts hang. */
export const LEASE = 12_000
const RENEWAL = 4_000

/** Milliseconds between two writes of the progress. After a crash, events delivered since the last write are delivered again. */
const SAVE_INTERVAL = 1_000

/** Milliseconds that a webhook without work stays leased, so that the next event needs no new lease. */
const LINGER = 1_000

/** Stored attempts of a webhook, and milliseconds that they are stored after the last one. */
const KEPT_ATTEMPTS = 100
const KEPT_FOR = 30 * 24 * 60 * 60_000

export interface WorkerParts {
  webhooks: Collection<WebhookRecord>
  attempts: Collection<WebhookAttemptsRecord>
  feed: WebhookFeed
  now: Clock
  timers: Timers
  random: () => number
  /** Limits the concurrent attempts of this process. */
  slots: Slots
  send: (record: WebhookRecord, message: { id: string, body: string }, signal: AbortSignal) => Promise<OutboundAnswer>
  /** Disables the webhook with this claim, and stores the progress. */
  disable: (record: WebhookRecord, failure: Failure, progress: Change) => Promise<void>
  onGivenUp: (webhookId: string, event: Event) => void
  /** Whether to wait up to LINGER for further events before the lease is released. */
  lingers: () => boolean
  /** Waits for events after the cursor. Never rejects. */
  wait: (after: string, timeout: number) => Promise<void>
}

export interface WorkerSignals {
  /** Starts no further attempt. */
  stop: AbortSignal
  /** Aborts the attempts in flight too. */
  abort: AbortSignal
}

function toCode (error: unknown): string {
  if (error instanceof OutboundError) return error.code
  if (error instanceof IdentityError && error.code === 'ErrInternal') return 'UNREADABLE'
  throw error
}

/**
 * Delivers the events of a webhook that this process has leased, until it has no more work.
 * @returns whether there was any work
 * @throws the errors of the store. If the lease could not be released, it expires
 */
export async function deliver (leased: WebhookRecord, parts: WorkerParts, { stop, abort }: WorkerSignals): Promise<boolean> {
  const { webhooks, attempts, feed, now, timers, slots } = parts
  const { id, claim } = leased
  const progress = createProgress(leased, parts)
  const running = new Set<Promise<void>>()
  let recent: Attempt[] | undefined
  const made: Attempt[] = []
  let savedAt = timers.now()
  let saving: Promise<void> = Promise.resolve()
  /** Another process has leased the webhook, or it was changed, disabled or deleted. */
  let isLost = false
  let hasWorked = false
  const failed: unknown[] = []

  async function saveAttempts (): Promise<void> {
    if (made.length === 0) return
    recent ??= (await attempts.get(id))?.attempts ?? []
    recent = [...recent, ...made.splice(0)].slice(-KEPT_ATTEMPTS)
    await attempts.put({ id, attempts: recent as WebhookAttemptsRecord['attempts'], expired_at: toTimestamp(now() + KEPT_FOR) })
  }

  async function write (leased_until: string): Promise<void> {
    savedAt = timers.now()
    const { set, unset } = progress.toChange()
    const saved = await webhooks.update(id, { set: { ...set, leased_until }, unset: unset ?? [] }, { equal: { claim, state: 'on' } })
    if (saved === null) isLost = true
    else await saveAttempts()
  }

  /** Stores the progress. One write follows the other, so that none undoes a later one. */
  async function save (leased_until: string): Promise<void> {
    saving = saving.catch(() => {}).then(async () => await write(leased_until))
    await saving
  }

  const goesOn = () => !isLost && !stop.aborted
  const isSaveDue = () => !isLost && timers.now() - savedAt >= SAVE_INTERVAL

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
    return true
  }

  async function findEvent (task: Task): Promise<Event | undefined> {
    if ('entry' in task) return task.entry.event
    for (let cursor = toBefore(task.parked.cursor); ;) {
      try {
        const { events: [event] } = await feed.read({ after: cursor, limit: 1 })
        return event?.id === task.parked.id ? event : undefined
      } catch (error) {
        if (!isGone(error)) throw error
        const other = await recoverCursor(feed, cursor)
        if (other === cursor || other.split('.')[1] !== cursor.split('.')[1]) return
        cursor = other
      }
    }
  }

  async function attempt (task: Task): Promise<void> {
    const record = await webhooks.get(id)
    if (record?.claim !== claim || record.state !== 'on') isLost = true
    if (isLost || stop.aborted) return progress.putBack(task)
    const event = await findEvent(task)
    if (event === undefined) return progress.drop(task)
    const at = toTimestamp(now())
    const start = timers.now()
    let result: { status?: number, code?: string, retryAfter?: number | undefined }
    try {
      result = await parts.send(record!, { id: event.id, body: toBody(event) }, abort)
    } catch (error) {
      if (abort.aborted) return progress.putBack(task)
      result = { code: toCode(error) }
    }
    const { status, code } = result
    const number = 'parked' in task ? task.parked.attempts + 1 : 1
    const keep = (outcome: Attempt['outcome']) => made.push({
      at, event_id: event.id, type: event.type, attempt: number, outcome, ...(status !== undefined && { status }), ...(code !== undefined && { code }), time: Math.round(timers.now() - start)
    })
    if (made.length > KEPT_ATTEMPTS) made.shift()
    if (status !== undefined && isDelivered({ status })) {
      keep('delivered')
      return progress.succeed(task)
    }
    const { isGivenUp, failure } = progress.fail(task, result)
    keep(isGivenUp ? 'given_up' : 'failed')
    if (isGivenUp) parts.onGivenUp(id, event)
    if (failure === undefined || isLost) return
    isLost = true
    await parts.disable(record!, failure, progress.toChange())
    await saveAttempts()
  }

  async function run (task: Task): Promise<void> {
    hasWorked = true
    try {
      await slots.run(async () => await attempt(task), { lane: id })
    } catch (error) {
      failed.push(error)
      progress.putBack(task)
    }
  }

  /** Reads ahead, and starts as many attempts as are allowed. @returns whether all events were read */
  async function fill (): Promise<boolean> {
    let isAtEnd = false
    while (!isAtEnd && goesOn() && progress.wantsEvents()) {
      isAtEnd = !await readMore()
      // Reading past many events of other types takes longer than the lease.
      if (isSaveDue()) await save(toTimestamp(now() + LEASE))
    }
    for (let task = progress.take(); task !== undefined; task = progress.take()) {
      const work = run(task).finally(() => running.delete(work))
      running.add(work)
    }
    return isAtEnd
  }

  async function work (): Promise<void> {
    let waiting: Promise<void> | undefined
    let idleSince: number | undefined
    while (goesOn() && failed.length === 0) {
      const { position } = progress
      const isAtEnd = await fill()
      if (running.size > 0 || progress.position !== position) idleSince = undefined
      if (running.size === 0) {
        idleSince ??= timers.now()
        if (!parts.lingers() || timers.now() - idleSince >= LINGER) return
      }
      if (parts.lingers() && (isAtEnd || running.size === 0)) waiting ??= parts.wait(progress.position, LINGER).finally(() => { waiting = undefined })
      await Promise.race([...running, ...(waiting === undefined ? [] : [waiting])])
      if (isSaveDue()) await save(toTimestamp(now() + LEASE))
    }
  }

  // While all attempts hang, nothing else renews the lease.
  const release = keepLease(async () => { if (!isLost) await save(toTimestamp(now() + LEASE)) }, {
    timers, interval: RENEWAL, onError: (error) => { failed.push(error) }
  })
  await work().catch((error: unknown) => { failed.push(error) })
  await Promise.all(running)
  await release()
  // Also after a failure: it may have been a short one, and other processes need not wait until the lease expires.
  if (!isLost) await save(toTimestamp(now())).catch((error: unknown) => { failed.push(error) })
  if (failed.length > 0) throw failed[0]
  return hasWorked
}
