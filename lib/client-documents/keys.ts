import { KeyError, type PublicKey, readPublicKeys } from '../crypto/public-keys.ts'
import { DocumentError } from './error.ts'

/**
 * The public keys of a JSON Web Key Set.
 * @throws DocumentError
 */
export function readKeys (jwks: unknown): PublicKey[] {
  try {
    return readPublicKeys(jwks)
  } catch (error) {
    throw error instanceof KeyError ? new DocumentError('jwks', error.message, { value: error.value }) : error
  }
}
