import type { FastifyRequest } from 'fastify'
import type { AccessRule } from '../schemas/options.ts'
import type { AccessRow, Personal } from './access-table.ts'
import type { Clock } from '../lib/clock.ts'
import { defined } from '../lib/defined.ts'
import { IdentityError, permError, scopeError } from '../lib/errors.ts'
import { type ApiScope, includesScope, isForAdmins, isForSupport } from '../lib/api-scopes.ts'
import { type Actor, type RoleNames, holdsRole } from '../lib/roles.ts'
import { POWER, type Power } from '../lib/tokens/caller.ts'
import { type Caller, wrongAudience } from '../lib/tokens/tokens.ts'
import type { Acr } from '../lib/proofs.ts'
import { checkDemand, meets, stepUpError } from '../lib/ways/step-up.ts'

export interface GuardOptions extends AccessRule {
  /** Scopes the token must all carry. Guard by declared scopes, with their `audience`: a free scope limits a client only. */
  scopes?: string[]
  /** The resource that the token must have been requested for. Absent: a token that was requested for a resource is refused. */
  audience?: string
  /** Whether a client that acts for itself is admitted. Absent: only users are. */
  subject?: 'user' | 'client' | 'any'
  /**
   * How strongly the user must have proved who they are: `1` by one kind of proof, `mfa` by both, `phr` by both with a passkey. Only
   * tokens from a sign-in say so; any other is refused. Absent: in any way.
   */
  acr?: Acr
  /** Seconds since that sign-in, at most. A token that comes from none is refused. Absent: any. */
  maxAge?: number
}

/** Decides whether a caller is admitted. Throws ErrUnknown or ErrPerm; returns whether the caller counts as an administrator. */
export type Admission = (caller: Caller, request: FastifyRequest) => boolean

export function denied (message = 'the caller may not do this'): IdentityError {
  return new IdentityError('ErrPerm', message)
}

/** To remote apps, it looks the same if the service is of a release that does not say it. */
const NO_SIGN_IN = 'the access token does not say how its user has signed in'

/** The names of the roles of a rule. */
export function nameRoles (names: RoleNames, { roles = [] }: AccessRule): string[] {
  return roles.map((role) => (Object.hasOwn(names, role) ? names[role as keyof RoleNames] : undefined) ?? role)
}

/** The scopes to request for a token that lacks its user's roles: those that it needs anyway, and `roles`. */
function listScopesWithRoles ({ token }: Caller, scopes: readonly string[]): string[] {
  return [...(scopes.length > 0 ? scopes : token.scopes), 'roles']
}

/** Whether the path names the caller. A client that acts for itself owns nothing. */
function isOwner ({ subject, user }: Caller, request: FastifyRequest): boolean {
  return subject === 'user' && (request.params as { userId?: string }).userId === user.user_id
}

/**
 * The admission of a host's guard: by audience, kind of caller, roles or ownership, scopes, and strength of the sign-in. The strength comes
 * last, so that nobody signs in again in vain.
 * @throws Error that names the option
 */
export function createAdmission (names: RoleNames, rule: GuardOptions, now: Clock): Admission {
  const { any = rule.roles === undefined && rule.owner === undefined, owner = false, scopes = [], audience, subject = 'user', acr, maxAge } = rule
  const demand = acr === undefined && maxAge === undefined ? undefined : defined({ acr, maxAge })
  if (demand !== undefined) checkDemand(demand)
  const roles = nameRoles(names, rule)
  return (caller, request) => {
    if (caller.token.audience !== audience) throw wrongAudience()
    if (subject !== 'any' && caller.subject !== subject) throw denied(`the access token must belong to a ${subject}`)
    const isAdmitted = any || (owner && isOwner(caller, request)) || roles.some((role) => holdsRole(caller.user.roles, role))
    if (!isAdmitted && roles.length > 0 && caller.token.roles_withheld === true) throw scopeError(listScopesWithRoles(caller, scopes))
    if (!isAdmitted) throw denied()
    if (!scopes.every((scope) => caller.token.scopes.includes(scope))) throw scopeError(scopes)
    if (demand !== undefined && !meets(caller.auth, demand, now())) throw stepUpError(demand, caller.auth === undefined ? NO_SIGN_IN : undefined)
    return caller.isAdmin
  }
}

/** Whether a token grants a scope of the API. */
export function grantsScope ({ scopes }: Power, scope: ApiScope): boolean {
  return scopes === undefined || includesScope(scopes, scope)
}

/** The scope that a token needs for its caller's roles to count. Without it the caller is a plain user. */
export const getRoleScope = ({ method }: FastifyRequest): ApiScope => method === 'GET' || method === 'HEAD' ? 'users:read' : 'users:write'

/**
 * The admission of the service's own API: what the roles allow, narrowed to the scopes of the token. The roles are checked
 * first.
 */
export function createApiAdmission (names: RoleNames, rule: AccessRule, { scope, personal }: Pick<AccessRow, 'scope' | 'personal'>): Admission {
  const roles = nameRoles(names, rule)
  return (caller, request) => {
    const power = requirePower(caller)
    if (power.personal === true && personal === 'no') throw denied('a personal access token may not do this')
    if (scope === null) return caller.isAdmin
    if (!power.accepted) throw wrongAudience()
    const isUser = caller.subject === 'user'
    const isAdmitted = (rule.any === true && isUser) || (rule.owner === true && isOwner(caller, request))
    // Only its own roles admit a client that acts for itself.
    const admitting = rule.any === true ? [names.admin] : roles
    if (!isAdmitted && !admitting.some((role) => holdsRole(power.roles, role))) throw denied()
    const roleScope = getRoleScope(request)
    const needed = isAdmitted || roleScope === scope || isForAdmins(scope) || isForSupport(scope) ? [scope] : [scope, roleScope]
    if (!needed.every((one) => grantsScope(power, one))) throw scopeError(needed)
    return holdsRole(power.roles, names.admin) && grantsScope(power, roleScope)
  }
}

export function requirePower (caller: Caller): Power {
  const power = caller[POWER]
  if (power === undefined) throw new Error('the API needs the store')
  return power
}

/**
 * Refuses the fields of a body that a personal access token may not send, since they make or change a credential, give a role or disable
 * somebody.
 * @throws ErrPerm
 */
export function checkPersonalBody (caller: Caller, personal: Exclude<Personal, string>, body: unknown): void {
  if (caller[POWER]?.personal !== true) return
  for (const field of personal.plain) {
    let value: unknown = body
    for (const key of field.split('.')) value = (value as Record<string, unknown> | undefined)?.[key]
    if (value !== undefined) throw permError(field, 'a personal access token may not send it')
  }
}

/** @throws ErrPerm with the challenge when the actor's token does not grant the scope */
export function requireScope ({ holds = () => true }: Actor, scope: ApiScope): void {
  if (!holds(scope)) throw scopeError([scope])
}
