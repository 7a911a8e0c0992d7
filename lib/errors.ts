/**
 * The table of error kinds. The key is the body's `code`, `status` the HTTP status.
 * A message is for the caller: it names the field and the problem, and never contains a secret, password, token, stack or
 * path. Details for the operator go in `cause`, which is logged and never sent.
 */
export const ERRORS = {
  ErrParam: { status: 400, title: 'Bad Request', when: 'A parameter, header or body is invalid.' },
  ErrUnknown: {
    status: 401,
    title: 'Unauthorized',
    when: 'No access token, or one that is unknown, expired, revoked or for another resource, or whose user or client is deleted or disabled, or must sign in again for this.'
  },
  ErrPerm: { status: 403, title: 'Forbidden', when: 'The caller is not allowed to do this.' },
  ErrNotFound: { status: 404, title: 'Not Found', when: 'No such client, user, resource, webhook or route, or none that the caller may see.' },
  USER_EXIST: { status: 409, title: 'Conflict', when: 'A user with this account exists.' },
  ErrTicket: { status: 410, title: 'Gone', when: 'A link is unknown, was used or replaced, or has expired.' },
  ErrGone: { status: 410, title: 'Gone', when: 'A cursor of the event feed is older than the events that are kept, or of another feed.' },
  RESOURCE_EXIST: { status: 409, title: 'Conflict', when: 'A resource with this id or one of these scopes exists, or the scope is reserved.' },
  USER_NOT_EXIST: { status: 422, title: 'Unprocessable Entity', when: 'The given owner does not exist.' },
  ErrLimit: { status: 429, title: 'Too Many Requests', when: 'Too many requests, and Retry-After says when to try again; or too many clients.' },
  ErrInternal: { status: 500, title: 'Internal Server Error', when: 'An unexpected error.' },
  ErrRsc: { status: 502, title: 'Bad Gateway', when: "The bridge's upstream is unreachable, timed out, or sent an invalid list." },
  ErrDb: {
    status: 503,
    title: 'Service Unavailable',
    when: 'The store failed or did not answer in time, or the service is shutting down; Retry-After says when to try again.'
  },
  ErrBusy: {
    status: 503,
    title: 'Service Unavailable',
    when: 'A queue is full, another request is using the same link, or the deadline of a search has passed; Retry-After says when to try again.'
  }
} as const

export type ErrorCode = keyof typeof ERRORS

/**
 * Reasons for errors. ErrParam: `short`, `common` and `name`, for a refused new password. ErrLimit: `paused` and `closed`, for a
 * password or a code that was not compared, and `code_closed`, for a factor. ErrBusy: `events`, for a record with too many unpublished events.
 */
export const REASONS = ['short', 'common', 'name', 'paused', 'closed', 'code_closed', 'events'] as const

type ErrorReason = typeof REASONS[number]

interface IdentityErrorOptions extends ErrorOptions {
  /** Response headers, such as WWW-Authenticate or Retry-After. */
  headers?: Record<string, string>
  /** A status other than the kind's own: 413 and 415 are ErrParam. */
  statusCode?: number
  /** Tells problems with the same code apart, where a program needs that. */
  reason?: ErrorReason | undefined
}

/** An error of a known kind. Services throw it, and plugins/errors.ts turns it into a response. */
export class IdentityError extends Error {
  override readonly name = 'IdentityError'
  readonly code: ErrorCode
  readonly statusCode: number
  readonly headers: Readonly<Record<string, string>>
  readonly reason: ErrorReason | undefined

  constructor (code: ErrorCode, message: string, options: IdentityErrorOptions = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.code = code
    this.statusCode = options.statusCode ?? ERRORS[code].status
    this.headers = options.headers ?? {}
    this.reason = options.reason
  }
}

/** Invalid input. `field` is the name that the caller wrote, `cause` the problem. */
export function paramError (field: string, cause: string, reason?: ErrorReason): IdentityError {
  return new IdentityError('ErrParam', `${field}: ${cause}`, { reason })
}

/** The caller may not do this. `field` is what they may not name or change, `cause` the reason. */
export function permError (field: string, cause: string): IdentityError {
  return new IdentityError('ErrPerm', `${field}: ${cause}`)
}

/** The token lacks one of these scopes (RFC 6750, 3.1). */
export function scopeError (scopes: readonly string[]): IdentityError {
  return new IdentityError('ErrPerm', `the access token lacks a scope: ${scopes.join(' ')}`, {
    headers: { 'www-authenticate': `Bearer error="insufficient_scope", scope="${scopes.join(' ')}"` }
  })
}

/** Seconds that ErrDb asks a caller to wait. */
const RETRY_AFTER = '1'

/** The store failed. The caller may retry; the cause is for the log. */
export function storeError (cause: unknown): IdentityError {
  return new IdentityError('ErrDb', 'the store is unavailable', { cause, headers: { 'retry-after': RETRY_AFTER } })
}

/** The service is about to close. That is no failure of its store, and another process may answer. */
export class ClosingError extends IdentityError {
  constructor () {
    super('ErrDb', 'the service is shutting down', { headers: { 'retry-after': RETRY_AFTER } })
  }
}

/**
 * The queue for this kind of work is full.
 * @param wait milliseconds after which to try again
 */
export function busyError (what: string, wait = 0): IdentityError {
  return new IdentityError('ErrBusy', `too many ${what} are waiting`, { headers: { 'retry-after': String(Math.max(1, Math.ceil(wait / 1000))) } })
}

/** Too many operations wait for the store. */
export class StoreBusyError extends IdentityError {
  constructor (what: string) {
    const { code, message, headers } = busyError(what)
    super(code, message, { headers })
  }
}

/** The caller gave a read less time than it takes. */
export function deadlineError (): IdentityError {
  return new IdentityError('ErrBusy', 'deadline: the search was given up, because nothing was found in this time', { headers: { 'retry-after': RETRY_AFTER } })
}

/** Whether what all work shares has failed: the store. A queue that is full holds up its own work only. */
export function isOutage (error: unknown): boolean {
  return error instanceof StoreBusyError || (error instanceof IdentityError && error.code === 'ErrDb')
}

/** The caller disconnected before the response. Nobody receives this error, and it is not a failure of the service. */
export function goneError (): IdentityError {
  return new IdentityError('ErrParam', 'request: the connection was closed before the answer', { statusCode: 499 })
}
