import type { ClientRecord } from '../records/client.ts'
import type { Document, Store } from '../store/port.ts'
import { scan } from '../store/scan.ts'

/**
 * The URL of a client that is addressed by the id of its document, because that fits into a path. Null if there is none.
 * @param isAdmin only an administrator may see such a client, so nobody else makes the service search
 */
export async function findDocumentUrl (store: Store, id: string, isAdmin: boolean): Promise<string | null> {
  if (!isAdmin) return null
  const document = await store.collection<Document & { url: string }>('documents').get(id)
  if (document !== null) return document.url
  // The document of a client that was blocked first has never been fetched.
  for await (const batch of scan(store.collection<ClientRecord>('clients'), { absent: ['userId'] })) {
    const found = batch.find(({ document }) => document?.id === id)
    if (found !== undefined) return found.id
  }
  return null
}
