import type { Clock } from '../clock.ts'
import { CARRIERS } from '../events/gather.ts'
import { DEAD_LETTERS } from '../events/dead-letters.ts'
import { findOldestPending } from '../events/oldest.ts'
import type { Store } from '../store/port.ts'
import type { Meter } from './meter.ts'

/** Reads at each scrape the number of documents with unpublished events, the age of the oldest such event, and what was set aside. */
export function readRelay (store: Store, now: Clock, meter: Meter): void {
  const filter = { since: { event_due: '' } }
  meter.read('events_pending', 'Documents with unpublished events.', async () => {
    const counts = await Promise.all(CARRIERS.map((name) => store.collection(name).count(filter, { urgent: true })))
    return counts.reduce((sum, count) => sum + count, 0)
  })
  meter.read('events_pending_oldest_seconds', 'Age of the oldest unpublished event.', async () => {
    const oldest = await findOldestPending(store) ?? now()
    return Math.max(0, now() - oldest) / 1000
  })
  meter.read('events_set_aside', 'Documents whose events cannot be published.', async () =>
    await store.collection(DEAD_LETTERS).count({ since: { due_at: '' } }, { urgent: true }))
}
