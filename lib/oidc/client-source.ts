import { LRUCache } from 'lru-cache'
import type { Client } from 'oidc-provider'
import { isDocumentUrl } from '../client-documents/ids.ts'
import { findWithReason } from '../clients/usable.ts'
import { toTimestamp } from '../clock.ts'
import type { Json } from '../store/port.ts'
import { toMetadata } from './clients.ts'
import { findDocumentClient } from './document-clients.ts'
import type { AdapterParts } from './model-adapter.ts'

/** Clients of oidc-provider that are kept. It makes one in about the time of the rest of a token request. */
const CAPACITY = 1_000

type Metadata = Record<string, Json>

/**
 * Finds clients for oidc-provider. They are read for every request, so that a change takes effect at once: only the object that
 * oidc-provider makes of the same metadata is kept.
 * @param build makes oidc-provider's client
 */
export function createClientSource (parts: AdapterParts, build: (metadata: Metadata) => Client) {
  const { store, times, callers, readRegistry } = parts
  const built = new LRUCache<string, Client>({ max: CAPACITY })

  async function read (id: string): Promise<Metadata | undefined> {
    if (isDocumentUrl(id)) return await findDocumentClient(parts, id)
    const [{ client, owner, reason }, registry] = await Promise.all([findWithReason(store, id, toTimestamp(times.now())), readRegistry()])
    return client === null || reason !== undefined ? undefined : toMetadata(client, registry, await callers.present(client, owner))
  }

  return async function find (id: unknown): Promise<Client | undefined> {
    // The `sub` of an assertion may be of any type.
    const metadata = typeof id === 'string' && id !== '' ? await read(id) : undefined
    if (metadata === undefined) return undefined
    const key = JSON.stringify(metadata)
    let client = built.get(key)
    // From the text, because a record's arrays are shared by all readers.
    if (client === undefined) built.set(key, client = build(JSON.parse(key) as Metadata))
    return client
  }
}
