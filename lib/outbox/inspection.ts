import { type Clock, toTimestamp } from '../clock.ts'
import { IdentityError } from '../errors.ts'
import type { Collection } from '../store/port.ts'
import type { Delivery, OutboxKind } from './outbox.ts'

export interface InspectionParts<T extends Delivery> extends Pick<OutboxKind<T>, 'name' | 'renew'> {
  deliveries: Collection<T>
  now: Clock
}

/** What an operator does about deliveries: sees which wait and which failed, and has a failed one made again. */
export function createInspection<T extends Delivery> ({ name, renew, deliveries, now }: InspectionParts<T>) {
  async function retry (record: T | null): Promise<T> {
    const missing = new IdentityError('ErrNotFound', `id: no such failed ${name}`)
    if (record?.state !== 'failed') throw missing
    if (renew === undefined && record.ends_at <= toTimestamp(now())) throw new IdentityError('ErrParam', `id: what this ${name} is about has ended`)
    const time = now()
    const set = { state: 'due', attempts: 0, due_at: toTimestamp(time), ...renew?.(time) }
    const again = await deliveries.update(record.id, { set, unset: ['failure'] }, { equal: { claim: record.claim, state: 'failed' } })
    if (again === null) throw missing
    return again
  }

  return {
    /** The deliveries in this state, the earliest first. */
    list: (state: Delivery['state']): AsyncIterable<T[]> => deliveries.list({ filter: { equal: { state } }, sort: [{ key: 'due_at', direction: 'asc' }] }),

    /**
     * Makes a failed delivery due again. Any process that delivers makes it.
     * @throws ErrNotFound; ErrParam when what it is about has ended
     */
    retry: async (id: string): Promise<T> => await retry(await deliveries.get(id))
  }
}
