import { isDeepStrictEqual } from 'node:util'
import type { ApiScope } from './api-scopes.ts'
import { KNOWN, type Turn } from './fair-queue.ts'
import type { Strength } from './proofs.ts'
import type { Json, MaybePromise } from './store/port.ts'

/** Role name -> `true` or an object of attributes. The user has every role that is present. */
export type Roles = Record<string, true | { [key: string]: Json }>

/** The configured names of the roles that the rules use. */
export interface RoleNames {
  admin: string
  manager: string
  service: string
  /** Absent: there is no such role, and a role of this name means nothing here. */
  support?: string
}

export const DEFAULT_ROLE_NAMES: RoleNames = { admin: 'admin', manager: 'manager', service: 'service' }

/** The roles that have a name, in one order. */
const listRoles = (names: RoleNames): (keyof RoleNames)[] => (['admin', 'manager', 'service', 'support'] as const).filter((role) => names[role] !== undefined)

/** The first role with the name of an earlier one. Its holders would have both roles. */
export function findSharedRole (names: RoleNames): { role: keyof RoleNames, earlier: keyof RoleNames } | undefined {
  const roles = listRoles(names)
  for (const [index, role] of roles.entries()) {
    const earlier = roles.slice(0, index).find((other) => names[other] === names[role])
    if (earlier !== undefined) return { role, earlier }
  }
}

/** The first role whose name cannot be a key in a JSON body. It could not be given to any user. */
export function findUnusableRole (names: RoleNames): keyof RoleNames | undefined {
  return listRoles(names).find((role) => names[role] === '__proto__')
}

/** @throws Error that names the option, when two roles share a name, or one has a name that cannot be given */
export function checkRoleNames (names: RoleNames): void {
  const unusable = findUnusableRole(names)
  if (unusable !== undefined) throw new Error(`option roles.${unusable}: must not be __proto__`)
  const shared = findSharedRole(names)
  if (shared !== undefined) throw new Error(`option roles.${shared.role}: must differ from roles.${shared.earlier}`)
}

/** Whether a role is present, whatever its value. Inherited properties are not roles. */
export function holdsRole (roles: Roles, name: string): boolean {
  return Object.hasOwn(roles, name)
}

/** Whether these roles contain one that the rules of the service use. */
export function hasSpecialRole (names: RoleNames, roles: Roles): boolean {
  return Object.values(names).some((name) => holdsRole(roles, name))
}

/** Whether new roles contain one that was not held before, or one with other attributes. */
export function isRoleGiven (held: Roles, given: Roles): boolean {
  return Object.entries(given).some(([role, value]) => !Object.hasOwn(held, role) || !isDeepStrictEqual(held[role], value))
}

/** The user on whose behalf a service call runs. */
export interface Actor {
  user_id: string
  /** False for a client that acts for itself. The user is then its owner, and the owner's data is not the client's own. Absent: true. */
  isUser?: boolean
  /** The client of the token. Absent on the command line. */
  client_id?: string
  isAdmin: boolean
  /**
   * Whether neither the role of administrators nor that of managers counts for the token. Operations about other people then allow what
   * support staff may. Absent: false.
   */
  isSupport?: boolean
  /** Whether the token grants a scope of the API. Absent on the command line: all of them. */
  holds?: (scope: ApiScope) => boolean
  /** Whether the token has all the power of its user. Absent on the command line: true. */
  isUnrestricted?: boolean
  /** Whether the role of services counts for the token. Absent: false. */
  isService?: boolean
  /** Whether the token is a personal access token, to which no credential is shown. Absent: false. */
  isPersonal?: boolean
  /** The sign-in that the token comes from. Absent for a token that comes from none, on the pages and on the command line. */
  auth?: Readonly<Strength>
  /** Whether all that the sign-in has begun with is for some clients only: see checkUnrestricted. Absent: false. */
  isRestricted?: boolean
  /** The user's epoch when the token was authenticated. Absent on the command line. */
  epoch?: number
  /** Authenticates the token again after a wait. Throws if it was revoked meanwhile. Absent on the command line. */
  confirm?: () => MaybePromise<void>
  /** Whether the last administrator may be taken away. On the command line only. Absent: false. */
  isForced?: boolean
  /** Aborted when the caller has disconnected. Absent on the command line. */
  signal?: AbortSignal
}

/** All requests of a user share one turn, from whatever address they come. Users take turns as known callers. */
export function toTurn ({ user_id, signal }: Pick<Actor, 'user_id' | 'signal'>): Turn {
  return { key: `user ${user_id}`, group: KNOWN, signal }
}
