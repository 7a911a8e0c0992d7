import { decodeTime } from 'ulid'
import { readFirst } from '../lists/first.ts'
import type { Document, Store } from '../store/port.ts'
import { CARRIERS } from './gather.ts'
import { readOldest } from './pending.ts'

/** The time (ms) of the oldest event that is not published yet. Undefined when there is none. */
export async function findOldestPending (store: Store): Promise<number | undefined> {
  const found = await Promise.all(CARRIERS.map(async (name) => {
    const documents = store.collection<Document & { event_due: string }>(name)
    const first = await readFirst(documents, { filter: { since: { event_due: '' } }, sort: [{ key: 'event_due', direction: 'asc' }], urgent: true })
    return first && decodeTime(readOldest(first)!)
  }))
  const times = found.filter((time) => time !== undefined)
  return times.length === 0 ? undefined : Math.min(...times)
}
