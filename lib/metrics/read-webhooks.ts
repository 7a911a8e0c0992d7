import type { Webhooks } from '../webhooks/webhooks.ts'
import type { Meter } from './meter.ts'

/** Reads the backlog of webhook deliveries at each scrape. */
export function readWebhooks (webhooks: Pick<Webhooks, 'readBacklog'>, meter: Meter): void {
  meter.read('webhooks_parked', 'Events that a webhook did not take, and that are tried again.', async () => (await webhooks.readBacklog()).parked)
  meter.read('webhooks_oldest_seconds', 'Age of the oldest event that a webhook has yet to take.', async () => (await webhooks.readBacklog()).oldest)
}
