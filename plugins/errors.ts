import { STATUS_CODES } from 'node:http'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import type { ErrorBody } from '../schemas/error.ts'
import { ERRORS, IdentityError, type ErrorCode } from '../lib/errors.ts'

/** Fastify's own errors that a caller can cause, in our words: Fastify's may repeat a part of the body. */
const MESSAGES: Record<string, string> = {
  FST_ERR_CTP_INVALID_JSON_BODY: 'body: is not valid JSON, or holds a __proto__ key',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'body: must not be empty',
  FST_ERR_CTP_BODY_TOO_LARGE: 'body: is too large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'content-type: must be application/json',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'content-length: does not match the body',
  FST_ERR_BAD_URL: 'path: is not a valid URL path'
}

/** Kinds by status, for errors that carry none of our codes. */
const KINDS: Record<number, ErrorCode> = { 401: 'ErrUnknown', 403: 'ErrPerm', 404: 'ErrNotFound', 429: 'ErrLimit' }

/** What an error becomes on the wire. Whatever was not foreseen is ErrInternal, and tells nothing. */
export function toIdentityError (error: unknown): IdentityError {
  if (error instanceof IdentityError) return error
  const { statusCode = 500, code = '' } = error as Partial<FastifyError>
  if (statusCode < 400 || statusCode >= 500) {
    return new IdentityError('ErrInternal', 'an unforeseen error; the log has it under this request', { cause: error })
  }
  const kind = KINDS[statusCode] ?? 'ErrParam'
  return new IdentityError(kind, MESSAGES[code] ?? ERRORS[kind].when, { statusCode, cause: error })
}

/** The body of an error (schemas/error.ts). */
export function toErrorBody ({ statusCode, code, message }: IdentityError): ErrorBody {
  return { statusCode, code, error: STATUS_CODES[statusCode] ?? ERRORS[code].title, message }
}

/** The error handler of our scopes: whatever was thrown ends here, once. */
export function handleError (thrown: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const error = toIdentityError(thrown)
  if (error.statusCode >= 500) request.log.error({ err: error.cause ?? error, code: error.code }, error.message)
  return reply
    .code(error.statusCode)
    .headers(error.headers)
    .type('application/json')
    .serializer(JSON.stringify)
    .send(toErrorBody(error))
}

/** Unknown routes, in the same form as every error. */
export function handleNotFound (request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return handleError(new IdentityError('ErrNotFound', `path: no such route for ${request.method}`), request, reply)
}
