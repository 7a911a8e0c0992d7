import { defined } from '../defined.ts'
import { type LookupAddress, promises as dns } from 'node:dns'
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import { type LookupFunction, isIP } from 'node:net'
import { LIMITS } from '../../schemas/common.ts'
import { Agent as HttpAgent, request as requestHttp } from '../node-http.ts'
import { TIMERS, type Timers } from '../timers.ts'
import { isPublicAddress, readAllowedHosts } from './addresses.ts'

/** Milliseconds for a whole call: the look-up, the connection, the request and the answer. */
const TIMEOUT = 15_000

/** Bytes of an answer that are read so that its connection can be used again. The connection of a longer answer is closed. */
const MAX_ANSWER = 64 * 1024

/** Milliseconds for which an idle connection is kept. */
const IDLE = 4_000

export interface OutboundAnswer {
  status: number
  /** Milliseconds, from Retry-After. */
  retryAfter?: number
  /** Milliseconds that the call took. */
  time: number
}

export interface OutboundRequest {
  url: string
  headers: Record<string, string>
  body: string
  signal?: AbortSignal
}

/** Sends a POST. Any status is an answer; redirects are not followed. */
export type OutboundFetch = (request: OutboundRequest) => Promise<OutboundAnswer>

/** A request whose answer is read. */
export interface OutboundRead extends Omit<OutboundRequest, 'body'> {
  method: 'GET' | 'POST'
  body?: string | undefined
  /** The most bytes of the answer. A longer one fails with `ETOOLARGE`. */
  limit: number
  /** Milliseconds for the whole call. Absent: as for every call. */
  timeout?: number
  /** The only status whose answer is read. The body of any other one, such as a long page about an error, is left out. Absent: all are read. */
  status?: number
}

export interface OutboundDocument {
  status: number
  type: string
  headers: IncomingHttpHeaders
  body: Buffer
}

/** There was no answer. The error has the reason as a code, and never contains text from the receiver. */
export class OutboundError extends Error {
  override readonly name = 'OutboundError'
  /** `EREFUSED`: the address is not allowed. `ETIMEDOUT`, `EABORTED`, or a code of Node.js such as ECONNREFUSED. */
  readonly code: string

  constructor (code: string) {
    super(`no answer: ${code}`)
    this.code = code
  }
}

export interface OutboundOptions {
  /** Hosts, addresses and networks that may be private, and be called without TLS. */
  allow: readonly string[]
  /** Milliseconds for a whole call. */
  timeout?: number
  timers?: Timers
  /** Resolves a host name. Absent: with DNS. */
  resolve?: (hostname: string) => Promise<LookupAddress[]>
}

/** Milliseconds of the longest Retry-After. A time after the year 9999 would sort before the present as text. */
const MOST_RETRY_AFTER = 999_999_999_000

/** Reads Retry-After: seconds, or a date (RFC 9110, 10.2.3). */
function readRetryAfter (text: string | undefined): number | undefined {
  if (text === undefined) return
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000
  const date = Date.parse(text)
  return /^[A-Z][a-z]{2},/.test(text) && !Number.isNaN(date) ? Math.min(Math.max(0, date - Date.now()), MOST_RETRY_AFTER) : undefined
}

function toCode (error: unknown): string {
  const { code } = error as NodeJS.ErrnoException
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]{1,63}$/.test(code) ? code : 'EFAILED'
}

/** Reads an answer that is not too long. */
async function readBody (answer: IncomingMessage, limit: number): Promise<Buffer> {
  const parts: Buffer[] = []
  let size = 0
  for await (const part of answer as AsyncIterable<Buffer>) {
    size += part.length
    if (size > limit) throw new OutboundError('ETOOLARGE')
    parts.push(part)
  }
  return Buffer.concat(parts)
}

/** Reads and drops the rest of an answer. */
function drop (answer: IncomingMessage): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  let size = 0
  answer.on('data', (part: Buffer) => {
    size += part.length
    if (size > MAX_ANSWER) answer.destroy()
  })
  answer.on('error', () => {})
  answer.on('close', resolve)
  return promise
}

/**
 * Calls URLs that users chose. It calls only public addresses, and only with TLS, unless `allow` names the host. The address is
 * checked in the look-up of the connection itself, so a name that later resolves to another address does not bypass the check.
 * Proxy variables of the environment have no effect.
 * @throws Error that names the wrong entry of `allow`
 */
