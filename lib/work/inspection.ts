import { type Clock, toTimestamp } from '../clock.ts'
import { IdentityError } from '../errors.ts'
import { readFirst } from '../lists/first.ts'
import type { Collection, Filter } from '../store/port.ts'
import { scan } from '../store/scan.ts'
import { LEASE } from './lease.ts'
import { STALL } from './pace.ts'
import { type WorkRecord, toDue } from './record.ts'

interface InspectionParts<T extends WorkRecord> {
  /** The name of a record in error messages. */
  name: string
  /** The new end of failed work that an operator retries. Absent: it keeps its end. */
  renew?: ((time: number) => Pick<WorkRecord, 'ends_at' | 'expired_at'>) | undefined
  records: Collection<T>
  now: Clock
}

/**
 * Whether an operator may have it attempted now: it was given up, or an attempt has failed and the next one is to come. What was not attempted
 * yet waits for its time, and during an attempt its outcome decides.
 */
const isRetried = ({ state, attempts, leased, due_at }: WorkRecord, time: string): boolean => (
  state === 'failed' || (state === 'due' && attempts > 0 && leased !== true && due_at > time))

/** The operations for operators: lists waiting and failed work, and retries it. */
export function createInspection<T extends WorkRecord> ({ name, renew, records, now }: InspectionParts<T>) {
  return {
    /** The records in this state, in the order of their due times. */
    list: (state: WorkRecord['state']): AsyncIterable<T[]> => scan(records, { equal: { state } }, { key: 'due_at' }),

    /** How much was given up and is kept. An index counts it. */
    countFailed: async (): Promise<number> => await records.count({ equal: { state: 'failed' } }, { urgent: true }),

    /** Since when work is due that nobody attempts. Undefined while it goes on. */
    async findStall (): Promise<string | undefined> {
      const [time, sort] = [now(), [{ key: 'due_at', direction: 'asc' as const }]]
      const find = async (range: Filter) => await readFirst(records, { filter: { equal: { state: 'due' }, ...range }, sort, urgent: true })
      const oldest = await find({ before: { due_at: toTimestamp(time - STALL) } })
      if (oldest === undefined) return
      // During an attempt, `due_at` is the end of its claim.
      const next = await find({ since: { due_at: toTimestamp(time) }, before: { due_at: toTimestamp(time + LEASE) } })
      return next === undefined || next.attempts === 0 ? oldest.due_at : undefined
    },

    /**
     * Makes failed work due again, for any process, and work that waits after a failed attempt.
     * @throws ErrNotFound; ErrParam when its `ends_at` has passed and the kind does not renew it
     */
    async retry (id: string): Promise<T> {
      const missing = new IdentityError('ErrNotFound', `id: no such failed ${name}`)
      const record = await records.get(id)
      const time = now()
      if (record === null || !isRetried(record, toTimestamp(time))) throw missing
      const { claim, state, ends_at } = record
      if ((renew === undefined || state === 'due') && ends_at <= toTimestamp(time)) {
        throw new IdentityError('ErrParam', `id: what this ${name} is about has ended`)
      }
      const set = { ...toDue(time, time), ...(state === 'failed' && { state: 'due', attempts: 0, ...renew?.(time) }) }
      const again = await records.update(id, { set, unset: ['failure'] }, { equal: { claim, state } })
      if (again === null) throw missing
      return again
    }
  }
}
