import type { Clock } from '../lib/clock.ts'
import type { Services } from '../lib/identity.ts'
import { findClient } from './find-client.ts'

/** A service token of a client. */
export interface TestServiceToken {
  id: string
  client_id: string
  token: string
  /** Headers for inject or fetch: `{ authorization: 'Bearer ...' }`. */
  headers: { authorization: string }
}

/**
 * Makes a service token of a confidential client with an owner, by its id or name.
 * @param options.name `test` by default
 * @param options.scopes of the client; none by default
 * @param options.resource the URI of the resource that it is for
 * @param options.expires_in seconds by the kit's clock; absent: 365 days
 */
export type AddServiceToken = (
  client: string, options?: { name?: string, scopes?: string[], resource?: string, expires_in?: number }
) => Promise<TestServiceToken>

/** Creates a `serviceToken` for open services. */
export function createServiceTokenHelper ({ store, serviceTokens }: Pick<Services, 'store' | 'serviceTokens'>, now: Clock): AddServiceToken {
  return async function serviceToken (client, { name = 'test', scopes = [], resource, expires_in } = {}) {
    const { id: client_id } = await findClient(store, client)
    const expiresAt = expires_in === undefined ? {} : { expiresAt: new Date(now() + expires_in * 1000).toISOString() }
    const data = { name, scopes, ...(resource !== undefined && { resource }), ...expiresAt }
    const { id, token } = await serviceTokens.add(client_id, { data }, { user_id: '', isAdmin: true })
    return { id, token, client_id, headers: { authorization: `Bearer ${token}` } }
  }
}
