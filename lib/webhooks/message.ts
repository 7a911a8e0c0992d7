import type { Event } from '../../schemas/event.ts'
import { readVersion } from '../version.ts'

/** Bytes of a message, so that a receiver can put it into any queue. */
const MAX_BYTES = 4_096

/** The type of the message by which an operator tries a webhook. It is in no feed. */
export const TEST_TYPE = 'webhook.test'

export const HEADERS = { 'content-type': 'application/json', 'user-agent': `fastify-identity/${readVersion()}` }

/** What is sent about an event: who and what by their ids. Whoever needs more asks the API. */
export function toBody ({ type, time, id, cursor, actor, target, user_id, client_id, outcome, changed, granted, removed, count }: Event): string {
  const data = { id, cursor, actor, target, user_id, client_id, outcome, count }
  const whole = JSON.stringify({ type, timestamp: time, data: { ...data, changed, granted, removed } })
  return Buffer.byteLength(whole) < MAX_BYTES ? whole : JSON.stringify({ type, timestamp: time, data: { ...data, truncated: true } })
}

/** The message of a trial. */
export function toTestBody (id: string, time: string, webhookId: string): string {
  return JSON.stringify({ type: TEST_TYPE, timestamp: time, data: { id, target: { kind: 'webhook', id: webhookId } } })
}
