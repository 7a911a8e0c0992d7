import { PASSWORD } from '../way.ts'
import { type UserRecord, isAddress } from '../records/user.ts'
import type { AddressProof } from '../user-changes/address-proof.ts'
import { listUndos } from '../user-changes/undos.ts'
import type { HeldWay } from '../ways/existing-ways.ts'
import { countCodes } from '../ways/recovery-codes.ts'
import { listFields } from '../defined.ts'

/** Why a field of the user's record is not in their data. */
const SECRET = 'Checks a proof.'
const INTERNAL = 'The service derives it, or counts with it.'

/** Where each field of a user's record is in their own data: in the profile, in another part, or nowhere, with the reason. */
export const USER_FIELDS: Readonly<Record<Exclude<keyof UserRecord, 'id'>, 'profile' | 'addresses' | 'ways' | { leftOut: string }>> = {
  account: 'profile',
  name: 'profile',
  created_at: 'profile',
  modified_at: 'profile',
  verified_at: 'profile',
  expired_at: 'profile',
  disabled_at: 'profile',
  invited_at: 'profile',
  language: 'profile',
  roles: 'profile',
  info: 'profile',
  attributes: 'profile',
  external: 'profile',
  imported_source: 'profile',
  email: 'addresses',
  email_verified_at: 'addresses',
  email_verified_by: 'addresses',
  addresses: 'addresses',
  undos: 'addresses',
  address_changes: 'addresses',
  password: 'ways',
  ways: 'ways',
  has_factor: 'ways',
  upstreams: 'ways',
  way_keys: { leftOut: SECRET },
  password_scheme: { leftOut: SECRET },
  operator_password: { leftOut: INTERNAL },
  claimed_roles: { leftOut: INTERNAL },
  roles_at: { leftOut: INTERNAL },
  link_undone: { leftOut: INTERNAL },
  lost_identities: { leftOut: INTERNAL },
  expected_identities: { leftOut: INTERNAL },
  rejoined_at: { leftOut: INTERNAL },
  held_by: { leftOut: INTERNAL },
  external_keys: { leftOut: INTERNAL },
  imported_run: { leftOut: INTERNAL },
  imported_revision: { leftOut: INTERNAL },
  imported_lazy: { leftOut: INTERNAL },
  support_unlocks: { leftOut: 'They are among the events.' },
  enrol_ticket: { leftOut: 'It is among the links.' },
  first_factors: { leftOut: 'The link that undoes it is among the links.' },
  language_chosen: { leftOut: INTERNAL },
  invited_by: { leftOut: 'The id of somebody else.' },
  administers: { leftOut: INTERNAL },
  words: { leftOut: INTERNAL },
  epoch: { leftOut: INTERNAL },
  epoch_at: { leftOut: INTERNAL },
  link_epoch: { leftOut: INTERNAL },
  revision: { leftOut: INTERNAL },
  bootstrap: { leftOut: INTERNAL }
}

const PROFILE = listFields(USER_FIELDS).filter((field) => USER_FIELDS[field] === 'profile')

export function showOwnProfile (record: UserRecord): object {
  return { user_id: record.id, ...Object.fromEntries(PROFILE.filter((field) => record[field] !== undefined).map((field) => [field, record[field]])) }
}

/** The addresses of a user, with those that a link can still bring back. */
export function showAddresses (record: UserRecord, now: number): object[] {
  const { account, email } = record
  const verified = ({ email_verified_at: at, email_verified_by: by }: AddressProof) => at !== undefined && { verified_at: at, verified_by: by }
  return [
    ...(isAddress(account) && account !== email ? [{ address: account, is_account: true }] : []),
    ...(email === undefined ? [] : [{ address: email, is_account: email === account, ...verified(record) }]),
    ...listUndos(record, now).filter(({ kind, before }) => kind === 'address' && before.email !== undefined).map(({ until, before }) =>
      ({ address: before.email, former_until: until, ...verified(before) }))
  ]
}

/** The ways of a user to prove who they are, without what proves it. */
export function showWays ({ password }: UserRecord, held: readonly HeldWay[]): object[] {
  return [
    ...(password ? [{ kind: PASSWORD }] : []),
    ...held.filter(({ way }) => way.kind !== 'upstream').map((one) => ({
      ...showHeld(one), codes_left: one.way.kind === 'recovery' ? countCodes([one]) : undefined
    }))
  ]
}

/** The identities of a user at other providers. */
export function showIdentities (held: readonly HeldWay[]): object[] {
  return held.filter(({ way }) => way.kind === 'upstream').map((one) => {
    const { way: { upstream }, credential: { material: { issuer, subject } } } = one
    return { ...showHeld(one), upstream, issuer, subject }
  })
}

function showHeld ({ way: { kind, at }, credential: { name, last_used_at } }: HeldWay): object {
  return { kind, name, added_at: at, last_used_at }
}
