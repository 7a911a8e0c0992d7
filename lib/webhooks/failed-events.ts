import type { Event } from '../../schemas/event.ts'
import { toTimestamp } from '../clock.ts'
import type { WorkKind } from '../work/kind.ts'
import { type QueueParts, createQueue } from '../work/queue.ts'
import { type FailedEvent, MAX_PARKED } from './record.ts'
import { AT_ONCE, JITTER, RETRIES } from './schedule.ts'

export const FAILED_EVENTS = 'webhook_failures'

/** Concurrent attempts of this process, for all webhooks. */
const SLOTS = 64

/** The most events that were given up and are kept, and milliseconds that they are. */
const CAPACITY = 10_000
const DAY = 24 * 60 * 60_000
const KEPT = 30 * DAY

/** Milliseconds that an event waits at most, for example while its webhook is disabled: as long as the feed keeps events by default. */
const LIFE = 400 * DAY

/** Records of a webhook that are read at once. */
const LOOKAHEAD = 100

/** Milliseconds for which the lease of a webhook lasts, and the claim of an attempt. Their holder renews them at a third of it. */
export const LEASE = 12_000

const toEnd = (time: number) => ({ ends_at: toTimestamp(time + LIFE), expired_at: toTimestamp(time + LIFE) })

/** The record of an event that has failed since a time. */
export function toFailedEvent (webhook_id: string, { id, type }: Event, since: string, fields: Pick<FailedEvent, 'attempts' | 'due_at'>): FailedEvent {
  return {
    id: `${webhook_id}.${id}`, webhook_id, event_id: id, type, ...fields, state: 'due', claim: 0, created_at: since, ...toEnd(Date.parse(since))
  }
}

/**
 * The queue of events whose delivery failed. A webhook is a lane.
 * @param attempts `perform` makes an attempt under the lease of the webhook; `isHeld` says that this process has none, or must pause
 */
export function createFailedEvents (attempts: Pick<WorkKind<FailedEvent>, 'perform' | 'isHeld'>, parts: QueueParts<FailedEvent>) {
  return createQueue<FailedEvent>({
    ...attempts,
    collection: FAILED_EVENTS,
    name: 'event',
    slots: SLOTS,
    lanes: { keys: ['webhook_id'], slots: AT_ONCE, capacity: MAX_PARKED },
    capacity: CAPACITY,
    lookahead: LOOKAHEAD,
    retries: RETRIES,
    jitter: JITTER,
    lease: LEASE,
    kept: KEPT,
    isFinal: () => false,
    renew: toEnd
  }, parts)
}

export type FailedEvents = ReturnType<typeof createFailedEvents>
