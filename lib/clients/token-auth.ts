import type { ClientRecord, TokenAuth } from '../records.ts'

/** The id of the readable secret, among the named ones. */
export const FIRST = 'first'

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

/** The ways to authenticate that pass now: the present one first, then the former one until its end, but never for FAPI 2.0. */
export function listMethods (client: Methods & Pick<ClientRecord, 'former_auth' | 'profile'>, now: string): TokenAuth[] {
  const former = client.profile === 'fapi2' ? undefined : client.former_auth
  return [findTokenAuth(client), ...(former !== undefined && former.until > now ? [former.method] : [])]
}

/** Whether the client still has the secret or the key that once authenticated a request. Its expiry does not matter here. */
export function hasCredential ({ secret, secrets, keys }: Pick<ClientRecord, 'secret' | 'secrets' | 'keys'>, auth_id: string): boolean {
  const isIt = ({ id }: { id: string }) => id === auth_id
  return auth_id === FIRST ? secret !== undefined : secrets?.some(isIt) === true || keys?.some(isIt) === true
}
