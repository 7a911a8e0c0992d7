import type { FastifyInstance } from 'fastify'
import { IdentityError } from '../lib/errors.ts'

/**
 * Reads JSON bodies and no others, in this scope only. A `__proto__` key is refused. An empty body is no body,
 * whatever its type: a DELETE that came with a content type is still a DELETE.
 */
export function useOwnJson (app: FastifyInstance, bodyLimit: number): void {
  const parse = app.getDefaultJsonParser('error', 'error')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'string', bodyLimit }, (request, body, done) => {
    if (body.length === 0) done(null, undefined)
    else parse(request, body as string, done)
  })
  app.addContentTypeParser('*', { parseAs: 'string', bodyLimit }, (_request, body, done) => {
    if (body.length === 0) done(null, undefined)
    else done(new IdentityError('ErrParam', 'content-type: must be application/json', { statusCode: 415 }))
  })
}
