import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type Origin, runFor } from '../lib/events/origin.ts'
import { ACCESS } from './access-table.ts'

/** The caller that a guard has authenticated. A client that acts for itself is not the user who owns it. */
function readCaller (request: FastifyRequest): ReturnType<NonNullable<Origin['readCaller']>> {
  if (!request.hasCaller) return
  const { subject, user, client, token } = request.caller
  return { ...(subject === 'user' && { user_id: user.user_id }), client_id: client.clientId, token_id: token.id }
}

const toOrigin = (request: FastifyRequest, via: Origin['via']): Origin =>
  ({ via, address: request.ip, agent: request.headers['user-agent'], request_id: request.id, readCaller: () => readCaller(request) })

/**
 * Runs each request in a context that names its origin, for the events that it causes.
 * @param toVia whether it came through a page or the API; undefined for a request that changes and records nothing
 */
export function recordOrigins (scope: FastifyInstance, toVia: (request: FastifyRequest) => Origin['via'] | undefined): void {
  // After the body is read, because the callbacks that read it run in the context of the connection.
  scope.addHook('preHandler', (request, _reply, done) => {
    const via = toVia(request)
    if (via === undefined) done()
    else runFor(toOrigin(request, via), done)
  })
}

/** Records the refusal of a caller at an operation that requires a role. */
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
