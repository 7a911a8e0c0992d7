import { paramError } from '../errors.ts'
import { isRegisteredUri } from '../oidc/clients.ts'
import type { ClientRecord } from '../records.ts'
import type { Store } from '../store/port.ts'

/**
 * Checks the URI where a person continues after a link. Our links must lead only to apps that are registered here.
 * @throws ErrParam unless the client has registered the URI
 */
export async function checkReturnTo (store: Store, client_id: string | undefined, return_to: string | undefined): Promise<string | undefined> {
  if (return_to === undefined) return
  if (client_id === undefined) throw paramError('clientId', 'is required with returnTo')
  const client = await store.collection<ClientRecord>('clients').get(client_id)
  const isRegistered = client !== null && client.disabled_at === undefined &&
    isRegisteredUri({ registered_uris: client.redirectUris, public: client.secret === undefined }, return_to)
  if (!isRegistered) throw paramError('returnTo', 'must be a registered redirect URI of the client')
  return return_to
}
