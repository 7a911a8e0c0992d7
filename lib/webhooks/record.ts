import { isAhead } from '../deadline.ts'
import type { Document, Json } from '../store/port.ts'
import type { WorkRecord } from '../work/record.ts'
import { MOST_RETRY_AFTER } from './schedule.ts'

/** An event whose delivery failed. Its content is in the feed. The holder of the webhook's lease tries it again. */
export interface FailedEvent extends WorkRecord {
  webhook_id: string
  /** The event's ULID. */
  event_id: string
  type: string
}

/** An event that failed in a process of an early release, which kept it in the webhook's record. */
type Parked = { id: string, attempts: number, due_at: string, since: string }

/** A bounded replay: its end, and the cursor at which the deliveries resume. */
export type Replay = { to: string, resume: string }

/** A webhook, with a cursor in the feed that one process at a time advances. */
export interface WebhookRecord extends Document {
  name: string
  url: string
  types: string[]
  /** 1 to 20, and unique: this limits the number of webhooks. */
  slot: number
  state: 'on' | 'off'
  /** Why the service disabled it. */
  failure?: string
  /** The signing secrets as JSON, sealed. */
  sealed: string
  revision: number
  created_at: string
  modified_at: string

  /** Incremented by each process that leases the webhook, and by each change that ends a lease. */
  claim: number
  /** The end of the lease. Until then the process with the claim delivers. */
  leased_until: string
  /** The position of the deliveries in the feed: each event up to here was delivered or given up, or is a FailedEvent. */
  cursor: string
  replay?: Replay
  /** Empty, unless a process of an early release has delivered since the last lease. */
  parked: Parked[]
  /** Failed attempts in a row. */
  failures: number
  /** The time of the first of them. */
  failing_since?: string
  /** All failed events are due, because the webhook was changed. */
  hurries?: true
  /** No attempt is made before this time. */
  wait_until?: string
  /** When that was written. Absent where an earlier release wrote it. */
  wait_set_at?: string
}

/** Until when no attempt is made for a webhook. Undefined when one may be made now. */
export const findWait = ({ wait_until, wait_set_at }: Pick<WebhookRecord, 'wait_until' | 'wait_set_at'>, time: number): string | undefined => (
  wait_until !== undefined && isAhead({ at: wait_until, from: wait_set_at, longest: MOST_RETRY_AFTER }, time) ? wait_until : undefined)

/** The outcome of an attempt. Of the receiver's answer it has the status only. */
export type Attempt = {
  at: string
  event_id: string
  type: string
  /** Which attempt of this event it was, from 1. */
  attempt: number
  outcome: 'delivered' | 'failed' | 'given_up'
  status?: number
  /** The reason when there was no answer. */
  code?: string
  /** Milliseconds. */
  time: number
}

/** The last attempts of a webhook, under its id. */
export interface WebhookAttemptsRecord extends Document {
  attempts: (Attempt & Json)[]
  expired_at: string
}

/** The most webhooks. */
export const MAX_WEBHOOKS = 20

/** The most failed events that wait for a retry. With so many the cursor stops. */
export const MAX_PARKED = 1_000
