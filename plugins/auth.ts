import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify'
import type { AccessRule } from '../schemas/options.ts'
import { LIMITS } from '../schemas/common.ts'
import { IdentityError } from '../lib/errors.ts'
import { type Actor, type RoleNames, holdsRole } from '../lib/roles.ts'
import type { Caller, Tokens } from '../lib/tokens/tokens.ts'

declare module 'fastify' {
  interface FastifyInstance {
    identity: Identity
  }
  interface FastifyRequest {
    /** The user, client and token of this request; null on routes without a guard. */
    caller: Caller | null
    /** Whether the caller holds the admin role. */
    isAdmin: boolean
  }
  interface FastifyContextConfig {
    /** The row of the access table that governs this route, or `relay` where the upstream decides. */
    access?: string
    /** Pages of any origin may read the responses, see cors.ts. */
    crossOrigin?: boolean
  }
}

/** Any caller with a valid token. */
const ANY: AccessRule = { any: true }
const ADMIN: AccessRule = { roles: ['admin'] }

/**
 * The access table: who may call which operation. Roles are given by key and configured by name. The option `access`
 * overrides rows. Rules within an operation, such as who may grant a role, are in lib/users/users.ts.
 */
export const ACCESS: Readonly<Record<string, AccessRule>> = {
  createClient: ANY,
  countClients: ANY,
  listClients: ANY,
  getClient: ANY,
  patchClient: ANY,
  deleteClient: ANY,
  deleteClientsOfUser: { roles: ['admin'], owner: true },
  getTokenInfo: ANY,
  logout: ANY,
  listSessions: ANY,
  endSessions: ANY,
  getProfile: ANY,
  patchProfile: ANY,
  createUser: ADMIN,
  countUsers: ADMIN,
  listUsers: ADMIN,
  getUser: ADMIN,
  patchUser: { roles: ['admin', 'manager', 'service'] },
  deleteUser: ADMIN
}

export interface GuardOptions extends AccessRule {
  /** Scopes the token must all carry. */
  scopes?: string[]
}

export type Guard = (request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction) => void

/**
 * `app.identity`. Every app that authenticates callers has `guard`. plugins/identity.ts adds the services;
 * plugins/remote.ts adds nothing.
 */
export interface Identity {
  /**
   * Creates an onRequest hook for a host's route: it authenticates the bearer token, sets `request.caller` and
   * `request.isAdmin`, and answers 401 or 403. Without a rule it admits any caller.
   * @example app.get('/orders', { onRequest: app.identity.guard({ scopes: ['orders:read'] }) }, handler)
   */
  guard (rule?: GuardOptions): Guard
}

/** The scheme, case-insensitive, and a token68 (RFC 6750, 2.1). */
const BEARER = /^bearer +([\w.~+/-]+=*) *$/i

/**
 * The bearer token of a request.
 * @throws ErrUnknown when there is none
 */
function readBearer (header: string | undefined): string {
  const token = header === undefined || header.length > LIMITS.token ? undefined : BEARER.exec(header)?.[1]
  if (token !== undefined) return token
  throw new IdentityError(
    'ErrUnknown',
    header === undefined ? 'authorization: is required' : 'authorization: must be a bearer token',
    { headers: { 'www-authenticate': 'Bearer' } }
  )
}

/** Creates the hook of `Identity.guard`. It answers 401 and 403 before any body is read. */
export function createGuard (tokens: Pick<Tokens, 'authenticate'>, names: RoleNames, rule: GuardOptions): Guard {
  const { any = rule.roles === undefined && rule.owner === undefined, owner = false, scopes } = rule
  const roles = (rule.roles ?? []).map((role) => (Object.hasOwn(names, role) ? names[role as keyof RoleNames] : role))

  function admit (caller: Caller, request: FastifyRequest): void {
    request.caller = caller
    request.isAdmin = caller.isAdmin
    if (scopes !== undefined && !scopes.every((scope) => caller.token.scopes.includes(scope))) {
      throw new IdentityError('ErrPerm', 'the access token lacks a scope', {
        headers: { 'www-authenticate': `Bearer error="insufficient_scope", scope="${scopes.join(' ')}"` }
      })
    }
    if (any) return
    if (owner && (request.params as { userId?: string }).userId === caller.user.user_id) return
    if (roles.some((role) => holdsRole(caller.user.roles, role))) return
    throw new IdentityError('ErrPerm', 'the caller may not do this')
  }

  return (request, _reply, done) => {
    try {
      const caller = tokens.authenticate(readBearer(request.headers.authorization))
      if (!(caller instanceof Promise)) {
        admit(caller, request)
        done()
        return
      }
      caller.then((found) => admit(found, request)).then(() => done(), done)
    } catch (error) {
      done(error as Error)
    }
  }
}

/**
 * The caller of a guarded route.
 * @throws Error on a route without a guard
 */
export function requireCaller (request: FastifyRequest): Caller {
  if (request.caller === null) throw new Error('the route has no guard')
  return request.caller
}

/** The caller in the services' terms. `confirm` authenticates the token again, after a wait. */
export function toActor (request: FastifyRequest, tokens: Pick<Tokens, 'authenticate'>): Actor {
  const { user, client, token, isAdmin } = requireCaller(request)
  return {
    user_id: user.user_id,
    client_id: client.clientId,
    isAdmin,
    ...(token.user_epoch !== undefined && { epoch: token.user_epoch }),
    async confirm () {
      const again = await tokens.authenticate(readBearer(request.headers.authorization))
      if (isAdmin && !again.isAdmin) throw new IdentityError('ErrPerm', 'the caller may not do this any more')
    }
  }
}
