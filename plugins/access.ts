import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import type { AccessRule } from '../schemas/options.ts'
import { ACCESS, type AccessRow } from './access-table.ts'
import { type Admission, createApiAdmission } from './admission.ts'
import { type Guard, createGuard } from './auth.ts'
import { allowOrigin } from './cors.ts'

/**
 * Adds the headers of every response to a guard, because every request passes it. Responses hold names, roles and secrets, so
 * no cache may store them.
 * @param open pages of any origin may read the responses, errors included
 */
function prepare (guard: Guard, open: boolean): onRequestHookHandler {
  return (request, reply, done) => {
    reply.header('cache-control', 'no-store')
    if (open) allowOrigin(request, reply)
    guard(request, reply, done)
  }
}

/** The admission of a row of the access table, with its override. */
function createRowAdmission (app: FastifyInstance, name: string, overrides: Record<string, AccessRule>): Admission {
  const row = ACCESS[name] as AccessRow
  return createApiAdmission(app.identity.roles, Object.hasOwn(overrides, name) ? overrides[name] as AccessRule : row, row.scope)
}

/** Authenticates the caller of a route that needs a token only sometimes, by a row of the access table. Throws ErrUnknown or ErrPerm. */
export function createRowCheck (app: FastifyInstance, name: string, overrides: Record<string, AccessRule>): (request: FastifyRequest, reply: FastifyReply) => Promise<void> {
  const guard = createGuard(app.identity.tokens, createRowAdmission(app, name, overrides))
  return async (request, reply) => { await guard(request, reply) }
}

/**
 * Puts a guard before every route of this scope, by the access table and its overrides.
 * @throws Error at boot for a route without `config.access`, and for an override of an unknown row or of one that admits every token
 */
export function enforceAccess (app: FastifyInstance, overrides: Record<string, AccessRule>): void {
  for (const name of Object.keys(overrides)) {
    if (!Object.hasOwn(ACCESS, name)) throw new Error(`access.${name}: no such row, expected one of ${Object.keys(ACCESS).join(', ')}`)
    if (ACCESS[name]!.scope === null) throw new Error(`access.${name}: cannot be overridden, because every valid token may call it`)
  }
  const { tokens } = app.identity
  app.addHook('onRoute', (route) => {
    const name = route.config?.access
    if (name === undefined || !Object.hasOwn(ACCESS, name)) throw new Error(`${String(route.method)} ${route.url} has no row in the access table`)
    const admission = createRowAdmission(app, name, overrides)
    route.config = { ...route.config, admission }
    const guard = createGuard(tokens, admission)
    route.onRequest = [prepare(guard, route.config.crossOrigin === true), ...[route.onRequest ?? []].flat()]
    // Again after the body: a slow upload may take longer than the token stays valid.
    if (route.schema?.body !== undefined) route.preValidation = [guard, ...[route.preValidation ?? []].flat()]
  })
}
