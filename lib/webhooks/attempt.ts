import type { Event } from '../../schemas/event.ts'
import { type Clock, toTimestamp } from '../clock.ts'
import { defined } from '../defined.ts'
import { IdentityError } from '../errors.ts'
import { type OutboundAnswer, OutboundError } from '../outbound/fetcher.ts'
import type { Timers } from '../timers.ts'
import { CutOffError, RefusedError } from '../work/failure.ts'
import type { OutageNotes } from '../work/outage.ts'
import type { createAttemptLog } from './attempt-log.ts'
import type { HeldLease } from './held-lease.ts'
import { toBody } from './message.ts'
import type { Failure, Progress } from './progress.ts'
import type { Attempt, WebhookRecord } from './record.ts'
import { RETRIES } from './schedule.ts'

interface AttemptParts {
  lease: HeldLease
  progress: Progress
  log: ReturnType<typeof createAttemptLog>
  now: Clock
  timers: Timers
  send: (record: WebhookRecord, message: { id: string, body: string }, signal: AbortSignal) => Promise<OutboundAnswer>
  /** Notes whether the receiver accepts events. */
  outage: OutageNotes | undefined
  /** Disables the webhook with this claim. */
  disable: (record: WebhookRecord, failure: Failure) => Promise<void>
  /** Whether an attempt that has begun goes on. */
  goesOn: () => boolean
  /** Called when the receiver was down, and is back. */
  onBack: () => Promise<void>
  /** Aborts an attempt. */
  abort: AbortSignal
}

/** What became of a request: the answer of the receiver, or the code of the failure. */
type Answer = Partial<OutboundAnswer> & { code?: string }

function toCode (error: unknown): string {
  if (error instanceof OutboundError) return error.code
  if (error instanceof IdentityError && error.code === 'ErrInternal') return 'UNREADABLE'
  throw error
}

const isDelivered = ({ status }: Answer): boolean => status !== undefined && status >= 200 && status < 300

/** Makes attempts at events of a webhook that this process has leased. */
export function createAttempt ({ lease, progress, log, now, timers, send, outage, disable, goesOn, onBack, abort }: AttemptParts) {
  async function request (record: WebhookRecord, event: Event): Promise<Answer> {
    try {
      return await send(record, { id: event.id, body: toBody(event) }, abort)
    } catch (error) {
      if (abort.aborted) throw new CutOffError()
      return { code: toCode(error) }
    }
  }

  async function requestLogged (record: WebhookRecord, event: Event, attempt: number): Promise<Answer> {
    const [at, start] = [toTimestamp(now()), timers.now()]
    const answer = await request(record, event)
    const { status, code } = answer
    const outcome: Attempt['outcome'] = isDelivered(answer) ? 'delivered' : attempt > RETRIES.length ? 'given_up' : 'failed'
    log.add(defined({ at, event_id: event.id, type: event.type, attempt, outcome, status, code, time: Math.round(timers.now() - start) }))
    return answer
  }

  async function make (event: Event, attempt: number): Promise<void> {
    const record = await lease.read()
    if (record === null || !goesOn()) throw new CutOffError()
    const answer = await requestLogged(record, event, attempt)
    if (isDelivered(answer)) {
      outage?.succeed()
      if (progress.succeed(event.id)) await onBack()
      return
    }
    outage?.fail(new RefusedError(answer))
    const { pause, failure } = progress.fail(event.id, attempt, answer)
    if (lease.isLost()) throw new CutOffError()
    if (failure !== undefined) {
      lease.lose()
      await disable(record, failure)
      await log.save()
    }
    throw new RefusedError({ status: answer.status, code: answer.code, retryAfter: pause })
  }

  /** Makes an attempt at an event. @throws CutOffError when there was no outcome */
  return async function attempt (event: Event, number: number): Promise<void> {
    progress.begin()
    try {
      await make(event, number)
    } finally {
      progress.end()
    }
  }
}
