import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import type { ErrorBody } from '../schemas/error.ts'
import { defined } from '../lib/defined.ts'
import { ERRORS, IdentityError, type ErrorCode } from '../lib/errors.ts'
import { STATUS_CODES } from '../lib/node-http.ts'
import { logFailure } from './failure-log.ts'
import { readCode } from '../lib/failure.ts'

/** Our messages for Fastify's errors that callers cause. Fastify's own may quote the body. */
const MESSAGES: Record<string, string> = {
  FST_ERR_CTP_INVALID_JSON_BODY: 'body: is not valid JSON, or has a __proto__ key',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'body: must not be empty',
  FST_ERR_CTP_BODY_TOO_LARGE: 'body: is too large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'content-type: must be application/json',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'content-length: does not match the body',
  FST_ERR_BAD_URL: 'path: is not a valid URL path',
  FST_ERR_MAX_PARAM_LENGTH: 'path: an id in it is too long'
}

/** Kinds by status, for errors without one of our codes. */
const KINDS: Record<number, ErrorCode> = { 401: 'ErrUnknown', 403: 'ErrPerm', 404: 'ErrNotFound', 429: 'ErrLimit' }

/** Converts any error to one that can be sent. An unexpected error becomes ErrInternal, without details. */
export function toIdentityError (error: unknown): IdentityError {
  if (error instanceof IdentityError) return error
  const { statusCode = 500, code = '' } = (error ?? {}) as Partial<FastifyError>
  if (statusCode < 400 || statusCode >= 500) {
    return new IdentityError('ErrInternal', 'an unexpected error; the log has the details under this request id', { cause: error })
  }
  const kind = KINDS[statusCode] ?? 'ErrParam'
  return new IdentityError(kind, MESSAGES[code] ?? ERRORS[kind].when, { statusCode, cause: error })
}

/** The response body of an error (schemas/error.ts). */
export function toErrorBody ({ statusCode, code, message, reason }: IdentityError): ErrorBody {
  return defined({ statusCode, code, error: STATUS_CODES[statusCode] ?? ERRORS[code].title, message, reason })
}

/** Errors of the path itself, which Fastify finds before it looks for a route. */
const PATH_ERRORS: ReadonlySet<string> = new Set(['FST_ERR_BAD_URL', 'FST_ERR_MAX_PARAM_LENGTH'])

const notFoundError = ({ method }: FastifyRequest) => new IdentityError('ErrNotFound', `path: no such route for ${method}`)

/** Fastify parses the body before it reports an unknown route. An invalid body of an unknown route is answered as the unknown route. */
function toRequestError (thrown: unknown, request: FastifyRequest): IdentityError {
  const error = toIdentityError(thrown)
  return request.is404 && error.code === 'ErrParam' && !PATH_ERRORS.has(readCode(thrown) ?? '') ? notFoundError(request) : error
}

/** Answers with an error in the common format. */
export function sendError (error: IdentityError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  logFailure(request, error)
  return reply
    .code(error.statusCode)
    .headers(error.headers)
    .type('application/json')
    .serializer(JSON.stringify)
    .send(toErrorBody(error))
}

/** The error handler of our scopes. */
export function handleError (thrown: unknown, request: FastifyRequest, reply: FastifyReply): void {
  sendError(toRequestError(thrown, request), request, reply)
}

/** Answers unknown routes in the common error format. */
export function handleNotFound (request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return sendError(notFoundError(request), request, reply)
}
