import { readFirst } from '../lib/lists/first.ts'
import type { ClientRecord } from '../lib/records/client.ts'
import type { Store } from '../lib/store/port.ts'

/**
 * The client with this id or name.
 * @throws Error when there is none
 */
export async function findClient (store: Store, client: string): Promise<ClientRecord> {
  const records = store.collection<ClientRecord>('clients')
  const record = await records.get(client) ?? await readFirst(records, { filter: { equal: { name: client } } })
  if (record === undefined) throw new Error(`there is no client '${client}'`)
  return record
}
