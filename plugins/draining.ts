import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'

/** The response that runs on a connection. Node offers no other way to ask; Fastify and Node's own close do the same. */
export function findResponse (socket: Socket): ServerResponse | undefined {
  return (socket as Socket & { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined
}

/** Milliseconds that a request which has not come in whole has for the rest, once the app closes. */
const REST = 2000

/**
 * While the app closes, each connection ends with the response that runs on it (RFC 9112, 9.6), and one without a
 * response ends at once. Left to itself the server waits for a connection that was kept alive behind the last
 * response, and for one that never sent a request, until they time out. Nor may a caller hold up the close: a request
 * that does not come in whole soon is cut, and at the limit whatever is left.
 * @param limit milliseconds that responses have to end
 */
export function endConnectionsAtClose (app: FastifyInstance, { limit }: { limit: number }): void {
  const sockets = new Set<Socket>()
  let closing = false
  app.server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })

  function cut (left: Socket[], why: string) {
    if (left.length > 0) app.log.warn({ connections: left.length }, `${why}: their connections are cut`)
    for (const socket of left) socket.destroy()
  }

  app.addHook('preClose', (done) => {
    closing = true
    for (const socket of sockets) if (findResponse(socket) === undefined) socket.destroy()
    const timers = [
      setTimeout(() => {
        cut([...sockets].filter((socket) => findResponse(socket)?.req.complete !== true), 'requests did not come in whole')
      }, Math.min(REST, limit)),
      setTimeout(() => cut([...sockets], `not all requests finished within ${limit} ms`), limit)
    ]
    for (const timer of timers) timer.unref()
    app.server.once('close', () => timers.forEach(clearTimeout))
    done()
  })
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (closing) reply.header('connection', 'close')
    done(null, payload)
  })
  // A response whose head was sent before has not said so.
  app.addHook('onResponse', (_request, _reply, done) => {
    if (closing) setImmediate(() => app.server.closeIdleConnections())
    done()
  })
}
