import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { chooseDrops, endToEnd, forwardingFields } from '../lib/bridge/forwarding.ts'
import type { Headers, Relay, RelayResponse } from '../lib/service-client/relay.ts'
import { addVary } from '../plugins/vary.ts'

/** Header fields to set, or with undefined to remove. */
export type Fields = Record<string, string | undefined>

/** One request and the upstream's response to it. The request's body is in memory; the response is streamed. */
export class Exchange {
  readonly #relay: Relay
  readonly #stallTimeout: number
  readonly #drops: ReturnType<typeof chooseDrops>
  readonly #request: FastifyRequest
  readonly #reply: FastifyReply
  readonly #disconnected = new AbortController()

  constructor (relay: Relay, { stallTimeout, cookies }: { stallTimeout: number, cookies: boolean }, request: FastifyRequest, reply: FastifyReply) {
    this.#relay = relay
    this.#stallTimeout = stallTimeout
    this.#drops = chooseDrops(cookies)
    this.#request = request
    this.#reply = reply
    // After the response, or when the caller disconnects: an open upstream request is aborted.
    reply.raw.once('close', () => this.#disconnected.abort())
    if (reply.raw.destroyed) this.#disconnected.abort()
  }

  /** Runs the steps of the exchange. A caller that has disconnected gets no response, and the log no error. */
  async run (steps: () => Promise<FastifyReply>): Promise<FastifyReply> {
    try {
      return await steps()
    } catch (error) {
      if (this.#disconnected.signal.aborted) return this.#reply.hijack()
      throw error
    }
  }

  /** Forwards the request; resolves when the response begins. */
  async ask (path: string, changes: Fields = {}): Promise<RelayResponse> {
    const { headers, raw, host, protocol, body, method } = this.#request
    const peer = { address: raw.socket.remoteAddress, host: host ?? '', protocol }
    const fields = change(Object.assign(endToEnd(headers, this.#drops.request), forwardingFields(headers, peer)), changes)
    const payload = Buffer.isBuffer(body) && body.length > 0 ? body : null
    return await this.#relay.send({ method, path, headers: fields, body: payload, signal: this.#disconnected.signal })
  }

  /** Relays the response unchanged. */
  async relay (response: RelayResponse): Promise<FastifyReply> {
    return await this.answer(response, response.body)
  }

  /**
   * Answers with these chunks under the upstream's status and end-to-end fields. Nothing is sent before the first chunk.
   * A later failure aborts the connection, so that a partial body is never mistaken for a complete one.
   */
  async answer (response: RelayResponse, chunks: AsyncGenerator<Buffer, void>, changes: Fields = {}): Promise<FastifyReply> {
    const reply = this.#reply
    const bodiless = this.#request.method === 'HEAD' || response.status === 204 || response.status === 304
    const first = bodiless ? undefined : await chunks.next()
    if (bodiless) response.discard()
    this.#copyHead(response, changes)
    if (first === undefined || first.done === true) return reply.send()
    reply.raw.setTimeout(this.#stallTimeout, () => reply.raw.destroy())
    // Not in object mode: the high-water mark counts the bytes that wait for a slow reader.
    return reply.send(Readable.from(prepend(first.value, chunks), { objectMode: false }))
  }

  #copyHead ({ status, headers }: RelayResponse, changes: Fields): void {
    const { vary, ...fields } = change(endToEnd(headers, this.#drops.response), changes)
    this.#reply.code(status)
    // RFC 9110, 8.6.
    if (status === 204) delete fields['content-length']
    for (const [name, value] of Object.entries(fields)) this.#reply.header(name, value)
    if (vary !== undefined) addVary(this.#reply, vary)
  }
}

function change (headers: Headers, changes: Fields): Headers {
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined) delete headers[name]
    else headers[name] = value
  }
  return headers
}

async function * prepend (first: Buffer, rest: AsyncGenerator<Buffer, void>): AsyncGenerator<Buffer, void> {
  yield first
  yield * rest
}
