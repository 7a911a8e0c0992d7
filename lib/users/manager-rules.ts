import { isDeepStrictEqual } from 'node:util'
import type { PatchUser } from '../../schemas/user.ts'
import { type IdentityError, permError } from '../errors.ts'
import type { UserRecord } from '../records/user.ts'
import { type Actor, type RoleNames, holdsRole } from '../roles.ts'

/** Throws ErrPerm when the actor may not make this change to this user. */
type CheckMayPatch = (target: UserRecord, body: PatchUser, actor: Actor) => void

/** Attributes become claims that apps and APIs trust. */
export const attributesDenied = (): IdentityError => permError('attributes', 'only an admin or a service may set them')

/** Whether somebody who is no admin may set them: a service may, of others. */
const maySetAttributes = (target: UserRecord, { isService = false, isUser = true, user_id }: Actor): boolean =>
  isService && !(isUser && target.id === user_id)

/** The roles that only admins may grant and remove. */
const listAdminsRoles = ({ admin, service, support }: RoleNames): string[] => [admin, service, ...(support === undefined ? [] : [support])]

/** The first role on the list that only admins may grant. */
export function findAdminsRole (names: RoleNames, managerRoles: readonly string[]): string | undefined {
  return managerRoles.find((role) => listAdminsRoles(names).includes(role))
}

/** @throws Error that names the option, when managers could grant one of these roles */
export function checkManagerRoles (names: RoleNames, managerRoles: readonly string[] = []): void {
  const role = findAdminsRole(names, managerRoles)
  if (role !== undefined) throw new Error(`option managerRoles: must not contain ${role}, which only an admin grants`)
}

/**
 * Creates the check of `PATCH /user/{userId}`: the limits for callers without the admin role (docs/access.md).
 * Removing a role needs the same permission as granting it. Otherwise a manager could remove another manager's role and then
 * disable them.
 * @param managerRoles the roles that these callers may grant and remove; absent: all but those of admins, services and support
 */
export function createManagerRules (names: RoleNames, managerRoles?: readonly string[]): CheckMayPatch {
  function checkRoles (target: UserRecord, given: object, actor: Actor): void {
    for (const name of listAdminsRoles(names)) {
      if (Object.hasOwn(given, name) || holdsRole(target.roles, name)) throw permError('roles', `only an admin may grant or remove ${name}`)
    }
    const held = new Map<string, unknown>(Object.entries(target.roles))
    const wanted = new Map<string, unknown>(Object.entries(given))
    const changed = [...new Set([...held.keys(), ...wanted.keys()])].filter((role) => !isDeepStrictEqual(held.get(role), wanted.get(role)))
    if (holdsRole(target.roles, names.manager) && changed.includes(names.manager) && (target.id !== actor.user_id || actor.isUser === false)) {
      throw permError('roles', `only an admin may change or remove the role ${names.manager} of another user`)
    }
    // The message does not name the role, because the caller may not be allowed to read the user's roles.
    if (managerRoles !== undefined && !changed.every((role) => managerRoles.includes(role))) {
      throw permError('roles', 'only an admin may grant, change or remove a role that managers may not grant')
    }
  }

  return (target, { data, disable }, actor) => {
    if (actor.isAdmin) return
    if (holdsRole(target.roles, names.admin)) throw permError('userId', 'only an admin may change an admin')
    if (data?.attributes !== undefined && !maySetAttributes(target, actor)) throw attributesDenied()
    if (data?.email !== undefined) throw permError('email', 'only an admin may set an address')
    if (data?.email_verified !== undefined) throw permError('email_verified', 'only an admin may set it')
    if (data?.roles !== undefined) checkRoles(target, data.roles, actor)
    if (disable !== undefined && holdsRole(target.roles, names.manager)) {
      throw permError('disable', 'only an admin may disable or enable a manager')
    }
  }
}
