import type { Roles } from './records.ts'
import type { MaybePromise } from './store/port.ts'

/** The names under which an operator keeps the three roles that the rules speak of. */
export interface RoleNames {
  admin: string
  manager: string
  service: string
}

export const DEFAULT_ROLE_NAMES: RoleNames = { admin: 'admin', manager: 'manager', service: 'service' }

/** The first role that has the name of an earlier one: its holders would hold both. */
export function findSharedRole (names: RoleNames): { role: keyof RoleNames, earlier: keyof RoleNames } | undefined {
  const roles = Object.keys(DEFAULT_ROLE_NAMES) as (keyof RoleNames)[]
  for (const [index, role] of roles.entries()) {
    const earlier = roles.slice(0, index).find((other) => names[other] === names[role])
    if (earlier !== undefined) return { role, earlier }
  }
}

/** @throws Error that names the option when two roles share a name */
export function checkRoleNames (names: RoleNames): void {
  const shared = findSharedRole(names)
  if (shared !== undefined) throw new Error(`option roles.${shared.role}: must differ from roles.${shared.earlier}`)
}

/** A role that is present is held, whatever its value; inherited properties are not roles. */
export function holdsRole (roles: Roles, name: string): boolean {
  return Object.hasOwn(roles, name)
}

/** On whose behalf a service call runs. */
export interface Actor {
  user_id: string
  /** Absent for the operator's own tools. */
  client_id?: string
  isAdmin: boolean
  /** The epoch of the user when he was authenticated. Absent for the operator's own tools. */
  epoch?: number
  /** Authenticates again, after a wait; throws when the caller may act no more. Absent for the operator's own tools. */
  confirm?: () => MaybePromise<void>
}
