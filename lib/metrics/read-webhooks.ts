import type { Webhooks } from '../webhooks/webhooks.ts'
import type { Meter } from './meter.ts'

/** Reads the backlog of webhook deliveries at each scrape. */
export function readWebhooks (webhooks: Pick<Webhooks, 'readBacklog'>, meter: Meter): void {
  meter.read('webhooks_parked', 'Failed events of webhooks that are retried.', async () => (await webhooks.readBacklog()).parked)
  meter.read('webhooks_oldest_seconds', 'Age of the oldest event that is not delivered to a webhook ' +
    'yet.', async () => (await webhooks.readBacklog()).oldest)
}
