import { isConfidential } from '../clients/token-auth.ts'
import { findUsable } from '../clients/usable.ts'
import { type Clock, toTimestamp } from '../clock.ts'
import { defined } from '../defined.ts'
import { paramError } from '../errors.ts'
import { isRegisteredUri } from '../clients/registered-uris.ts'
import type { PageWay } from '../pages/contract.ts'
import { type ClientRecord, isVouchedFor } from '../records/client.ts'
import type { Store } from '../store/port.ts'

/** Where a person continues after a link: a redirect URI, and the client that has registered it. */
export interface ReturnTo { return_to: string, client_id: string }

interface Services { store: Store, now: Clock }

const isRegistered = (client: ClientRecord, uri: string) =>
  isRegisteredUri({ registered_uris: client.redirectUris, public: !isConfidential(client) }, uri)

/** The fields of a ticket or a mail that say where the person continues. */
export function copyReturnTo ({ return_to, client_id }: { return_to?: unknown, client_id?: unknown }): Partial<ReturnTo> {
  return defined({
    return_to: typeof return_to === 'string' ? return_to : undefined,
    client_id: typeof client_id === 'string' ? client_id : undefined
  })
}

/**
 * Checks the URI where a person continues after a link. Our links must lead only to apps that are registered here.
 * @throws ErrParam unless the client has registered the URI
 */
export async function checkReturnTo ({ store, now }: Services, client_id: string | undefined, return_to: string | undefined): Promise<Partial<ReturnTo>> {
  if (return_to === undefined) return {}
  if (client_id === undefined) throw paramError('clientId', 'is required with returnTo')
  const client = await findUsable(store, client_id, toTimestamp(now()))
  if (client === null || !isRegistered(client, return_to)) throw paramError('returnTo', 'must be a registered redirect URI of the client')
  return { return_to, client_id }
}

/**
 * The way to the app where a person continues after a link. The client may have changed since the link was made. Links that were
 * made by code of the host, or before the upgrade, name no client, so nobody vouches for them.
 */
export async function findReturn ({ store, now }: Services, { return_to, client_id }: Partial<ReturnTo>): Promise<PageWay | undefined> {
  if (return_to === undefined) return undefined
  if (client_id === undefined) return { uri: return_to, vouched: false }
  const client = await findUsable(store, client_id, toTimestamp(now()))
  if (client === null || !isRegistered(client, return_to)) return undefined
  return { client: { name: client.name }, uri: return_to, vouched: isVouchedFor(client) }
}
