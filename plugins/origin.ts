import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type Origin, runFor } from '../lib/events/origin.ts'
import { ACCESS } from './access-table.ts'

/** Who the guard has admitted. A client that acts for itself is not the user who owns it. */
function readCaller (request: FastifyRequest): ReturnType<NonNullable<Origin['readCaller']>> {
  if (!request.hasCaller) return
  const { subject, user, client, token } = request.caller
  return { ...(subject === 'user' && { user_id: user.user_id }), client_id: client.clientId, token_id: token.id }
}

const toOrigin = (request: FastifyRequest, via: Origin['via']): Origin =>
  ({ via, address: request.ip, request_id: request.id, readCaller: () => readCaller(request) })

/**
 * Has everything that a request begins know where the request came from, for the events that it leads to.
 * @param toVia whether it came through a page or the API; undefined for a request that changes nothing
 */
export function recordOrigins (scope: FastifyInstance, toVia: (request: FastifyRequest) => Origin['via'] | undefined): void {
  // After the body was read: its callbacks run in the context of the connection.
  scope.addHook('preHandler', (request, _reply, done) => {
    const via = toVia(request)
    if (via === undefined) done()
    else runFor(toOrigin(request, via), done)
  })
}

/** Records that a caller was refused an operation that takes a role. */
export function recordRefusals (scope: FastifyInstance): void {
  const { failures } = scope.identity
  scope.addHook('onResponse', (request, reply, done) => {
    const { access } = request.routeOptions.config
    if (reply.statusCode === 403 && request.hasCaller && access !== undefined && ACCESS[access]?.roles !== undefined) {
      failures.recordRefusal(access, toOrigin(request, 'api'))
    }
    done()
  })
}
