import type { Complete } from '../../schemas/common.ts'
import type { Webhook, WebhookAttempt } from '../../schemas/webhook.ts'
import type { Attempt, WebhookRecord } from './record.ts'

/**
 * The webhook as the API shows it: without its secrets.
 * @param parked the number of events that wait for a retry
 */
export function showWebhook (record: WebhookRecord, parked: number): Complete<Webhook> {
  return {
    webhookId: record.id,
    name: record.name,
    url: record.url,
    types: record.types,
    disabled: record.state === 'off' ? true : undefined,
    failure: record.failure,
    cursor: record.cursor,
    parked,
    failingSince: record.failing_since,
    waitsUntil: record.wait_until,
    createdAt: record.created_at,
    modifiedAt: record.modified_at
  }
}

export function showAttempt ({ event_id, ...attempt }: Attempt): WebhookAttempt {
  return { eventId: event_id, ...attempt }
}
