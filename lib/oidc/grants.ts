import type { GrantRecord } from '../records.ts'
import { type Payload, type AdapterParts, type ModelAdapter, strip } from './parts.ts'
import { findStanding } from './standing.ts'
import { describeMinted } from './scopes.ts'
import type { TokenRecord } from '../records.ts'
import { scan } from '../lists/scan.ts'
import type { Store } from '../store/port.ts'

/** Names the grant of a token that was minted without one: `MINTED` and the token's id. */
const MINTED = 'minted:'

/** A token that was minted without a session still needs a grant in oidc-provider's eyes: one that is made as it is read. */
export function nameMintedGrant (id: string): string {
  return MINTED + id
}

/**
 * Ends a token session. The grant first: a token that is being issued looks for it after its own write, so that it either
 * finds no grant and takes itself back, or was written early enough to be found here.
 */
export async function endGrant (store: Store, grantId: string): Promise<void> {
  if (grantId.startsWith(MINTED)) return
  await store.collection('grants').delete(grantId)
  for (const name of ['refresh_tokens', 'access_tokens', 'authorization_codes', 'device_codes']) {
    await store.collection(name).deleteMany({ equal: { grant_id: grantId } })
  }
}

/** Ends the token sessions that last no longer than a sign-in at a browser, of one client or of all. */
export async function endBoundGrants (store: Store, uid: string, clientId?: string): Promise<void> {
  const grants = store.collection<GrantRecord>('grants')
  for await (const batch of scan(grants, { equal: { session_uid: uid, ...(clientId !== undefined && { client_id: clientId }) } })) {
    for (const grant of batch) if (grant.bound === true) await endGrant(store, grant.id)
  }
}

/** Grants: each authorization has one of its own, which is the token session that comes of it. */
export function adaptGrants ({ store, times }: AdapterParts): ModelAdapter {
  const grants = store.collection<GrantRecord>('grants')
  const accessTokens = store.collection<TokenRecord>('access_tokens')

  /** The grant of a token or a session that was minted: all that it may do. */
  function describe (record: TokenRecord, scope: string): Payload {
    return {
      kind: 'Grant',
      accountId: record.user_id,
      clientId: record.client_id,
      openid: { scope },
      iat: times.toEpoch(record.created_at),
      exp: times.toEpoch(record.expired_at)
    }
  }

  return {
    async find (id) {
      const minted = id.startsWith(MINTED)
      const found = minted
        ? await findStanding(accessTokens, id.slice(MINTED.length), times.now())
        : await findStanding<TokenRecord>(grants, id, times.now())
      if (found === null || found.client === null) return undefined
      const { record, client } = found
      const payload = minted ? undefined : record.payload
      if (payload === undefined) return { ...describe(record, describeMinted(record, client)), jti: id }
      return { ...payload, jti: id, iat: times.toEpoch(record.created_at), exp: times.toEpoch(record.expired_at) }
    },
    destroy: (id) => endGrant(store, id)
  }
}

/** A new grant's record, written together with the code that leads to it. */
export function toGrantRecord (
  payload: Payload, id: string, subject: Pick<GrantRecord, 'user_id' | 'client_id' | 'user_epoch' | 'client_epoch'>,
  rest: Pick<GrantRecord, 'created_at' | 'expired_at'> & { scopes: string[], session_uid: string, bound: boolean }
): GrantRecord {
  return { id, ...subject, ...rest, last_used_at: rest.created_at, payload: strip(payload) }
}
