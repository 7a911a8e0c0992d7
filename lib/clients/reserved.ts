import { RESERVED_SCOPES } from '../api-scopes.ts'
import type { ClientRecord } from '../records/client.ts'
import type { Store } from '../store/port.ts'

/** Warns of clients that have a scope of a name that is reserved now. An index finds them. */
export async function warnOfReserved (store: Store, onWarning: (message: string) => void): Promise<void> {
  const filter = { equal: { reserved: true } }
  const clients = store.collection<ClientRecord>('clients')
  for await (const [first] of clients.page({ filter, limit: 1, urgent: true })) {
    if (first === undefined) return
    const name = first.scopes.find((scope) => RESERVED_SCOPES.has(scope))
    const count = await clients.count(filter, { urgent: true })
    onWarning(`reserved scopes: some clients (${count}) have a scope of a name that is reserved now, such as ${name} of client ${first.id}. ` +
      'For them it stays a free scope, and never gets the meaning that a later release gives the name')
  }
}
