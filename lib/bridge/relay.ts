import { validateHeaderName, validateHeaderValue, type IncomingHttpHeaders } from 'node:http'
import type { Readable, Transform } from 'node:stream'
import { errors, Pool, type Dispatcher } from 'undici'
import type { Upstream } from './bridge-options.ts'
import { busyError, IdentityError, paramError } from '../errors.ts'
import type { Headers } from './forwarding.ts'

export { type Dispatcher } from 'undici'

export interface RelayOptions {
  upstream: Upstream
  maxConnections: number
  /** Milliseconds, see schemas/bridge.ts. */
  connectTimeout: number
  headersTimeout: number
  bodyTimeout: number
  /** Used instead of a pool of the relay's own, and left open. */
  dispatcher?: Dispatcher | undefined
}

export interface RelayRequest {
  method: string
  /** Below the upstream's base, with the query. */
  path: string
  headers: Headers
  /** The body as it comes in, from `boundBody`; null for none. */
  body: Transform | null
  /** Aborted when the caller has gone: the upstream's work ends with it. */
  signal: AbortSignal
}

export interface RelayResponse {
  status: number
  headers: IncomingHttpHeaders
  /** Fails with ErrRsc when the upstream breaks off. Leaving it early closes the upstream's connection. */
  body: AsyncGenerator<Buffer, void>
  /** For an answer without a body, which nobody will read. */
  discard: () => void
}

/** Requests that may wait for the beginning of an answer; past them callers get ErrBusy. */
const MAX_WAITING = 1024

const TIMEOUTS = new Set(['UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT'])

const bodyTooLate = () => new IdentityError('ErrParam', 'body: did not come in time', {
  statusCode: 408, headers: { connection: 'close' }
})
const tooLate = (cause?: unknown) => new IdentityError('ErrRsc', 'the upstream did not answer in time', { cause })

/** What a failure of the upstream is to the caller. The cause is for the log. */
function toError (cause: unknown, message: string): unknown {
  if (cause instanceof IdentityError) return cause
  // undici hangs the bytes it could not read on its error: a part of an answer, which may hold a secret.
  if (cause instanceof errors.HTTPParserError) return new IdentityError('ErrRsc', message, { cause: new Error(cause.message) })
  const { code } = cause as { code?: string }
  return code !== undefined && TIMEOUTS.has(code) ? tooLate(cause) : new IdentityError('ErrRsc', message, { cause })
}

/** What a request target may be made of, as undici has it. */
const TARGET = /^[\x21-\xff]+$/

/**
 * Throws ErrParam for a request that undici would not write. Its pool (8.12.4) takes the connection that refuses one for
 * busy, and never uses it again.
 */
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

async function * readBody (body: Readable): AsyncGenerator<Buffer, void> {
  try {
    yield * body
  } catch (error) {
    throw toError(error, 'the upstream broke off its answer')
  }
}

/** Sends requests to one upstream over a bounded pool of kept-alive connections. Nothing is retried or followed. */
export class Relay {
  readonly #options: RelayOptions
  readonly #dispatcher: Dispatcher
  #waiting = 0

  constructor (options: RelayOptions) {
    this.#options = options
    this.#dispatcher = options.dispatcher ?? new Pool(options.upstream.origin, {
      connections: options.maxConnections,
      connect: { timeout: options.connectTimeout },
      // One protocol, whose ends and aborts are known: a broken body is a broken connection.
      allowH2: false
    })
  }

  /**
   * Resolves when the answer begins.
   * @throws ErrRsc when the upstream is unreachable or late, ErrBusy when too many wait, ErrParam for a request that
   * cannot be forwarded, and whatever the request's body failed with
   */
  async send (request: RelayRequest): Promise<RelayResponse> {
    checkRequest(request)
    request.signal.throwIfAborted()
    if (this.#waiting >= MAX_WAITING) throw busyError('requests to the upstream')
    const { upstream, headersTimeout, bodyTimeout } = this.#options
    const patience = new Patience(request, this.#patienceFor(request))
    this.#waiting++
    try {
      const answer = await Promise.race([patience.lost, this.#dispatcher.request({
        origin: upstream.origin,
        path: upstream.base + request.path,
        method: request.method,
        headers: request.headers,
        body: request.body,
        signal: patience.signal,
        headersTimeout,
        bodyTimeout
      })])
      const { body } = answer
      if (answer.statusCode > 599) throw new IdentityError('ErrRsc', 'the upstream sent a status that is not one')
      return {
        status: answer.statusCode,
        headers: answer.headers,
        body: readBody(body),
        discard: () => { body.on('error', () => {}).resume() }
      }
    } catch (error) {
      throw toError(error, 'the upstream is unreachable')
    } finally {
      this.#waiting--
      patience.end()
    }
  }

  /** undici's own time-outs leave out the wait for a free connection and the caller's sending of the body. */
  #patienceFor ({ body }: RelayRequest): number {
    const { connectTimeout, headersTimeout, bodyTimeout } = this.#options
    return connectTimeout + headersTimeout + (body === null ? 0 : bodyTimeout)
  }

  /** Frees the connections, if they are the relay's own. For when nothing is in flight any more. */
  async close (): Promise<void> {
    if (this.#options.dispatcher === undefined) await this.#dispatcher.destroy()
  }
}

/** Ends with the caller or with the time: undici hears of it by the signal, and a request that still queues by `lost`. */
class Patience {
  readonly #controller = new AbortController()
  readonly #timer: NodeJS.Timeout
  readonly lost: Promise<never>

  constructor ({ signal: caller, body }: RelayRequest, milliseconds: number) {
    const { promise, reject } = Promise.withResolvers<never>()
    this.lost = promise
    promise.catch(() => {})
    this.signal.addEventListener('abort', () => reject(this.signal.reason), { once: true })
    this.#timer = setTimeout(() => this.#controller.abort(body?.writableEnded === false ? bodyTooLate() : tooLate()), milliseconds)
    const leave = () => this.#controller.abort(caller.reason)
    caller.addEventListener('abort', leave, { once: true })
  }

  get signal (): AbortSignal {
    return this.#controller.signal
  }

  /** The answer has begun: from here only the caller's going ends it. */
  end (): void {
    clearTimeout(this.#timer)
  }
}
