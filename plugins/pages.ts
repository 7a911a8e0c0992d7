import type { FastifyReply, FastifyRequest } from 'fastify'
import { IdentityError } from '../lib/errors.ts'
import { pageHeaders } from '../lib/pages/headers.ts'
import type { Pages } from '../lib/pages/index.ts'
import { toIdentityError } from './errors.ts'
import { logFailure } from './failure-log.ts'

export const SIGN_IN_OVER = 'This sign-in is over, or was started in another browser. Go back to the app and start again.'

export interface PageOptions {
  /** The service's name on the pages. */
  service: string | undefined
  /** The URL that submitting the page's form may redirect to. */
  redirectUri?: string | undefined
}

/** Sends a page with its headers. */
export async function sendPage<Name extends keyof Pages> (
  reply: FastifyReply, name: Name, data: Pages[Name], { service, redirectUri }: PageOptions
): Promise<FastifyReply> {
  // Loaded when the first page is sent.
  const { renderPage } = await import('../lib/pages/index.ts')
  // The host's serializers are not applied to a string.
  return reply.headers(pageHeaders(redirectUri)).type('text/html; charset=utf-8').send(renderPage(name, data, service))
}

/** Creates an error handler that answers with a page. */
export function createPageError (service: string | undefined) {
  return async function handlePageError (thrown: unknown, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const isOver = thrown instanceof Error && /^(SessionNotFound|InvalidClient|InvalidRedirectUri)$/.test(thrown.name)
    const error = isOver ? new IdentityError('ErrParam', SIGN_IN_OVER) : toIdentityError(thrown)
    logFailure(request, error)
    reply.code(error.statusCode).headers(error.headers)
    return await sendPage(reply, 'error', { message: describe(error) }, { service })
  }
}

function describe ({ statusCode, code, headers, message }: IdentityError): string {
  if (statusCode >= 500) return 'Something went wrong on our side. Try again in a moment.'
  if (code === 'ErrLimit') return describeLimit(headers['retry-after'])
  return message
}

/** @param seconds the value of Retry-After */
export function describeLimit (seconds: string | undefined): string {
  return `Too many attempts. Try again ${seconds === undefined ? 'later' : `in ${seconds} seconds`}.`
}
