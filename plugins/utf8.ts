import { isUtf8 } from 'node:buffer'
import { type IdentityError, paramError } from '../lib/errors.ts'
import { XSRF, unmaskXsrf } from '../lib/pages/xsrf.ts'

/** The error for a body in another encoding: decoding would replace bytes, even in a password. */
export function notUtf8 (): IdentityError {
  return paramError('body', 'must be UTF-8')
}

const decodePercent = (text: string): Buffer => (
  Buffer.from(text.replace(/%([\da-f]{2})/gi, (_match, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))), 'latin1'))

/**
 * Parses a body of the type application/x-www-form-urlencoded. The token of a page is unmasked.
 * @throws ErrParam unless it is UTF-8, percent-encoded bytes included
 */
export async function readForm (body: Buffer): Promise<URLSearchParams> {
  const text = body.toString('latin1')
  if (!isUtf8(text.includes('%') ? decodePercent(text) : body)) throw notUtf8()
  const fields = new URLSearchParams(body.toString())
  const xsrf = fields.get(XSRF)
  if (xsrf !== null) fields.set(XSRF, unmaskXsrf(xsrf))
  return fields
}
