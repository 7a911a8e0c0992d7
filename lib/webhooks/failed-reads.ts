import { type Clock, toTimestamp } from '../clock.ts'
import { MOST_APART } from '../deadline.ts'
import { readFirst } from '../lists/first.ts'
import type { Collection } from '../store/port.ts'
import type { FailedEvent } from './record.ts'

/** Reads about the events that wait for another attempt at a webhook. */
export function createFailedReads (records: Collection<FailedEvent>, now: Clock) {
  const toDueOf = (webhook_id: string) => ({ webhook_id, state: 'due' })

  return {
    /** The one whose next attempt is the first. */
    findFirst: async (id: string): Promise<FailedEvent | undefined> => (
      await readFirst(records, { filter: { equal: toDueOf(id) }, sort: [{ key: 'due_at', direction: 'asc' }], urgent: true })),

    count: async (id: string): Promise<number> => await records.count({ equal: toDueOf(id) }, { urgent: true }),

    /** Whether some wait too long, because a clock was ahead. The worker makes them due. */
    async hasLate (id: string): Promise<boolean> {
      const filter = { equal: toDueOf(id), since: { set_at: toTimestamp(now() + MOST_APART + 1) } }
      return await readFirst(records, { filter, sort: [{ key: 'set_at', direction: 'asc' }], urgent: true }) !== undefined
    }
  }
}
