import type { FastifyReply, FastifyRequest } from 'fastify'
import { IdentityError } from '../lib/errors.ts'
import { pageHeaders } from '../lib/pages/headers.ts'
import type { Pages } from '../lib/pages/index.ts'
import { toIdentityError } from './errors.ts'

export const OVER = 'This sign-in is over, or was begun in another browser. Go back to the app and start again.'

/** What frames a page: what the operator calls the service, and where the answer to its form may lead. */
interface Frame { service: string | undefined, redirectUri?: string | undefined }

/** Sends a page with its headers. The pages are loaded with the first of them. */
export async function sendPage<Name extends keyof Pages> (
  reply: FastifyReply, name: Name, data: Pages[Name], { service, redirectUri }: Frame
): Promise<FastifyReply> {
  const { renderPage } = await import('../lib/pages/index.ts')
  // A string goes through no serializer, whatever the host has set.
  return reply.headers(pageHeaders(redirectUri)).type('text/html; charset=utf-8').send(renderPage(name, data, service))
}

/** Makes an error handler for scopes that people look at: a page that says what went wrong. */
export function createPageError (service: string | undefined) {
  return async function handlePageError (thrown: unknown, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const gone = thrown instanceof Error && /^(SessionNotFound|InvalidClient)$/.test(thrown.name)
    const error = gone ? new IdentityError('ErrParam', OVER) : toIdentityError(thrown)
    if (error.statusCode >= 500) request.log.error({ err: error.cause ?? error, code: error.code }, error.message)
    reply.code(error.statusCode).headers(error.headers)
    return await sendPage(reply, 'error', { message: describe(error) }, { service })
  }
}

function describe ({ statusCode, code, headers, message }: IdentityError): string {
  if (statusCode >= 500) return 'Something went wrong on our side. Try again in a moment.'
  if (code === 'ErrLimit') return describeLimit(headers['retry-after'])
  return message
}

/** @param seconds what Retry-After says */
export function describeLimit (seconds: string | undefined): string {
  return `Too many attempts. Try again ${seconds === undefined ? 'later' : `in ${seconds} seconds`}.`
}
