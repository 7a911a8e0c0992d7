import { type ServerResponse } from 'node:http'
import { type Socket } from 'node:net'
import { type FastifyInstance } from 'fastify'

/** The response that runs on a connection. Node offers no other way to ask; Fastify and Node's own close do the same. */
export function findResponse (socket: Socket): ServerResponse | undefined {
  return (socket as Socket & { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined
}

/**
 * While the app closes, each connection ends with the response that runs on it (RFC 9112, 9.6), and one without a
 * response ends at once. Left to itself the server waits for a connection that was kept alive behind the last
 * response, and for one that never sent a request, until they time out.
 */
export function endConnectionsAtClose (app: FastifyInstance): void {
  const sockets = new Set<Socket>()
  let closing = false
  app.server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  app.addHook('preClose', (done) => {
    closing = true
    for (const socket of sockets) if (findResponse(socket) === undefined) socket.destroy()
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
