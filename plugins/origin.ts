import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type Origin, runFor } from '../lib/events/origin.ts'
import { ACCESS } from './access-table.ts'
import { handleError } from './errors.ts'

/** The caller that a guard has authenticated. A client that acts for itself is not the user who owns it. The console is no client. */
function readCaller (request: FastifyRequest, via: Origin['via']): ReturnType<NonNullable<Origin['readCaller']>> {
  if (!request.hasCaller) return
  if (via === 'console') return { user_id: request.caller.user.user_id }
  const { subject, user, client, token } = request.caller
  const own = { client_id: client.clientId, token_id: token.id }
  return subject === 'user' ? { user_id: user.user_id, ...own } : own
}

const toOrigin = (request: FastifyRequest, via: Origin['via']): Origin =>
  ({ via, address: request.ip, agent: request.headers['user-agent'], request_id: request.id, readCaller: () => readCaller(request, via) })

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

/**
 * Answers the errors of the API, and records the refusal of a caller at an operation that requires a role.
 * @param via how its requests come
 */
export function answerErrors (scope: FastifyInstance, via: Origin['via']): void {
  const { failures } = scope.identity
  // Only what fails comes here. A hook after each response would cost every request.
  scope.setErrorHandler((error, request, reply) => {
    const { access } = request.routeOptions.config
    handleError(error, request, reply)
    if (reply.statusCode === 403 && request.hasCaller && access !== undefined && ACCESS[access]?.roles !== undefined) {
      failures.recordRefusal(access, toOrigin(request, via))
    }
  })
}
