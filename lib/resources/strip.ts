import type { Base } from '../base.ts'
import { type Decision, changeRecord, unlessGone } from '../change-record.ts'
import { toTimestamp } from '../clock.ts'
import { IdentityError } from '../errors.ts'
import { scan } from '../store/scan.ts'
import type { ClientRecord } from '../records/client.ts'
import type { Collection } from '../store/port.ts'
import { listUsableScopes, readRegistry } from './registry.ts'

const notFound = () => new IdentityError('ErrNotFound', 'clientId: no such client')

/**
 * Removes scopes from clients that have them but may not use them (listUsableScopes). No token depends on this. It keeps clients'
 * records accurate, and makes sure that no client has a name when it is declared again.
 */
export function createStrip ({ store, now, recorder }: Pick<Base, 'store' | 'now' | 'recorder'>) {
  const clients: Collection<ClientRecord> = store.collection('clients')

  async function toChange (client: ClientRecord, names: readonly string[]): Promise<Decision<ClientRecord> | null> {
    const carried = client.scopes.filter((scope) => names.includes(scope))
    if (carried.length === 0) return null
    const usable = listUsableScopes(client, await readRegistry(store))
    const lost = new Set(carried.filter((scope) => !usable.includes(scope)))
    if (lost.size === 0) return null
    const scopes = client.scopes.filter((scope) => !lost.has(scope))
    const declared = Object.entries(client.declared ?? {}).filter(([scope]) => !lost.has(scope))
    const set = { scopes, modifiedAt: toTimestamp(now()) }
    return {
      ...(declared.length > 0 ? { set: { ...set, declared: Object.fromEntries(declared) } } : { set, unset: ['declared'] }),
      happened: [{ type: 'client.updated', id: client.id, user_id: client.userId ?? null, changed: ['scopes'] }]
    }
  }

  async function stripClient (found: ClientRecord, names: readonly string[]): Promise<boolean> {
    if (!found.scopes.some((scope) => names.includes(scope))) return false
    let isStripped = false
    const stripped = await unlessGone(changeRecord({ collection: clients, recorder, what: 'the client', notFound }, found.id, async (client) => {
      const change = await toChange(client, names)
      isStripped = change !== null
      return change
    }))
    return stripped !== null && isStripped
  }

  /** Resolves to the number of clients that lost a scope. */
  return async function strip (names: readonly string[]): Promise<number> {
    if (names.length === 0) return 0
    let count = 0
    for await (const batch of scan(clients, {})) {
      for (const client of batch) if (await stripClient(client, names)) count++
    }
    return count
  }
}
