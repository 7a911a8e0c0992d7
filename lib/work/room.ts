import { busyError } from '../errors.ts'
import type { Collection } from '../store/port.ts'
import type { Timers } from '../timers.ts'
import type { WorkKind } from './kind.ts'
import type { WorkRecord } from './record.ts'

/** Milliseconds that a count of records is cached. Records added since are counted in memory. */
const COUNT_INTERVAL = 1_000

/** Cached counts. */
const COUNTS = 1_000

interface RoomParts<T extends WorkRecord> {
  kind: WorkKind<T>
  records: Collection<T>
  timers: Timers
  toLane: (record: T) => { key: string, value: string } | undefined
}

/** Bounds how much work of a kind is stored: due and failed, of all lanes and of one. */
export function createRoom<T extends WorkRecord> ({ kind: { name, capacity, lanes, isUrgent, retries }, records, timers, toLane }: RoomParts<T>) {
  const counted = new Map<string, { at: number, count: number }>()

  /** The count of the records that match, to which the caller adds those that it stores. Reads the store once a second at most. */
  async function findCount (equal: Record<string, string>): Promise<{ count: number }> {
    const time = timers.now()
    const key = JSON.stringify(equal)
    let entry = counted.get(key)
    if (entry === undefined || time - entry.at > COUNT_INTERVAL) {
      entry = { at: time, count: await records.count({ equal }, { urgent: true }) }
      if (counted.size >= COUNTS) counted.clear()
      counted.set(key, entry)
    }
    return entry
  }

  return {
    /**
     * Counts a record that is to be stored.
     * @throws ErrBusy
     */
    async take (record: T): Promise<void> {
      const most = isUrgent === undefined || isUrgent(record) ? capacity : capacity / 2
      const all = await findCount({ state: 'due' })
      const rooms = [{ entry: all, most }]
      const lane = toLane(record)
      if (lanes !== undefined && lane !== undefined) {
        const entry = await findCount({ state: 'due', [lane.key]: lane.value })
        rooms.push({ entry, most: lanes.capacity ?? most - all.count })
      }
      if (rooms.some(({ entry, most }) => entry.count >= most)) throw busyError(`${name}s`, retries[0])
      for (const { entry } of rooms) entry.count++
    },

    /** @throws ErrBusy when too much is due */
    async check (): Promise<void> {
      if ((await findCount({ state: 'due' })).count >= capacity) throw busyError(`${name}s`, retries[0])
    },

    /** Counts a record that has failed. @returns whether it is kept */
    async takeFailed (): Promise<boolean> {
      const stored = await findCount({ state: 'failed' })
      if (stored.count >= capacity) return false
      stored.count++
      return true
    }
  }
}
