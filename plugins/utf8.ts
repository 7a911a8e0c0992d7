import { isUtf8 } from 'node:buffer'
import { type IdentityError, paramError } from '../lib/errors.ts'

/** The error for a body in another encoding: decoding would replace bytes, even in a password. */
export function notUtf8 (): IdentityError {
  return paramError('body', 'must be UTF-8')
}

/**
 * Parses a body of the type application/x-www-form-urlencoded.
 * @throws ErrParam unless it is UTF-8, percent-encoded bytes included
 */
export async function readForm (body: Buffer): Promise<URLSearchParams> {
  const bytes = body.toString('latin1').replace(/%([\da-f]{2})/gi, (_match, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  if (!isUtf8(Buffer.from(bytes, 'latin1'))) throw notUtf8()
  return new URLSearchParams(body.toString())
}
