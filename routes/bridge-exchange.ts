import { Readable, type Transform } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { boundBody, tooLarge } from '../lib/bridge/bounded-body.ts'
import { endToEnd, forwardingFields, REQUEST_DROP, type Headers } from '../lib/bridge/forwarding.ts'
import type { Relay, RelayResponse } from '../lib/bridge/relay.ts'

export interface ExchangeOptions {
  bodyLimit: number
  stallTimeout: number
}

/** Header fields to set, or with undefined to leave out. */
export type Fields = Record<string, string | undefined>

const NONE: ReadonlySet<string> = new Set()

/** One request of a caller and the upstream's answer to it, both streamed. */
export class Exchange {
  readonly #relay: Relay
  readonly #options: ExchangeOptions
  readonly #request: FastifyRequest
  readonly #reply: FastifyReply
  readonly #gone = new AbortController()

  constructor (relay: Relay, options: ExchangeOptions, request: FastifyRequest, reply: FastifyReply) {
    this.#relay = relay
    this.#options = options
    this.#request = request
    this.#reply = reply
    // At the end of the response, or of the caller: what is still open to the upstream is closed with it.
    reply.raw.once('close', () => this.#gone.abort())
    if (reply.raw.destroyed) this.#gone.abort()
  }

  /** Runs the steps of the exchange; nothing is answered, or logged, for a caller who has gone. */
  async run (steps: () => Promise<FastifyReply>): Promise<FastifyReply> {
    try {
      return await steps()
    } catch (error) {
      if (this.#gone.signal.aborted) return this.#reply.hijack()
      this.#closeUnread()
      throw error
    }
  }

  /**
   * Sends the request on, and resolves when its answer begins.
   * @param instead fields to set, or with undefined to leave out
   */
  async ask (path: string, instead: Fields = {}): Promise<RelayResponse> {
    const body = this.#takeBody()
    const headers = replace(this.#headers(body), instead)
    const { method } = this.#request
    return await this.#relay.send({ method, path, headers, body, signal: this.#gone.signal })
  }

  /** Answers with the upstream's answer, as it is. */
  async relay (answer: RelayResponse): Promise<FastifyReply> {
    return await this.answer(answer, answer.body)
  }

  /**
   * Answers with these bytes under the upstream's status and end-to-end fields. Nothing is committed before the first of
   * them is there; a failure after that breaks the connection, so that no part is taken for the whole.
   * @param instead fields to set, or with undefined to leave out
   */
  async answer (answer: RelayResponse, chunks: AsyncGenerator<Buffer, void>, instead: Fields = {}): Promise<FastifyReply> {
    const reply = this.#reply
    const bare = this.#request.method === 'HEAD' || answer.status === 204 || answer.status === 304
    const first = bare ? undefined : await chunks.next()
    if (bare) answer.discard()
    this.#copyHead(answer, instead)
    this.#closeUnread()
    if (first === undefined || first.done === true) return reply.send()
    reply.raw.setTimeout(this.#options.stallTimeout, () => reply.raw.destroy())
    // Bytes, not objects: the mark counts what is held for a reader who is slow.
    return reply.send(Readable.from(chain(first.value, chunks), { objectMode: false }))
  }

  #copyHead ({ status, headers }: RelayResponse, instead: Fields): void {
    const { vary, ...fields } = replace(endToEnd(headers, NONE), instead)
    this.#reply.code(status)
    // RFC 9110, 8.6.
    if (status === 204) delete fields['content-length']
    for (const [name, value] of Object.entries(fields)) this.#reply.header(name, value)
    if (vary !== undefined) addVary(this.#reply, vary)
  }

  /** The request's body, bounded; null for none (RFC 9112, 6.3). */
  #takeBody (): Transform | null {
    const { body, headers: { 'content-length': length = '0', 'transfer-encoding': coding } } = this.#request
    if (!(body instanceof Readable) || (coding === undefined && length === '0')) return null
    const { bodyLimit } = this.#options
    if (Number(length) > bodyLimit) throw tooLarge(bodyLimit)
    return boundBody(body, bodyLimit)
  }

  #headers (body: Transform | null): Headers {
    const { headers, raw, host, protocol, body: payload } = this.#request
    const fields = endToEnd(headers, REQUEST_DROP)
    const length = headers['content-length']
    // Not where the app has put another stream in the body's place.
    if (body !== null && payload === raw && length !== undefined) fields['content-length'] = length
    return Object.assign(fields, forwardingFields(headers, { address: raw.socket.remoteAddress, host: host ?? '', protocol }))
  }

  /** A request that is answered before it has come in whole leaves its connection at a place nobody knows. */
  #closeUnread (): void {
    const { raw } = this.#request
    if (!raw.complete && raw.httpVersionMajor === 1) this.#reply.header('connection', 'close')
  }
}

function replace (headers: Headers, instead: Fields): Headers {
  for (const [name, value] of Object.entries(instead)) {
    if (value === undefined) delete headers[name]
    else headers[name] = value
  }
  return headers
}

async function * chain (first: Buffer, rest: AsyncGenerator<Buffer, void>): AsyncGenerator<Buffer, void> {
  yield first
  yield * rest
}

/** Adds to the Vary field, beside what the app has put there. */
export function addVary (reply: FastifyReply, value: string | string[]): void {
  const names = new Map<string, string>()
  for (const name of [reply.getHeader('vary') ?? [], value].flat().join(',').split(',')) {
    if (name.trim() !== '') names.set(name.trim().toLowerCase(), name.trim())
  }
  reply.header('vary', names.has('*') ? '*' : [...names.values()].join(', '))
}
