import { type Clock, toTimestamp } from '../clock.ts'
import { IdentityError } from '../errors.ts'
import type { Collection } from '../store/port.ts'
import type { Delivery, OutboxKind } from './outbox.ts'

export interface InspectionParts<T extends Delivery> extends Pick<OutboxKind<T>, 'name' | 'renew'> {
  deliveries: Collection<T>
  now: Clock
}

/** The operations for operators: lists waiting and failed deliveries, and retries a failed one. */
export function createInspection<T extends Delivery> ({ name, renew, deliveries, now }: InspectionParts<T>) {
  return {
    /** The deliveries in this state, in the order of their due times. */
    list: (state: Delivery['state']): AsyncIterable<T[]> => deliveries.list({ filter: { equal: { state } }, sort: [{ key: 'due_at', direction: 'asc' }] }),

    /**
     * Makes a failed delivery due again, for any process that delivers.
     * @throws ErrNotFound; ErrParam when its `ends_at` has passed and the kind does not renew it
     */
    async retry (id: string): Promise<T> {
      const missing = new IdentityError('ErrNotFound', `id: no such failed ${name}`)
      const record = await deliveries.get(id)
      if (record?.state !== 'failed') throw missing
      const time = now()
      if (renew === undefined && record.ends_at <= toTimestamp(time)) throw new IdentityError('ErrParam', `id: what this ${name} is about has ended`)
      const set = { state: 'due', attempts: 0, due_at: toTimestamp(time), ...renew?.(time) }
      const again = await deliveries.update(id, { set, unset: ['failure'] }, { equal: { claim: record.claim, state: 'failed' } })
      if (again === null) throw missing
      return again
    }
  }
}
