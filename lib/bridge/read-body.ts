import type { Readable } from 'node:stream'
import { IdentityError } from '../errors.ts'

interface BodyLimits {
  /** Bytes. */
  bodyLimit: number
  /** Milliseconds for the whole body. */
  bodyTimeout: number
}

const bodyError = (statusCode: number, reason: string) => new IdentityError('ErrParam', `body: ${reason}`, { statusCode })
const tooLarge = (limit: number) => bodyError(413, `must not have more than ${limit} bytes`)

async function collect (source: Readable, limit: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  // An error must not destroy the socket, because the response still has to be sent.
  for await (const chunk of source.iterator({ destroyOnReturn: false })) {
    size += chunk.length
    if (size > limit) throw tooLarge(limit)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/**
 * Reads a request body into memory.
 * @param length its Content-Length; NaN without one
 * @throws ErrParam: 413 for too many bytes, 408 after `bodyTimeout`, 400 for an incomplete body
 */
export async function readBody (source: Readable, length: number, { bodyLimit, bodyTimeout }: BodyLimits): Promise<Buffer> {
  if (length > bodyLimit) throw tooLarge(bodyLimit)
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(bodyError(408, 'did not arrive in time')), bodyTimeout)
  try {
    return await Promise.race([collect(source, bodyLimit), late.promise])
  } catch (error) {
    throw error instanceof IdentityError ? error : bodyError(400, 'is incomplete')
  } finally {
    clearTimeout(timer)
  }
}
