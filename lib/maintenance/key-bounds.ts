import { isWithinBounds } from '../crypto/public-keys.ts'
import type { DocumentRecord } from '../client-documents/record.ts'
import type { ClientRecord } from '../records/client.ts'
import type { Document, Store } from '../store/port.ts'
import { scan } from '../store/scan.ts'

/** Records with a public key that costs more than it may: an earlier release has stored it. It verifies nothing. */
export async function * findKeysOutOfBounds (store: Store): AsyncGenerator<{ what: string, ids: string[] }> {
  async function find<T extends Document> (collection: string, isOut: (record: T) => boolean): Promise<string[]> {
    const ids: string[] = []
    for await (const batch of scan(store.collection<T>(collection), {})) for (const record of batch) if (isOut(record)) ids.push(record.id)
    return ids
  }
  yield { what: 'clients', ids: await find<ClientRecord>('clients', ({ keys = [] }) => keys.some(({ jwk }) => !isWithinBounds(jwk))) }
  yield { what: 'documents of clients', ids: await find<DocumentRecord>('documents', ({ body }) => body.keys?.some((key) => !isWithinBounds(key)) === true) }
}
