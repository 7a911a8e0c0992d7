import type { ClientGrant, ClientRecord } from '../records/client.ts'
import type { TokenRecord } from '../records/token.ts'
import { ADMIN_SCOPES } from '../api-scopes.ts'
import { type Registry, findDeclarer } from '../resources/registry.ts'
import { isConfidential } from './token-auth.ts'

/** All grants, with the types of OAuth 2.0 (RFC 6749, RFC 8628). */
export const GRANT_TYPES: Readonly<Record<ClientGrant, string>> = {
  code: 'authorization_code',
  refresh: 'refresh_token',
  client: 'client_credentials',
  device: 'urn:ietf:params:oauth:grant-type:device_code'
}

/**
 * The grants that a client may use. By default a client with redirect URIs signs users in, and a confidential client without
 * redirect URIs acts for itself.
 */
export function listGrants ({ grants, redirectUris, ...methods }: Pick<ClientRecord, 'grants' | 'redirectUris' | 'secret' | 'tokenAuth'>): ClientGrant[] {
  if (grants !== undefined) return grants
  if (redirectUris.length > 0) return ['code', 'refresh']
  return isConfidential(methods) ? ['client'] : []
}

/** Whether a client may redeem a refresh token. One that the operator minted needs no grant. */
export function canRedeem (client: ClientRecord, { operator }: Pick<TokenRecord, 'operator'>): boolean {
  return operator !== undefined || listGrants(client).includes('refresh')
}

/** Whether only an administrator may give the scope to a client. */
export function isAdminScope (scope: string, registry: Pick<Registry, 'resources' | 'names'>): boolean {
  const declarer = findDeclarer(registry, scope)
  return ADMIN_SCOPES.has(scope) || (typeof declarer === 'string' && registry.resources[declarer]?.self_service.includes(scope) !== true)
}

/** Whether each refresh makes a new refresh token. Those of FAPI 2.0 are protected by their binding (FAPI 2.0 Security Profile, 5.3.2.1-9). */
export const rotatesRefresh = ({ profile }: Pick<ClientRecord, 'profile'>): boolean => profile !== 'fapi2'
