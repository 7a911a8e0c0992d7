import type { FastifyInstance, FastifyReply, FastifyRequest, HookHandlerDoneFunction, onRequestHookHandler } from 'fastify'
import type { AccessRule } from '../schemas/options.ts'
import type { RoleNames } from '../lib/roles.ts'
import { ACCESS, type AccessRow } from './access-table.ts'
import { type Admission, createApiAdmission, nameRoles } from './admission.ts'
import { IdentityError } from '../lib/errors.ts'
import { type Guard, createGuard, requireCaller } from './auth.ts'
import { allowOrigin } from './cors.ts'

type Hook = (request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction) => void

/**
 * Adds the headers of every response to a guard, because every request passes it. Responses hold names, roles and secrets, so
 * no cache may store them.
 * @param open pages of any origin may read the responses, errors included
 */
function prepare (guard: Hook, open: boolean): onRequestHookHandler {
  return (request, reply, done) => {
    reply.header('cache-control', 'no-store')
    if (open) allowOrigin(request, reply)
    guard(request, reply, done)
  }
}

/**
 * The guard of a route with a body, before the body and again after it: a slow upload may take longer than the token stays valid. Where
 * the whole request has arrived when its caller is admitted, there is no upload to wait for, and the second look is left out.
 */
function guardUpload (guard: Guard): [first: Hook, again: Hook] {
  const whole = new WeakSet<FastifyRequest>()
  return [
    (request, reply, done) => {
      guard(request, reply, (error) => {
        if (request.raw.complete) whole.add(request)
        done(error)
      })
    },
    (request, reply, done) => {
      if (whole.has(request)) done()
      else guard(request, reply, done)
    }
  ]
}

/** The rule without the role of support staff, where the configuration names none: a role `support` is then one of the host's. */
function withoutUnnamed (row: AccessRow, { support }: RoleNames): AccessRule {
  return support !== undefined || row.roles === undefined ? row : { ...row, roles: row.roles.filter((role) => role !== 'support') }
}

/** The rule of a row of the access table: its own, or its override. */
function findRule (app: FastifyInstance, name: string, overrides: Record<string, AccessRule>): AccessRule {
  return Object.hasOwn(overrides, name) ? overrides[name] as AccessRule : withoutUnnamed(ACCESS[name] as AccessRow, app.identity.roles)
}

/** The admission of a row of the access table, with its override. */
export function createRowAdmission (app: FastifyInstance, name: string, overrides: Record<string, AccessRule>): Admission {
  return createApiAdmission(app.identity.roles, findRule(app, name, overrides), ACCESS[name] as AccessRow)
}

/** Whether the caller of a request may call another operation, which names nobody. @param method decides about the scope of roles */
export function mayCall (
  app: FastifyInstance, request: FastifyRequest, name: string, { overrides, method }: { overrides: Record<string, AccessRule>, method: 'GET' | 'POST' }
): boolean {
  try {
    createRowAdmission(app, name, overrides)(requireCaller(request), { method, params: {} } as FastifyRequest)
    return true
  } catch (error) {
    if (error instanceof IdentityError) return false
    throw error
  }
}

/** Who may call the operation of a row: the names of roles, and `self` where the caller's own account or what they own counts. */
export function listRolesOf (app: FastifyInstance, name: string, overrides: Record<string, AccessRule>): string[] {
  const { any = false, owner = false, roles = any ? ['admin'] : [] } = findRule(app, name, overrides)
  return [...nameRoles(app.identity.roles, { roles }), ...any || owner ? ['self'] : []]
}

/** Authenticates the caller of a route that needs a token only sometimes, by a row of the access table. Throws ErrUnknown or ErrPerm. */
export function createRowCheck (
  app: FastifyInstance, name: string, overrides: Record<string, AccessRule>
): (request: FastifyRequest, reply: FastifyReply) => Promise<void> {
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
    if (ACCESS[name]?.scope === null) throw new Error(`access.${name}: cannot be overridden, because every valid token may call it`)
  }
  const { tokens } = app.identity
  app.addHook('onRoute', (route) => {
    const name = route.config?.access
    if (name === undefined || !Object.hasOwn(ACCESS, name)) throw new Error(`${String(route.method)} ${route.url} has no row in the access table`)
    const admission = createRowAdmission(app, name, overrides)
    route.config = { ...route.config, admission }
    const guard = createGuard(tokens, admission)
    const [first, again]: [Hook, Hook?] = route.schema?.body === undefined ? [guard] : guardUpload(guard)
    route.onRequest = [prepare(first, route.config.crossOrigin === true), ...[route.onRequest ?? []].flat()]
    if (again !== undefined) route.preValidation = [again, ...[route.preValidation ?? []].flat()]
  })
}
