import { hash, randomBytes } from 'node:crypto'

/** A token's id in the store. 256 random bits need neither a salt nor a slow hash. */
export function hashToken (token: string): string {
  return hash('sha256', token, 'base64url')
}

/** A new token: 256 random bits, base64url. */
export function createToken (): string {
  return randomBytes(32).toString('base64url')
}
