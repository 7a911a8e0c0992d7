import type { FastifyInstance, FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify'
import { LIMITS } from '../schemas/common.ts'
import { IdentityError } from '../lib/errors.ts'
import { type Actor, type RoleNames, holdsRole } from '../lib/roles.ts'
import type { MaybePromise } from '../lib/store/port.ts'
import { type Power, toHolder } from '../lib/tokens/caller.ts'
import type { Caller, Tokens } from '../lib/tokens/tokens.ts'
import type { WayService } from '../lib/ways/ways.ts'
import { type Admission, type GuardOptions, denied, getRoleScope, grantsScope, requirePower } from './admission.ts'
import { watchConnection } from './connections.ts'

const CALLER: unique symbol = Symbol('caller')

declare module 'fastify' {
  interface FastifyInstance {
    identity: Identity
  }
  interface FastifyRequest {
    /**
     * The user, client and token of this request, which a guard sets.
     * @throws Error when none has, as on a route without a guard; see hasCaller
     */
    caller: Caller
    /** Whether a guard has set `caller`. */
    readonly hasCaller: boolean
    [CALLER]: Caller | null
    /** Whether the caller holds the admin role, and the token may use it. */
    isAdmin: boolean
  }
  interface FastifyContextConfig {
    /** The row of the access table that governs this route, or `relay` where the upstream decides. */
    access?: string
    /** The admission by that row. */
    admission?: Admission
    /** It is a read that records an event. */
    isRecorded?: boolean
    /** Pages of any origin may read the responses, see cors.ts. */
    crossOrigin?: boolean
  }
}

/** A hook, which a handler may also await. It never answers itself. */
export interface Guard {
  /** As a hook: an error goes to `done`. */
  (request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction): void
  /** Resolves to the caller, and rejects with the error that the hook would have sent: IdentityError with `statusCode` and `headers`. */
  (request: FastifyRequest, reply?: FastifyReply): Promise<Caller>
}

/** Authenticates the caller of a request and admits them, or throws. Without a promise where the token is cached. */
export type Admit = (request: FastifyRequest) => MaybePromise<Caller>

/**
 * `app.identity`. Every app that authenticates callers has `guard` and `check`. plugins/identity.ts adds the services;
 * plugins/remote.ts adds nothing.
 */
export interface Identity {
  /**
   * Creates an onRequest hook for a host's route: it authenticates the bearer token, sets `request.caller` and
   * `request.isAdmin`, and answers 401 or 403. Without a rule it admits any user.
   * @example app.get('/orders', { onRequest: app.identity.guard({ audience: 'https://orders.example.com', scopes: ['orders:read'] }) }, handler)
   */
  guard (rule?: GuardOptions): Guard
  /**
   * The same check within a handler, where the rule follows from the body: it sets `request.caller` and `request.isAdmin` too.
   * @returns the caller
   * @throws IdentityError that the hook would have sent
   * @example const { user } = await app.identity.check(request, { audience: 'https://orders.example.com', scopes: ['orders:write'] })
   */
  check (request: FastifyRequest, rule?: GuardOptions): Promise<Caller>
}

/** The scheme, case-insensitive, and a token68 (RFC 6750, 2.1). */
const BEARER = /^bearer +([\w.~+/-]+=*) *$/i

/**
 * The bearer token of a request.
 * @throws ErrUnknown when there is none
 */
export function readBearer (header: string | undefined): string {
  const token = header === undefined || header.length > LIMITS.accessToken + 'Bearer '.length ? undefined : BEARER.exec(header)?.[1]
  if (token !== undefined) return token
  throw new IdentityError(
    'ErrUnknown',
    header === undefined ? 'authorization: is required' : 'authorization: must be a bearer token',
    { headers: { 'www-authenticate': 'Bearer' } }
  )
}

/** Adds the properties that a guard sets on requests. An outer scope may have them already: of another instance or the remote plugin. */
export function decorateRequests (app: FastifyInstance): void {
  if (app.hasRequestDecorator('caller')) return
  app.decorateRequest(CALLER, null)
  app.decorateRequest('caller', {
    getter () { return requireCaller(this) },
    setter (caller: Caller) { this[CALLER] = caller }
  })
  app.decorateRequest('hasCaller', { getter () { return this[CALLER] !== null } })
  app.decorateRequest('isAdmin', false)
}

const readHeader = ({ headers }: FastifyRequest): string => readBearer(headers.authorization)

/** What checks tokens. Without `noteUse`, as where another service checks them, the uses of tokens with names are noted there. */
type Checking = Pick<Tokens, 'authenticate'> & Partial<Pick<Tokens, 'noteUse'>>

/** Authenticates the bearer token, and admits its caller. @param readToken finds the token in a request; throws ErrUnknown when there is none */
export function createAdmit (tokens: Checking, admission: Admission, readToken = readHeader): Admit {
  function admit (caller: Caller, request: FastifyRequest): Caller {
    if (caller.token.name !== undefined) tokens.noteUse?.(toHolder(caller), caller.token.id, request.ip)
    request.caller = caller
    request.isAdmin = false
    request.isAdmin = admission(caller, request)
    return caller
  }

  return (request) => {
    const caller = tokens.authenticate(readToken(request), request.hasCaller)
    return caller instanceof Promise ? caller.then((found) => admit(found, request)) : admit(caller, request)
  }
}

/** Creates a hook that answers 401 or 403 before any body is read. */
export function toGuard (admit: Admit): Guard {
  function guard (request: FastifyRequest, _reply?: FastifyReply, done?: HookHandlerDoneFunction): Promise<Caller> | undefined {
    if (done === undefined) return (async () => await admit(request))()
    let caller
    try {
      caller = admit(request)
    } catch (error) {
      done(error as Error)
      return
    }
    if (caller instanceof Promise) caller.then(() => done(), done)
    else done()
  }
  return guard as Guard
}

export const createGuard = (tokens: Checking, admission: Admission): Guard => toGuard(createAdmit(tokens, admission))

/**
 * The caller of a guarded route.
 * @throws Error on a route without a guard
 */
export function requireCaller (request: FastifyRequest): Caller {
  const caller = request[CALLER]
  if (caller === null) throw new Error('request.caller: no guard has authenticated this request')
  return caller
}

/** The caller of the service's API in the services' terms. `confirm` authenticates and admits the caller again, after a wait. */
export function toActor (
  request: FastifyRequest, { tokens, ways, roles }: { tokens: Pick<Tokens, 'authenticate'>, ways: Pick<WayService, 'isRestricted'>, roles: RoleNames }
): Actor {
  const caller = requireCaller(request)
  const { subject, user, client, token } = caller
  const { isAdmin } = request
  const power = requirePower(caller)
  const isSupportOf = (held: Power, isAdminNow: boolean) => !isAdminNow && !(holdsRole(held.roles, roles.manager) && grantsScope(held, getRoleScope(request)))
  const isSupport = isSupportOf(power, isAdmin)
  return {
    user_id: user.user_id,
    isUser: subject === 'user',
    client_id: client.clientId,
    isAdmin,
    isSupport,
    isService: holdsRole(power.roles, roles.service) && grantsScope(power, getRoleScope(request)),
    isUnrestricted: power.scopes === undefined,
    isPersonal: power.personal === true,
    holds: (scope) => grantsScope(power, scope),
    signal: watchConnection(request),
    epoch: token.user_epoch,
    auth: caller.auth,
    isRestricted: caller.auth && ways.isRestricted(caller.auth),
    async confirm () {
      const again = await tokens.authenticate(readBearer(request.headers.authorization), true)
      // Every route of the API has one (access.ts).
      const isAdminAgain = request.routeOptions.config.admission?.(again, request)
      if (isAdminAgain === undefined || (isAdmin && !isAdminAgain) || (!isSupport && isSupportOf(requirePower(again), isAdminAgain))) {
        throw denied('the caller may not do this any more')
      }
    }
  }
}
