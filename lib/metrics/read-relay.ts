import { decodeTime } from 'ulid'
import type { Clock } from '../clock.ts'
import { CARRIERS } from '../events/gather.ts'
import { LETTERS } from '../events/letters.ts'
import { readOldest } from '../events/pending.ts'
import { readFirst } from '../lists/first.ts'
import type { Document, Store } from '../store/port.ts'
import type { Meter } from './meter.ts'

/** Reads at each scrape the number of documents with unpublished events, the age of the oldest such event, and what was set aside. */
export function readRelay (store: Store, now: Clock, meter: Meter): void {
  const filter = { since: { event_due: '' } }
  meter.read('events_pending', 'Documents with unpublished events.', async () => {
    const counts = await Promise.all(CARRIERS.map((name) => store.collection(name).count(filter)))
    return counts.reduce((sum, count) => sum + count, 0)
  })
  meter.read('events_pending_oldest_seconds', 'Age of the oldest unpublished event.', async () => {
    const oldest = await Promise.all(CARRIERS.map(async (name) => {
      const documents = store.collection<Document & { event_due: string }>(name)
      const first = await readFirst(documents, { filter, sort: [{ key: 'event_due', direction: 'asc' }] })
      return first === undefined ? now() : decodeTime(readOldest(first)!)
    }))
    return Math.max(0, now() - Math.min(...oldest)) / 1000
  })
  meter.read('events_set_aside', 'Documents whose events cannot be published.', async () => await store.collection(LETTERS).count())
}
