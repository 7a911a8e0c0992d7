import type { Clock } from '../lib/clock.ts'
import type { Services } from '../lib/identity.ts'
import { findClient } from './find-client.ts'

/** A named secret of a client. */
export interface TestSecret {
  id: string
  client_id: string
  secret: string
}

/**
 * Adds a named secret to a client, by its id or name.
 * @param options.name `test` by default
 * @param options.expires_in seconds by the kit's clock; absent: it does not expire
 */
export type AddSecret = (client: string, options?: { name?: string, expires_in?: number }) => Promise<TestSecret>

/** Creates a `secret` for open services. */
export function createSecrets ({ store, clients }: Pick<Services, 'store' | 'clients'>, now: Clock): AddSecret {
  return async function secret (client, { name = 'test', expires_in } = {}) {
    const record = await findClient(store, client)
    const expiresAt = expires_in === undefined ? {} : { expiresAt: new Date(now() + expires_in * 1000).toISOString() }
    return { ...await clients.addSecret(record.id, { data: { name, ...expiresAt } }, { user_id: '', isAdmin: true }), client_id: record.id }
  }
}
