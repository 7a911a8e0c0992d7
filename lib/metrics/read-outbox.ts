import type { Clock } from '../clock.ts'
import { readFirst } from '../lists/first.ts'
import type { Document, Store } from '../store/port.ts'
import type { Meter } from './meter.ts'

/** The collections of the outboxes of mails and of logout tokens. */
const OUTBOXES = { outbox: 'deliveries', logouts: 'logouts' }

type Delivery = Document & {
  created_at: string
}

/**
 * Reads the depth and the age of each outbox at each scrape.
 * @param collections the declared ones: a store without an outbox has no readings
 */
export function readOutbox (store: Store, collections: readonly { name: string }[], now: Clock, meter: Meter): void {
  for (const [prefix, name] of Object.entries(OUTBOXES)) {
    if (!collections.some((collection) => collection.name === name)) continue
    const what = name === 'logouts' ? 'logout tokens' : 'mails'
    const deliveries = store.collection<Delivery>(name)
    // Also what waits for another attempt: a server that refuses all of them lets none be due for long.
    const waiting = { equal: { state: 'due' } }
    meter.read(`${prefix}_due`, `Deliveries of ${what} that were accepted and not made yet.`, async () => await deliveries.count(waiting, { urgent: true }))
    const failed = async () => await deliveries.count({ equal: { state: 'failed' } }, { urgent: true })
    meter.read(`${prefix}_failed`, `Deliveries of ${what} that failed for good.`, failed)
    meter.read(`${prefix}_oldest_seconds`, `Age of the oldest delivery of ${what} that was accepted and not made yet.`, async () => {
      const oldest = await readFirst(deliveries, { filter: waiting, sort: [{ key: 'created_at', direction: 'asc' }], urgent: true })
      return oldest === undefined ? 0 : Math.max(0, now() - Date.parse(oldest.created_at)) / 1000
    })
  }
}
