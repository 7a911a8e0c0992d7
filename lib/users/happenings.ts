import { defined } from '../defined.ts'
import type { Happening } from '../events/types.ts'
import { type UserChange, type UserRecord, findMailbox } from '../records/user.ts'
import type { Roles } from '../roles.ts'

/** Fields that are not listed as changed: they have events of their own, or carry no information. */
const APART = [
  'password', 'password_scheme', 'operator_password', 'roles', 'disabled_at', 'modified_at', 'expired_at', 'email', 'email_verified_at',
  'email_verified_by', 'addresses', 'external_keys', 'imported_revision', 'imported_lazy', 'link_undone', 'lost_identities',
  'expected_identities', 'rejoined_at', 'held_by', 'ways', 'way_keys', 'has_factor', 'upstreams', 'claimed_roles', 'roles_at', 'undos'
]

const listMissing = (roles: Roles, among: Roles): string[] => Object.keys(among).filter((role) => !Object.hasOwn(roles, role))

/** Whether the user gets another address. Verifying the present one is no change. */
function changesAddress (record: UserRecord, { email, email_verified_at }: NonNullable<UserChange['set']>): boolean {
  return email !== undefined && (email_verified_at === undefined || email !== findMailbox(record))
}

/** The events of a change of a user. */
export function listHappenings (record: UserRecord, { set: given = {}, unset = [] }: UserChange): Happening[] {
  const { id } = record
  const set = defined(given)
  const changed = Object.keys(set).filter((field) => !APART.includes(field)).sort()
  const roles = set.roles
  const happened: Happening[] = []
  if (changed.length > 0) happened.push({ type: 'user.updated', id, changed })
  if (roles !== undefined) {
    happened.push({ type: 'user.roles_changed', id, granted: listMissing(record.roles, roles), removed: listMissing(roles, record.roles) })
  }
  if (changesAddress(record, set)) happened.push({ type: 'user.email_changed', id })
  if ('email_verified_at' in set) happened.push({ type: 'user.verified', id })
  if ('password' in set) happened.push({ type: 'user.password_changed', id })
  if ('disabled_at' in set) happened.push({ type: 'user.disabled', id })
  if (unset.includes('disabled_at') && record.disabled_at !== undefined) happened.push({ type: 'user.enabled', id })
  return happened
}
