import { Transform, type Readable } from 'node:stream'
import { IdentityError } from '../errors.ts'

/**
 * Lets at most `limit` bytes through and fails with ErrParam (413) at the next. The source is left as it is, since its
 * socket still has to carry the answer.
 */
export function boundBody (source: Readable, limit: number): Transform {
  let seen = 0
  const bounded = new Transform({
    transform (chunk: Buffer, _encoding, done) {
      seen += chunk.length
      if (seen <= limit) done(null, chunk)
      else done(tooLarge(limit))
    }
  })
  // undici listens once the request is on its way; until then nobody does.
  bounded.on('error', () => {})
  source.once('error', (error) => bounded.destroy(error))
  source.once('close', () => { if (!source.readableEnded) bounded.destroy() })
  return source.pipe(bounded)
}

export const tooLarge = (limit: number) => new IdentityError('ErrParam', `body: must not have more than ${limit} bytes`, {
  statusCode: 413, headers: { connection: 'close' }
})
