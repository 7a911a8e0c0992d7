/**
 * The one table of error kinds. `status` is the HTTP status, `code` what the body carries.
 * A message is for the caller: it names the field and the cause, and never holds a secret, a password, a token,
 * a stack or a path. What an operator needs travels in `cause`, which is logged and never sent.
 */
export const ERRORS = {
  ErrParam: { status: 400, title: 'Bad Request', when: 'A parameter, header or body is invalid.' },
  ErrUnknown: { status: 401, title: 'Unauthorized', when: 'No access token, or one that is unknown, expired or revoked, or whose user or client is gone or disabled.' },
  ErrPerm: { status: 403, title: 'Forbidden', when: 'The caller may not do this.' },
  ErrNotFound: { status: 404, title: 'Not Found', when: 'No such client, user or route that the caller may see.' },
  USER_EXIST: { status: 409, title: 'Conflict', when: 'A user with this account exists.' },
  USER_NOT_EXIST: { status: 422, title: 'Unprocessable Entity', when: 'A client was to be made for a user that does not exist.' },
  ErrLimit: { status: 429, title: 'Too Many Requests', when: 'Too many requests; Retry-After says when to try again.' },
  ErrInternal: { status: 500, title: 'Internal Server Error', when: 'Anything unforeseen.' },
  ErrRsc: { status: 502, title: 'Bad Gateway', when: "The bridge's upstream is unreachable, timed out, or sent a list that is not one." },
  ErrDb: { status: 503, title: 'Service Unavailable', when: 'The store failed or did not answer in time; Retry-After says when to try again.' },
  ErrBusy: { status: 503, title: 'Service Unavailable', when: 'Too much work of one kind is waiting; Retry-After says when to try again.' }
} as const

export type ErrorCode = keyof typeof ERRORS

export interface IdentityErrorOptions extends ErrorOptions {
  /** Response headers that go with the error, such as WWW-Authenticate or Retry-After. */
  headers?: Record<string, string>
  /** Another status than the kind's own: 413 and 415 are ErrParam. */
  statusCode?: number
}

/** An error of a known kind. Thrown by the services, and turned into a response in one place, plugins/errors.ts. */
export class IdentityError extends Error {
  override readonly name = 'IdentityError'
  readonly code: ErrorCode
  readonly statusCode: number
  readonly headers: Readonly<Record<string, string>>

  constructor (code: ErrorCode, message: string, options: IdentityErrorOptions = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.code = code
    this.statusCode = options.statusCode ?? ERRORS[code].status
    this.headers = options.headers ?? {}
  }
}

/** Invalid input: `field` is the name as the caller wrote it, `cause` what is wrong with it. */
export function paramError (field: string, cause: string): IdentityError {
  return new IdentityError('ErrParam', `${field}: ${cause}`)
}

/** Seconds a caller is asked to wait after ErrDb and ErrBusy. */
const RETRY_AFTER = '1'

/** The store failed: callers are told to try again, the cause is for the log. */
export function storeError (cause: unknown): IdentityError {
  return new IdentityError('ErrDb', 'the store is unavailable', { cause, headers: { 'retry-after': RETRY_AFTER } })
}

/** More work of this kind is waiting than is bounded for. */
export function busyError (what: string): IdentityError {
  return new IdentityError('ErrBusy', `too many ${what} are waiting`, { headers: { 'retry-after': RETRY_AFTER } })
}
