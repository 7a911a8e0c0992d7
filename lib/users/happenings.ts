import type { Happening } from '../events/types.ts'
import { type Roles, type UserRecord, findMailbox } from '../records.ts'
import type { Change } from '../store/port.ts'

/** Fields that are not listed as changed: they have events of their own, or carry no information. */
const APART = [
  'password', 'password_scheme', 'operator_password', 'roles', 'disabled_at', 'modified_at', 'expired_at', 'email', 'email_verified_at', 'email_verified_by', 'addresses', 'external_keys',
  'imported_revision', 'imported_lazy', 'link_undone', 'lost_identities', 'expected_identities', 'rejoined_at', 'held_by', 'ways', 'way_keys', 'has_factor', 'upstreams', 'claimed_roles',
  'roles_at', 'undos'
]

const listMissing = (roles: Roles, among: Roles): string[] => Object.keys(among).filter((role) => !Object.hasOwn(roles, role))

/** Whether the user gets another address. Verifying the present one is no change. */
function changesAddress (record: UserRecord, { email, email_verified_at }: NonNullable<Change['set']>): boolean {
  return email !== undefined && (email_verified_at === undefined || email !== findMailbox(record))
}

/** The events of a change of a user. */
export function listHappenings (record: UserRecord, { set = {}, unset = [] }: Change): Happening[] {
  const { id } = record
  const changed = Object.keys(set).filter((field) => !APART.includes(field)).sort()
  const roles = set.roles as Roles | undefined
  return [
    ...(changed.length === 0 ? [] : [{ type: 'user.updated', id, changed }] as const),
    ...(roles === undefined ? [] : [{ type: 'user.roles_changed', id, granted: listMissing(record.roles, roles), removed: listMissing(roles, record.roles) }] as const),
    ...(changesAddress(record, set) ? [{ type: 'user.email_changed', id }] as const : []),
    ...('email_verified_at' in set ? [{ type: 'user.verified', id }] as const : []),
    ...('password' in set ? [{ type: 'user.password_changed', id }] as const : []),
    ...('disabled_at' in set ? [{ type: 'user.disabled', id }] as const : []),
    ...(unset.includes('disabled_at') && record.disabled_at !== undefined ? [{ type: 'user.enabled', id }] as const : [])
  ]
}
