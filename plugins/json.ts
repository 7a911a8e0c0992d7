import { isUtf8 } from 'node:buffer'
import type { FastifyInstance } from 'fastify'
import { IdentityError } from '../lib/errors.ts'
import { notUtf8 } from './utf8.ts'

/**
 * Accepts only JSON bodies in UTF-8, in this scope only, and refuses a `__proto__` key. An empty body counts as absent whatever
 * its content type, because some clients send one with every DELETE.
 */
export function useOwnJson (app: FastifyInstance, bodyLimit: number): void {
  const parse = app.getDefaultJsonParser('error', 'error')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer', bodyLimit }, (request, body: Buffer, done) => {
    if (body.length === 0) done(null, undefined)
    else if (isUtf8(body)) void parse(request, body.toString(), done)
    else done(notUtf8())
  })
  app.addContentTypeParser('*', { parseAs: 'string', bodyLimit }, (_request, body, done) => {
    if (body.length === 0) done(null, undefined)
    else done(new IdentityError('ErrParam', 'content-type: must be application/json', { statusCode: 415 }))
  })
}
