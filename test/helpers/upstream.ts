import { once } from 'node:events'
import { createServer, request as httpRequest, type IncomingHttpHeaders, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Server as NetServer, Socket } from 'node:net'
import { waitUntil, within } from './wait.ts'

export { BOUND, within } from './wait.ts'

interface Teardown {
  teardown: (fn: () => unknown) => unknown
}

/**
 * Listens on a port of the loopback address, 0 for any. A port that the test has used before may meanwhile belong to a connection of
 * another program, for a moment.
 */
export async function listen (server: NetServer, port: number): Promise<void> {
  await waitUntil(`port ${port} to be free`, async () => {
    try {
      server.listen(port, '127.0.0.1')
      await once(server, 'listening')
      return true
    } catch (error) {
      if (port === 0 || (error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
      return false
    }
  })
}

/** Resolves when the stream, socket or message is closed for any reason. */
export async function closed (what: string, emitter: NodeJS.EventEmitter & { destroyed: boolean, closed?: boolean | null }): Promise<void> {
  if (emitter.destroyed) return
  emitter.on('error', () => {})
  await within(`close of ${what}`, new Promise<void>((resolve) => emitter.once('close', () => resolve())))
}

/** A request that the upstream received. */
export interface Seen {
  method: string
  url: string
  headers: IncomingHttpHeaders
  rawHeaders: string[]
  body: string
}

export interface Upstream {
  url: string
  port: number
  server: Server
  /** The requests received in full, in order. */
  seen: Seen[]
  sockets: Set<Socket>
  close: () => Promise<void>
}

export type Answer = (response: ServerResponse, seen: Seen, request: IncomingMessage) => unknown

/** Serves on a free loopback port. `answer` is called when the request's body is complete. */
export async function startUpstream (t: Teardown, answer: Answer, port = 0): Promise<Upstream> {
  const seen: Seen[] = []
  async function receive (request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = []
    try {
      for await (const part of request) parts.push(part)
    } catch {
      return
    }
    const one: Seen = {
      method: request.method ?? '', url: request.url ?? '', headers: request.headers, rawHeaders: request.rawHeaders, body: Buffer.concat(parts).toString('latin1')
    }
    seen.push(one)
    await answer(response, one, request)
  }
  return await serve(t, (request, response) => { void receive(request, response) }, port, seen)
}

/** The same with a bare listener, which gets requests before their body. */
export async function serve (t: Teardown, listener: RequestListener, port = 0, seen: Seen[] = []): Promise<Upstream> {
  const server = createServer({ keepAliveTimeout: 60_000 }, listener)
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
  })
  await listen(server, port)
  const address = server.address() as AddressInfo
  const close = async () => {
    if (!server.listening) return
    const done = once(server, 'close')
    server.close()
    server.closeAllConnections()
    await done
  }
  t.teardown(close)
  return { url: `http://127.0.0.1:${address.port}`, port: address.port, server, seen, sockets, close }
}

export interface Call {
  method?: string
  headers?: Record<string, string | string[]>
  /** A string is sent with a length, an array of strings in chunks. */
  body?: string | string[]
}

export interface Reply {
  status: number
  headers: IncomingHttpHeaders
  rawHeaders: string[]
  body: Buffer
  text: string
  /** False if the connection closed before the end of the message. */
  complete: boolean
}

/** Sends a request on a new connection; resolves when the response headers arrive. */
export async function open (url: string, { method = 'GET', headers = {}, body }: Call = {}): Promise<IncomingMessage> {
  const whole = typeof body === 'string'
  const request = httpRequest(url, { method, agent: false, headers: whole ? { 'content-length': String(Buffer.byteLength(body)), ...headers } : headers })
  const answer = once(request, 'response') as Promise<[IncomingMessage]>
  if (Array.isArray(body)) for (const part of body) request.write(part)
  request.end(whole ? body : undefined)
  const [response] = await within(`answer to ${method} ${url}`, answer)
  return response
}

/** Reads a response until its end, or until the connection closes. */
export async function readAll (response: IncomingMessage): Promise<Reply> {
  const parts: Buffer[] = []
  try {
    for await (const part of response) parts.push(part)
  } catch {
    // `complete` is false then.
  }
  const body = Buffer.concat(parts)
  const { statusCode = 0, headers, rawHeaders, complete } = response
  return { status: statusCode, headers, rawHeaders, body, text: body.toString('utf8'), complete }
}

export async function call (url: string, options?: Call): Promise<Reply> {
  return await within(`body of ${url}`, readAll(await open(url, options)))
}
