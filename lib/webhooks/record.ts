import type { Document, Json } from '../store/port.ts'

/** An event whose delivery failed, and which is delivered again. The feed has its content. */
export type Parked = {
  /** The event's ULID. */
  id: string
  /** The event's place in the feed. */
  cursor: string
  attempts: number
  due_at: string
  /** When it was first tried. */
  since: string
}

/** A replay that ends: where it ends, and where the deliveries go on after it. */
export type Replay = { to: string, resume: string }

/** A webhook: a cursor on the feed that one process at a time moves on. */
export interface WebhookRecord extends Document {
  name: string
  url: string
  types: string[]
  /** 1 to 20, each once: so there are no more webhooks. */
  slot: number
  state: 'on' | 'off'
  /** Why the service disabled it. */
  failure?: string
  /** The signing secrets as JSON, sealed. */
  sealed: string
  revision: number
  created_at: string
  modified_at: string

  /** Incremented by each process that begins to deliver, and by changes that end what another one does. */
  claim: number
  /** Until then the process with the claim delivers. */
  leased_until: string
  /** Where the deliveries are in the feed: all events up to here were delivered, or are parked. */
  cursor: string
  replay?: Replay
  parked: Parked[]
  /** Failed attempts in a row. */
  failures: number
  /** The first of them. */
  failing_since?: string
  /** All parked events are due: something about the webhook was changed. */
  hurries?: true
  /** No attempt is made before. */
  wait_until?: string
}

/** The outcome of an attempt. Never anything that the receiver sent but its status. */
export type Attempt = {
  at: string
  event_id: string
  type: string
  /** Which attempt of this event it was, from 1. */
  attempt: number
  outcome: 'delivered' | 'failed' | 'given_up'
  status?: number
  /** Why there was no answer. */
  code?: string
  /** Milliseconds. */
  time: number
}

/** The last attempts of a webhook, under its id. */
export interface WebhookAttemptsRecord extends Document {
  attempts: (Attempt & Json)[]
  expired_at: string
}

/** Webhooks that there may be. */
export const MAX_WEBHOOKS = 20

/** Failed events that are kept for another attempt; with so many the cursor waits. */
export const MAX_PARKED = 1_000
