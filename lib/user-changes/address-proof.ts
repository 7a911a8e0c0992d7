import { toTimestamp } from '../clock.ts'
import { defined } from '../defined.ts'
import type { UserChange, UserField, UserRecord } from '../records/user.ts'

/** Who proves an address beside upstreams: a link of a mail that somebody has used, an administrator's word, or the word of an import that was trusted. */
export const PROVERS = ['mail', 'operator', 'import'] as const

/** One of these, or the id of an upstream that is an authority on the address (lib/upstreams/authority.ts). No upstream has such an id. */
export type Prover = typeof PROVERS[number] | { upstream: string }

/** The fields that say of an address that it is proved, when and by whom. */
export type AddressProof = Pick<UserRecord, typeof FIELDS[number]>

const FIELDS = ['email', 'email_verified_at', 'email_verified_by'] as const

/** The fields of an address that is proved. Nothing else makes a proof: changes and new records without its prover are refused, see withProof. */
export function proveAddress (address: string, by: Prover, time: number): { email: string, email_verified_at: string, email_verified_by: string } {
  return { email: address, email_verified_at: toTimestamp(time), email_verified_by: typeof by === 'string' ? by : by.upstream }
}

/** The address of a user with its proof, as it is: to keep it beside a change, or in a copy. */
export function keepProof ({ email, email_verified_at, email_verified_by }: AddressProof): AddressProof {
  if (email === undefined) return {}
  return email_verified_at === undefined ? { email } : defined({ email, email_verified_at, email_verified_by })
}

/** The change that brings a kept address back with its proof, or without one if it had none. */
export function restoreProof (kept: AddressProof): { set: AddressProof, unset: UserField[] } {
  const set = keepProof(kept)
  return { set, unset: FIELDS.filter((field) => set[field] === undefined) }
}

/**
 * A change of a user whose proof of the address is whole: its prover goes with it, and no other address inherits it. Every change by a rule
 * passes here.
 * @throws Error for a change that proves an address without saying who has proved it
 */
export function withProof<T extends UserChange> (record: UserRecord, change: T): T {
  const { set = {}, unset = [] } = change
  const says = (field: UserField) => set[field] !== undefined || unset.includes(field)
  if (set.email_verified_at !== undefined && !says('email_verified_by')) throw new Error('the change does not say who has proved the address')
  const isOther = says('email') && set.email !== record.email
  if (isOther && !says('email_verified_at') && record.email_verified_at !== undefined) {
    throw new Error('the change gives the proof of an address to another one')
  }
  return unset.includes('email_verified_at') && !says('email_verified_by') && record.email_verified_by !== undefined
    ? { ...change, unset: [...unset, 'email_verified_by'] }
    : change
}

/** A new record, in the same way. @throws Error as withProof */
export function checkProof ({ email, email_verified_at: at, email_verified_by: by }: UserRecord): void {
  if ((at === undefined) !== (by === undefined) || (at !== undefined && email === undefined)) {
    throw new Error('the record does not say who has proved the address')
  }
}
