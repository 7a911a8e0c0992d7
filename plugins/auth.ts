import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify'
import type { AccessRule } from '../schemas/options.ts'
import { LIMITS } from '../schemas/common.ts'
import { IdentityError } from '../lib/errors.ts'
import { type ApiScope, includesScope } from '../lib/resources/api-scopes.ts'
import { type Actor, type RoleNames, holdsRole } from '../lib/roles.ts'
import { POWER, type Power } from '../lib/tokens/caller.ts'
import { type Caller, type Tokens, invalidToken } from '../lib/tokens/tokens.ts'

declare module 'fastify' {
  interface FastifyInstance {
    identity: Identity
  }
  interface FastifyRequest {
    /** The user, client and token of this request; null on routes without a guard. */
    caller: Caller | null
    /** Whether the caller holds the admin role, and the token may use it. */
    isAdmin: boolean
  }
  interface FastifyContextConfig {
    /** The row of the access table that governs this route, or `relay` where the upstream decides. */
    access?: string
    /** The admission by that row. */
    admission?: Admission
    /** Pages of any origin may read the responses, see cors.ts. */
    crossOrigin?: boolean
  }
}

/** A row of the access table. An override replaces the rule, never the scope. */
export interface AccessRow extends AccessRule {
  /** The scope of the API that the token must grant; null where any token will do, whatever its audience. */
  scope: ApiScope | null
}

const any = (scope: ApiScope | null): AccessRow => ({ any: true, scope })
const admin = (scope: ApiScope): AccessRow => ({ roles: ['admin'], scope })

/**
 * The access table: who may call which operation, and with which scope. Roles are given by key and configured by name. The
 * option `access` overrides rules. Rules within an operation, such as who may grant a role, are in lib/users/users.ts.
 */
export const ACCESS: Readonly<Record<string, AccessRow>> = {
  createClient: any('clients:write'),
  countClients: any('clients:read'),
  listClients: any('clients:read'),
  getClient: any('clients:read'),
  patchClient: any('clients:write'),
  deleteClient: any('clients:write'),
  deleteClientsOfUser: { roles: ['admin'], owner: true, scope: 'clients:write' },
  getTokenInfo: any(null),
  logout: any(null),
  listSessions: any('account:read'),
  endSessions: any('account:write'),
  getProfile: any('account:read'),
  patchProfile: any('account:write'),
  createResource: admin('users:write'),
  countResources: admin('users:write'),
  listResources: admin('users:write'),
  getResource: admin('users:write'),
  patchResource: admin('users:write'),
  deleteResource: admin('users:write'),
  createUser: admin('users:write'),
  countUsers: admin('users:read'),
  listUsers: admin('users:read'),
  getUser: admin('users:read'),
  patchUser: { roles: ['admin', 'manager', 'service'], scope: 'users:write' },
  deleteUser: admin('users:write')
}

export interface GuardOptions extends AccessRule {
  /** Scopes the token must all carry. Guard by declared scopes, with their `audience`: a free scope limits a client only. */
  scopes?: string[]
  /** The resource that the token must have been requested for. Absent: a token that was requested for a resource is refused. */
  audience?: string
  /** Whether a client that acts for itself is admitted. Absent: only users are. */
  subject?: 'user' | 'client' | 'any'
}

export type Guard = (request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction) => void

/**
 * `app.identity`. Every app that authenticates callers has `guard`. plugins/identity.ts adds the services;
 * plugins/remote.ts adds nothing.
 */
