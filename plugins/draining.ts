import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ClosingError } from '../lib/errors.ts'
import { findResponse } from './connections.ts'

/** Milliseconds for the rest of a request that has arrived in part when the app closes. */
const REQUEST_REST = 2000

/** Requests whose routes answer when the rest of them is no longer waited for. */
const waiting = new WeakMap<IncomingMessage, AbortController>()

/**
 * A signal that aborts when the app closes and no longer waits for the rest of this request. Its reason is the error to answer with. Once
 * the answer has begun, the connection ends instead.
 */
export function watchRest ({ raw }: Pick<FastifyRequest, 'raw'>): AbortSignal {
  const controller = new AbortController()
  waiting.set(raw, controller)
  return controller.signal
}

/** Has the route answer, if it watches the rest of the request. */
function refuseRest (socket: Socket): boolean {
  const response = findResponse(socket)
  const controller = response?.headersSent === false ? waiting.get(response.req) : undefined
  if (controller === undefined) return false
  controller.abort(new ClosingError())
  return true
}

/**
 * When the app closes, a connection with a response in flight ends after it (RFC 9112, 9.6), and an idle one at once.
 * Otherwise the server would wait for keep-alive connections to time out. A client cannot delay the close: an incomplete
 * request is aborted after REQUEST_REST, and every response at the limit.
 * @param limit milliseconds for responses in flight
 */
export function endConnectionsAtClose (app: FastifyInstance, { limit }: { limit: number }): void {
  const sockets = new Set<Socket>()
  app.server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })

  function abort (left: Socket[], reason: string): void {
    if (left.length > 0) app.log.warn({ connections: left.length }, `connections aborted: ${reason}`)
    for (const socket of left) socket.destroy()
  }

  function abortIncomplete (): void {
    const left = [...sockets].filter((socket) => findResponse(socket)?.req.complete !== true)
    abort(left.filter((socket) => !refuseRest(socket)), 'incomplete requests')
  }

  app.addHook('preClose', (done) => {
    for (const socket of sockets) {
      const response = findResponse(socket)
      if (response === undefined) socket.destroy()
      else if (!response.headersSent) response.setHeader('connection', 'close')
      // Its headers are sent and said keep-alive. The connection is idle once the other listeners of the event have run.
      else response.once('finish', () => setImmediate(() => app.server.closeIdleConnections()))
    }
    const timers = [
      setTimeout(abortIncomplete, Math.min(REQUEST_REST, limit)),
      setTimeout(() => abort([...sockets], `not finished within ${limit} ms`), limit)
    ]
    for (const timer of timers) timer.unref()
    app.server.once('close', () => timers.forEach(clearTimeout))
    done()
  })
}
