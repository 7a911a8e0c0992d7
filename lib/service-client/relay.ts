import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import { errors, Pool, type Dispatcher } from 'undici'
import { busyError, IdentityError, paramError } from '../errors.ts'
import { validateHeaderName, validateHeaderValue } from '../node-http.ts'
import type { ServiceAddress } from './address.ts'

export { type Dispatcher } from 'undici'

/** Header fields by lower-case name; an array where a field came several times. */
export type Headers = Record<string, string | string[]>

interface RelayOptions {
  upstream: ServiceAddress
  maxConnections: number
  /** Milliseconds, see schemas/bridge.ts. */
  connectTimeout: number
  headersTimeout: number
  bodyTimeout: number
  /** Used instead of the relay's own pool, and never closed. */
  dispatcher?: Dispatcher | undefined
}

export interface RelayRequest {
  method: string
  /** Relative to the upstream's base, with the query. */
  path: string
  headers: Headers
  body: Buffer | null
  /** Aborted when the caller disconnects. The upstream request is then aborted too. */
  signal: AbortSignal
}

export interface RelayResponse {
  status: number
  headers: IncomingHttpHeaders
  /** Throws ErrRsc when the upstream fails. Leaving the loop early closes the upstream connection. */
  body: AsyncGenerator<Buffer, void>
  /** Reads and drops the body. Call it when the response to the caller has no body. */
  discard: () => void
}

/** Requests that may wait for the start of a response. Further ones get ErrBusy. */
const MAX_WAITING = 1024

const TIMEOUTS = new Set(['UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT'])

const tooLate = (cause?: unknown) => new IdentityError('ErrRsc', 'the upstream did not answer in time', { cause })

/** Translates a failure of the upstream for the caller. The cause is for the log. */
function toError (cause: unknown, message: string): unknown {
  if (cause instanceof IdentityError) return cause
  // undici attaches the unreadable bytes to this error. They are part of a response, and may contain a secret.
  if (cause instanceof errors.HTTPParserError) return new IdentityError('ErrRsc', message, { cause: new Error(cause.message) })
  const { code } = cause as { code?: string }
  return code !== undefined && TIMEOUTS.has(code) ? tooLate(cause) : new IdentityError('ErrRsc', message, { cause })
}

/** The characters that undici allows in a request target. */
const TARGET = /^[\x21-\xff]+$/

/** Throws ErrParam for a request that undici would refuse: its pool (8.12.4) never uses that connection again. */
function checkRequest ({ path, headers }: RelayRequest): void {
  try {
    if (!TARGET.test(path)) throw new Error('not a request target')
    for (const [name, values] of Object.entries(headers)) {
      validateHeaderName(name)
      for (const value of [values].flat()) validateHeaderValue(name, value)
    }
  } catch {
    throw paramError('request', 'cannot be forwarded')
  }
}

async function * streamBody (body: Readable): AsyncGenerator<Buffer, void> {
  try {
    yield * body
  } catch (error) {
    throw toError(error, 'the upstream aborted its response')
  }
}

/** Sends requests to one upstream over a bounded pool of keep-alive connections. It never retries or follows redirects. */
export class Relay {
  readonly #options: RelayOptions
  readonly #dispatcher: Dispatcher
  #waiting = 0

  constructor (options: RelayOptions) {
    this.#options = options
    this.#dispatcher = options.dispatcher ?? new Pool(options.upstream.origin, {
      connections: options.maxConnections,
      connect: { timeout: options.connectTimeout },
      // In HTTP/1.1 an aborted response is a closed connection.
      allowH2: false
    })
  }

  /**
   * Resolves when the response starts.
   * @throws ErrRsc when the upstream is unreachable or exceeds a timeout, ErrBusy when too many requests wait, ErrParam for a
   * request that cannot be forwarded
   */
  async send (request: RelayRequest): Promise<RelayResponse> {
    checkRequest(request)
    request.signal.throwIfAborted()
    if (this.#waiting >= MAX_WAITING) throw busyError('requests to the upstream')
    const { upstream, connectTimeout, headersTimeout, bodyTimeout } = this.#options
    // undici's own timeouts do not cover the wait for a free connection, and its signal does not abort a queued request.
    const deadline = new AbortController()
    const timer = setTimeout(() => deadline.abort(tooLate()), connectTimeout + headersTimeout)
    const signal = AbortSignal.any([request.signal, deadline.signal])
    const { promise: aborted, reject } = Promise.withResolvers<never>()
    const abort = () => reject(signal.reason)
    signal.addEventListener('abort', abort)
    this.#waiting++
    try {
      const { statusCode, headers, body } = await Promise.race([aborted, this.#dispatcher.request({
        origin: upstream.origin,
        path: upstream.base + request.path,
        method: request.method,
        headers: request.headers,
        body: request.body,
        signal,
        headersTimeout,
        bodyTimeout
      })])
      if (statusCode > 599) {
        // Unread, it would keep its connection.
        body.on('error', () => {}).destroy()
        throw new IdentityError('ErrRsc', 'the upstream sent an invalid status')
      }
      return { status: statusCode, headers, body: streamBody(body), discard: () => { body.on('error', () => {}).resume() } }
    } catch (error) {
      throw toError(error, 'the upstream is unreachable')
    } finally {
      this.#waiting--
      clearTimeout(timer)
      // With a listener, Node keeps a composite signal until one of its sources aborts. Most never do.
      signal.removeEventListener('abort', abort)
    }
  }

  /** Closes the relay's own connections. Nothing may be in flight. */
  async close (): Promise<void> {
    if (this.#options.dispatcher === undefined) await this.#dispatcher.destroy()
  }
}