export interface Identity {
  /**
   * Creates an onRequest hook for a host's route: it authenticates the bearer token, sets `request.caller` and
   * `request.isAdmin`, and answers 401 or 403. Without a rule it admits any user.
   * @example app.get('/orders', { onRequest: app.identity.guard({ audience: 'https://orders.example.com', scopes: ['orders:read'] }) }, handler)
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

/** Decides whether a caller is admitted. Throws ErrUnknown or ErrPerm; returns whether the caller counts as an administrator. */
export type Admission = (caller: Caller, request: FastifyRequest) => boolean

function denied (message = 'the caller may not do this'): IdentityError {
  return new IdentityError('ErrPerm', message)
}

/** RFC 6750, 3.1. */
function insufficientScope (scopes: readonly string[]): IdentityError {
  return new IdentityError('ErrPerm', `the access token lacks a scope: ${scopes.join(' ')}`, {
    headers: { 'www-authenticate': `Bearer error="insufficient_scope", scope="${scopes.join(' ')}"` }
  })
}

function nameRoles (names: RoleNames, { roles = [] }: AccessRule): string[] {
  return roles.map((role) => (Object.hasOwn(names, role) ? names[role as keyof RoleNames] : role))
}

/** Whether the path names the caller. A client that acts for itself owns nothing. */
function isOwner ({ subject, user }: Caller, request: FastifyRequest): boolean {
  return subject === 'user' && (request.params as { userId?: string }).userId === user.user_id
}

/** The admission of a host's guard, by what the token may do wherever it is accepted. */
export function createAdmission (names: RoleNames, rule: GuardOptions): Admission {
  const { any = rule.roles === undefined && rule.owner === undefined, owner = false, scopes = [], audience, subject = 'user' } = rule
  const roles = nameRoles(names, rule)
  return (caller, request) => {
    if (caller.token.audience !== audience) throw invalidToken()
    if (subject !== 'any' && caller.subject !== subject) throw denied(`the access token must belong to a ${subject}`)
    const isAdmitted = any || (owner && isOwner(caller, request)) || roles.some((role) => holdsRole(caller.user.roles, role))
    if (!isAdmitted) throw denied()
    if (!scopes.every((scope) => caller.token.scopes.includes(scope))) throw insufficientScope(scopes)
    return caller.isAdmin
  }
}

/** Whether a token grants a scope of the API. */
function grantsScope ({ scopes }: Power, scope: ApiScope): boolean {
  return scopes === undefined || includesScope(scopes, scope)
}

/** The scope of what roles give. Without it a caller is a plain user. */
const getRoleScope = ({ method }: FastifyRequest): ApiScope => method === 'GET' || method === 'HEAD' ? 'users:read' : 'users:write'

/**
 * The admission of the service's own API: what the roles allow, narrowed to the scopes of the token. The roles are checked
 * first.
 */
export function createApiAdmission (names: RoleNames, rule: AccessRule, scope: ApiScope | null): Admission {
  const roles = nameRoles(names, rule)
  return (caller, request) => {
    const power = requirePower(caller)
    if (scope === null) return caller.isAdmin
    if (!power.accepted) throw invalidToken()
    const isUser = caller.subject === 'user'
    const isAdmitted = (rule.any === true && isUser) || (rule.owner === true && isOwner(caller, request))
    // Only its own roles admit a client that acts for itself.
    const admitting = rule.any === true ? [names.admin] : roles
    if (!isAdmitted && !admitting.some((role) => holdsRole(power.roles, role))) throw denied()
    const roleScope = getRoleScope(request)
    const needed = isAdmitted || roleScope === scope ? [scope] : [scope, roleScope]
    if (!needed.every((one) => grantsScope(power, one))) throw insufficientScope(needed)
    return holdsRole(power.roles, names.admin) && grantsScope(power, roleScope)
  }
}

function requirePower (caller: Caller): Power {
  const power = caller[POWER]
  if (power === undefined) throw new Error('the API needs the store')
  return power
}

/** Creates a hook that authenticates the bearer token and admits its caller, or answers 401 or 403 before any body is read. */
export function createGuard (tokens: Pick<Tokens, 'authenticate'>, admission: Admission): Guard {
  function admit (caller: Caller, request: FastifyRequest): void {
    request.caller = caller
    request.isAdmin = false
    request.isAdmin = admission(caller, request)
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

/** @throws ErrPerm with the challenge when the actor's token does not grant the scope */
export function requireScope ({ holds = () => true }: Actor, scope: ApiScope): void {
  if (!holds(scope)) throw insufficientScope([scope])
}

/** The caller of the service's API in the services' terms. `confirm` authenticates and admits the caller again, after a wait. */
export function toActor (request: FastifyRequest, tokens: Pick<Tokens, 'authenticate'>): Actor {
  const caller = requireCaller(request)
  const { subject, user, client, token } = caller
  const { isAdmin } = request
  const power = requirePower(caller)
  return {
    user_id: user.user_id,
    isUser: subject === 'user',
    client_id: client.clientId,
    isAdmin,
    isUnrestricted: power.scopes === undefined,
    holds: (scope) => grantsScope(power, scope),
    ...(token.user_epoch !== undefined && { epoch: token.user_epoch }),
    async confirm () {
      const again = await tokens.authenticate(readBearer(request.headers.authorization))
      const isAdminAgain = request.routeOptions.config.admission?.(again, request) ?? again.isAdmin
      if (isAdmin && !isAdminAgain) throw denied('the caller may not do this any more')
    }
  }
}
