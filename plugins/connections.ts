import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyRequest } from 'fastify'

/** Milliseconds between two interim responses to a client that has ended its side of the connection. */
const PROBE = 500

/** The response in flight on a connection. Node has no public API for it; Fastify and Node's own close read the same field. */
export function findResponse (socket: Socket): ServerResponse | undefined {
  return (socket as Socket & { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined
}

const signals = new WeakMap<Socket, AbortSignal>()

/** A signal that aborts when the connection of a request closes, because the answer can no longer be delivered. */
export function watchConnection ({ raw: { socket } }: Pick<FastifyRequest, 'raw'>): AbortSignal {
  let signal = signals.get(socket)
  if (signal === undefined) {
    const controller = new AbortController()
    if (socket.destroyed) controller.abort()
    else socket.once('close', () => controller.abort())
    signals.set(socket, signal = controller.signal)
  }
  return signal
}

/** Lets a request that has no connection of its own, because it is made within this process, end with another one's. */
export function shareConnection ({ raw: { socket } }: Pick<FastifyRequest, 'raw'>, signal: AbortSignal): void {
  signals.set(socket, signal)
}

/** Writes an interim response (RFC 9110, 15.2), unless it would be in the middle of the answer. */
function probe (socket: Socket): void {
  const response = findResponse(socket)
  if (response?.headersSent === false && response.req.complete && response.req.httpVersion === '1.1') response.writeProcessing()
}

/**
 * Answers clients that end their side of the connection after a request (half-close): Node would close it at once. A
 * disconnected client looks the same until something is written to it, so interim responses are written until the answer
 * starts. The first write to a disconnected client makes its system reset the connection, and the next one fails.
 */
export function answerHalfClosed (app: FastifyInstance): void {
  Object.assign(app.server, { httpAllowHalfOpen: true })
  app.server.on('connection', (socket: Socket) => {
    socket.once('end', () => {
      probe(socket)
      const timer = setInterval(probe, PROBE, socket).unref()
      socket.once('close', () => clearInterval(timer))
    })
  })
}
