import type { FastifyInstance } from 'fastify'
import { IdentityError } from '../lib/errors.ts'

/**
 * Parses JSON bodies and no others, in this scope only, and refuses a `__proto__` key. An empty body counts as none whatever
 * its content type, because some clients send one with every DELETE.
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