export function createOutbound ({ allow, timeout = TIMEOUT, timers = TIMERS, resolve = (hostname) => dns.lookup(hostname, { all: true }) }: OutboundOptions) {
  const allowed = readAllowedHosts(allow)
  const isAllowed = (hostname: string, address: string) => isPublicAddress(address) || allowed.hasName(hostname) || allowed.hasAddress(address)

  const lookup: LookupFunction = (hostname, options, callback) => {
    resolve(hostname).then((found) => {
      const usable = found.filter(({ address }) => isAllowed(hostname, address))
      const [first] = usable
      if (first === undefined) callback(new OutboundError(found.length === 0 ? 'ENOTFOUND' : 'EREFUSED'), '')
      else if (options.all === true) callback(null, usable)
      else callback(null, first.address, first.family)
    }, (error: Error) => callback(error, ''))
  }
  const settings = { keepAlive: true, timeout: IDLE, lookup }
  const agents = { http: new HttpAgent(settings), https: new HttpsAgent(settings) }
  const calls = new Set<AbortController>()
  let closed = false

  /** @throws Error with the reason */
  function parseUrl (text: string): URL {
    if (text.length > LIMITS.uri || !URL.canParse(text)) throw new Error('must be an absolute URL that is not too long')
    const url = new URL(text)
    const hostname = url.hostname.replace(/^\[(.*)\]$/, '$1')
    const isLiteral = isIP(hostname) !== 0
    if (!/^https?:$/.test(url.protocol)) throw new Error('must be an https URL')
    if (url.username !== '' || url.password !== '') throw new Error('must not have user information')
    if (url.hash !== '') throw new Error('must not have a fragment')
    if (url.protocol === 'http:' && !(isLiteral ? allowed.hasAddress(hostname) : allowed.hasName(hostname))) throw new Error('must be an https URL')
    if (isLiteral && !isAllowed(hostname, hostname)) throw new Error('must be a public address')
    return url
  }

  async function send (
    url: URL, { method = 'POST', headers, body }: Pick<OutboundRead, 'headers' | 'body'> & { method?: string }, signal: AbortSignal
  ): Promise<IncomingMessage> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const isTls = url.protocol === 'https:'
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
    const request: ClientRequest = (isTls ? requestHttps : requestHttp)(url, {
      method, headers: { ...headers, ...length }, agent: isTls ? agents.https : agents.http, signal
    })
    request.on('response', resolve)
    request.on('error', reject)
    // The receiver switched protocols although we did not request it. The connection is closed, and the status counts.
    request.on('upgrade', (answer: IncomingMessage, socket) => {
      socket.destroy()
      resolve(answer)
    })
    request.end(body)
    try {
      return await promise
    } catch (error) {
      // The receiver closed an idle connection just when we reused it.
      if (request.reusedSocket && !signal.aborted && /^(ECONNRESET|EPIPE)$/.test(toCode(error))) return await send(url, { method, headers, body }, signal)
      throw error
    }
  }

  async function call (url: URL, request: OutboundRequest, signal: AbortSignal): Promise<{ status: number, retryAfter?: number }> {
    const answer = await send(url, request, signal)
    const retryAfter = readRetryAfter(answer.headers['retry-after'])
    // The status decides. A body that is too long is aborted, and the answer still counts.
    if (answer.statusCode !== 101) await drop(answer)
    return defined({ status: answer.statusCode ?? 0, retryAfter })
  }

  /** Runs a call within the time that it may take, and names its failure by a code. */
  async function run<T> (
    { url: text, signal, timeout: most = timeout }: Pick<OutboundRead, 'url' | 'signal' | 'timeout'>,
    work: (url: URL, signal: AbortSignal) => Promise<T>
  ): Promise<T> {
    const ending = new AbortController()
    let timer: NodeJS.Timeout | undefined
    const abort = () => ending.abort(new OutboundError((signal?.reason as Error | undefined)?.name === 'TimeoutError' ? 'ETIMEDOUT' : 'EABORTED'))
    try {
      if (closed || signal?.aborted === true) throw new OutboundError('EABORTED')
      let url: URL
      try {
        url = parseUrl(text)
      } catch {
        // The options may have changed since the URL was accepted.
        throw new OutboundError('EREFUSED')
      }
      calls.add(ending)
      signal?.addEventListener('abort', abort)
      timer = timers.set(() => ending.abort(new OutboundError('ETIMEDOUT')), most)
      return await work(url, ending.signal)
    } catch (error) {
      throw new OutboundError(toCode(ending.signal.aborted ? ending.signal.reason : error))
    } finally {
      timers.clear(timer)
      calls.delete(ending)
      signal?.removeEventListener('abort', abort)
    }
  }

  const fetch: OutboundFetch = async (request) => {
    const start = timers.now()
    return await run(request, async (url, signal) => ({ ...await call(url, request, signal), time: Math.round(timers.now() - start) }))
  }

  /** Sends a request and reads its answer. Any status is an answer; redirects are not followed. */
  async function read (request: OutboundRead): Promise<OutboundDocument> {
    return await run(request, async (url, signal) => {
      const answer = await send(url, request, signal)
      const isRead = request.status === undefined || answer.statusCode === request.status
      if (!isRead) answer.destroy()
      const body = isRead ? await readBody(answer, request.limit) : Buffer.alloc(0)
      return { status: answer.statusCode ?? 0, type: answer.headers['content-type'] ?? '', headers: answer.headers, body }
    })
  }

  return {
    fetch,
    read,

    /**
     * Checks a URL before it is stored. The address of its host name is checked at each call.
     * @returns the normalized URL
     * @throws Error with the reason
     */
    checkUrl: (text: string): string => parseUrl(text).href,

    /** Aborts the calls in flight and closes the connections. */
    async close (): Promise<void> {
      closed = true
      for (const call of calls) call.abort(new OutboundError('EABORTED'))
      agents.http.destroy()
      agents.https.destroy()
    }
  }
}

export type Outbound = ReturnType<typeof createOutbound>
