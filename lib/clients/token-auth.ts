import type { ClientRecord, TokenAuth } from '../records/client.ts'

/** The fields that decide how a client authenticates. */
type Methods = Pick<ClientRecord, 'tokenAuth' | 'secret'>

/** How a client authenticates. */
export function findTokenAuth ({ tokenAuth, secret }: Methods): TokenAuth {
  return tokenAuth ?? (secret === undefined ? 'none' : 'secret')
}

/** Whether a client must authenticate. It depends on the declared way only: a confidential client may have no secret left. */
export function isConfidential (client: Methods): boolean {
  return findTokenAuth(client) !== 'none'
}

/** The ways to authenticate that pass now: the present one first, then the previous one until its end, but never for FAPI 2.0. */
export function listMethods (client: Methods & Pick<ClientRecord, 'former_auth' | 'profile'>, now: string): TokenAuth[] {
  const previous = client.profile === 'fapi2' ? undefined : client.former_auth
  return [findTokenAuth(client), ...(previous !== undefined && previous.until > now ? [previous.method] : [])]
}
