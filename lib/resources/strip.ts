import { type Clock, toTimestamp } from '../clock.ts'
import type { Recorder } from '../events/recorder.ts'
import { scan } from '../lists/scan.ts'
import type { ClientRecord } from '../records.ts'
import type { Change, Collection, Store } from '../store/port.ts'
import { listUsableScopes, readRegistry } from './registry.ts'

/** Attempts for one client. A scope that is left after that has no effect, because look-ups count usable scopes only. */
const ATTEMPTS = 8

/**
 * Removes scopes from clients that have them but may not use them (listUsableScopes). No token depends on this. It keeps clients'
 * records accurate, and makes sure that no client has a name when it is declared again.
 */
export function createStrip ({ store, now, recorder }: { store: Store, now: Clock, recorder: Recorder }) {
  const clients: Collection<ClientRecord> = store.collection('clients')

  async function toChange (client: ClientRecord, names: readonly string[]): Promise<Change | undefined> {
    const carried = client.scopes.filter((scope) => names.includes(scope))
    if (carried.length === 0) return
    const usable = listUsableScopes(client, await readRegistry(store))
    const lost = new Set(carried.filter((scope) => !usable.includes(scope)))
    if (lost.size === 0) return
    const scopes = client.scopes.filter((scope) => !lost.has(scope))
    const declared = Object.entries(client.declared ?? {}).filter(([scope]) => !lost.has(scope))
    const events = recorder.attach(client, { type: 'client.updated', id: client.id, user_id: client.userId, changed: ['scopes'] })
    const set = { scopes, modifiedAt: toTimestamp(now()), ...events }
    return {
      ...(declared.length > 0 ? { set: { ...set, declared: Object.fromEntries(declared) } } : { set, unset: ['declared'] }),
      increment: { revision: 1 }
    }
  }

  async function stripClient (found: ClientRecord, names: readonly string[]): Promise<boolean> {
    let client: ClientRecord | null = found
    for (let attempt = 0; attempt < ATTEMPTS && client !== null; attempt++) {
      const change = await toChange(client, names)
      if (change === undefined) return false
      // A record of an earlier release has no revision for the condition, so it gets one first.
      if (client.revision === undefined) client = await clients.update(client.id, { increment: { revision: 1 } })
      else if (await clients.update(client.id, change, { equal: { revision: client.revision } }) !== null) return true
      else client = await clients.get(client.id)
    }
    return false
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
