import { type KeyObject, createHmac, hash } from 'node:crypto'

/**
 * Ids that no user gets, because requests for a user of that name are other operations (`GET /user/list`). A test compares them with the
 * routes.
 */
export const ROUTE_NAMES: readonly string[] = ['count', 'email', 'export', 'factors', 'identities', 'import', 'invite', 'list', 'sign-in', 'token']

/** The key of a user's id in another system. No two users have the same one. */
export function toExternalKey (source: string, id: string): string {
  return hash('sha256', `${source}\0${id}`, 'base64url')
}

/** The key of the seed of an authenticator app, so that no two imported users share one. */
export function toSeedKey (seed: string, key: KeyObject): string {
  return createHmac('sha256', key).update(seed).digest('base64url')
}
