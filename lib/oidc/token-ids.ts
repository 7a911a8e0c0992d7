import { createToken, hashToken } from '../crypto/random-token.ts'

/**
 * Begins the name of a token by the id of its record, within one request of this process. Nobody outside can write it: whoever has read an id,
 * in a backup or a list, has no token by it.
 */
const BY_ID = `~${createToken()}~`

/** The name of a JWT, which has dots, by its record; any other value as it is. */
export function nameStructured (token: unknown): unknown {
  return typeof token === 'string' && token.includes('.') ? BY_ID + hashToken(token) : token
}

/** The id of the record of a token that oidc-provider names by its text, or as above. */
export const toRecordId = (name: string): string => name.startsWith(BY_ID) ? name.slice(BY_ID.length) : hashToken(name)
