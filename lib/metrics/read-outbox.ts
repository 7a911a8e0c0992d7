import { type Clock, toTimestamp } from '../clock.ts'
import type { Document, Store } from '../store/port.ts'
import type { Meter } from './meter.ts'

/** The collection of the outbox. */
const OUTBOX = 'deliveries'

type Delivery = Document & {
  due_at: string
}

/**
 * Reads the depth and the age of the outbox at each scrape.
 * @param collections the declared ones: a store without an outbox has no readings
 */
export function readOutbox (store: Store, collections: readonly { name: string }[], now: Clock, meter: Meter): void {
  if (!collections.some(({ name }) => name === OUTBOX)) return
  const deliveries = store.collection<Delivery>(OUTBOX)
  const waiting = () => ({ equal: { state: 'due' }, before: { due_at: toTimestamp(now()) } })
  meter.read('outbox_due', 'Deliveries whose time has come.', async () => await deliveries.count(waiting()))
  meter.read('outbox_failed', 'Deliveries that were given up.', async () => await deliveries.count({ equal: { state: 'failed' } }))
  meter.read('outbox_oldest_seconds', 'How long the oldest delivery has been due.', async () => {
    const [oldest] = (await Array.fromAsync(deliveries.list({ filter: waiting(), sort: [{ key: 'due_at', direction: 'asc' }], limit: 1 }))).flat()
    return oldest === undefined ? 0 : (now() - Date.parse(oldest.due_at)) / 1000
  })
}
