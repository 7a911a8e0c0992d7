import type { Client } from '../../schemas/client.ts'
import type { Complete } from '../../schemas/common.ts'
import type { ClientRecord } from '../records.ts'

/** The client as a caller may see it: only an admin sees its owner. */
export function showClient (record: ClientRecord, isAdmin: boolean, open: (sealed: string, id: string) => string): Complete<Client> {
  return {
    clientId: record.id,
    createdAt: record.createdAt,
    modifiedAt: record.modifiedAt,
    clientSecret: record.secret === undefined ? undefined : open(record.secret, record.id),
    redirectUris: record.redirectUris,
    scopes: record.scopes,
    userId: isAdmin ? record.userId : undefined,
    name: record.name,
    image: record.image
  }
}
