import type { Event } from '../../schemas/event.ts'
import { readVersion } from '../version.ts'

/** The limit of a message in bytes. A receiver can put a message below it into any queue. */
const MAX_BYTES = 4_096

/** The type of the message by which an operator tests a webhook. The feed has no such event. */
const TEST_TYPE = 'webhook.test'

export const HEADERS = { 'content-type': 'application/json', 'user-agent': `fastify-identity/${readVersion()}` }

/** The message about an event. It names users and targets by their ids only. A receiver that needs more asks the API. */
export function toBody ({ type, time, id, cursor, actor, target, user_id, client_id, outcome, changed, granted, removed, count }: Event): string {
  const data = { id, cursor, actor, target, user_id, client_id, outcome, count }
  const whole = JSON.stringify({ type, timestamp: time, data: { ...data, changed, granted, removed } })
  return Buffer.byteLength(whole) < MAX_BYTES ? whole : JSON.stringify({ type, timestamp: time, data: { ...data, truncated: true } })
}

/** The message of a test. */
export function toTestBody (id: string, time: string, webhookId: string): string {
  return JSON.stringify({ type: TEST_TYPE, timestamp: time, data: { id, target: { kind: 'webhook', id: webhookId } } })
}
