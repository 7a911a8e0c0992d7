import { toTimestamp } from '../clock.ts'
import { defined } from '../defined.ts'
import { generateId } from '../ids.ts'
import type { Roles } from '../roles.ts'
import type { Change, Document, FieldName, Json } from '../store/port.ts'
import type { Ways } from '../way.ts'

/** The last answers of upstreams whose maps give roles, by the id of the upstream (lib/upstreams/claimed-roles.ts). */
export type ClaimedRoles = {
  [upstream: string]: {
    /** When it came: ISO 8601. */
    at: string
    /** The roles that the map has given, also those that have left it since. */
    roles: string[]
    /** True where the last administrator keeps their role against the answer. */
    kept?: true
  }
}

/** An act that opened a way in, or moved the address, and can be undone with a mailed link (lib/user-changes/undos.ts). */
export type UndoRecord = {
  /** The tickets of its link name it. */
  id: string
  /** When it happened, and until when its link works. ISO 8601. */
  at: string
  until: string
  kind: 'factor' | 'passkey' | 'codes' | 'identity' | 'address' | 'password'
  /** The ids of the ways that it added, and of those that came of them. Absent: none. */
  added?: string[]
  /** The address before it, with its proof. Absent: that of the entry before. Its mailbox has the link. */
  before?: { email?: string, email_verified_at?: string, email_verified_by?: string }
  /** From where, for people. */
  place?: string
}

/** A change of the address that 1158eb3 has recorded, with the replaced values. */
export type AddressChange = {
  /** The id of the ticket that undoes it. */
  ticket: string
  until: string
  /** The ways that there were. Absent: none. */
  ways?: string[]
  email?: string
  email_verified_at?: string
  email_verified_by?: string
}

/** A first factor that 1158eb3 has recorded. */
export type FirstFactor = {
  /** The id of the ticket that undoes it. */
  ticket: string
  until: string
  /** The ways that there were before. */
  ways: string[]
  /** The tickets of changes of the address from before. Absent on records of earlier releases. */
  changes?: string[]
}

/** An identity at an upstream that a user has lost. */
export type LostIdentity = {
  /** The id of the upstream. Absent: it was imported before its upstream was configured. */
  upstream?: string
  /** Absent: nobody knows, so it may be any. */
  issuer?: string
  /** A hash of issuer and subject, see toWayKey. Absent: the entry stands for every identity of the upstream. */
  key?: string
  /** Whether an undo took it: somebody else had linked it. */
  undone?: true
}

/** The identity of an upstream that may join an account by itself, as the only one of this upstream: an administrator has said so. */
export type ExpectedIdentity = {
  upstream: string
  /** As events show it. */
  subject: string
}

/** A stored user. Fields have the names that the API uses. */
export interface UserRecord extends Document {
  account: string
  created_at: string
  modified_at: string
  verified_at?: string
  expired_at?: string
  disabled_at?: string
  roles: Roles
  /** The answers of upstreams that give roles. */
  claimed_roles?: ClaimedRoles
  /** The time of the oldest of them that gives any: a key that finds roles which have lasted too long. */
  roles_at?: string
  /**
   * 8 characters of salt and a bcrypt hash (lib/users/passwords.ts), or a hash of another program (lib/hashes), which begins with `$`.
   * Absent or '' for a user without one.
   */
  password?: string
  /** The kind of a password that costs another time than ours (lib/hashes/decoys.ts). Goes with that password. */
  password_scheme?: string
  /**
   * Whether an administrator has set the password. False for one that the user has set. Absent on records of earlier releases and of
   * imports: nobody knows.
   */
  operator_password?: boolean
  /** True once somebody has disconnected an identity that they had not linked: none joins by itself any more. */
  link_undone?: boolean
  /** The identities that the user has lost (lib/ways/lost-identities.ts). Absent: none. */
  lost_identities?: LostIdentity[]
  /** At most one for each upstream. Absent: none. */
  expected_identities?: ExpectedIdentity[]
  /** When an identity with a new subject last took the place of one, because the operator had declared that all subjects change. */
  rejoined_at?: string
  /**
   * The id of an upstream that claims the user whatever their address is now: their address was released, or a change to it undone. It
   * counts while that upstream has `only`. An administrator who sets an address removes it.
   */
  held_by?: string
  /** The other ways to prove who they are (lib/ways). A credential that is not named here is dead. */
  ways?: Ways
  /** The keys of these ways, each unique among all users. Absent without one. */
  way_keys?: string[]
  name: string
  /** The words by whose beginnings the user is found (lib/words.ts). Absent on a record that an earlier release has written. */
  words?: string[]
  info: { [key: string]: Json }
  /** What the operator says of the user, who cannot change it. Absent: nothing was ever said. */
  attributes?: { [key: string]: Json }
  /** The address that is proved to be the user's, or that an administrator has set: the account itself, or another one. */
  email?: string
  /** When `email` was proved. Absent for one that an administrator has only set. Independent of verified_at, which the operator sets. */
  email_verified_at?: string
  /** Who has proved it: see Prover in lib/user-changes/address-proof.ts. Absent for one that was proved under an earlier layout: nobody knows. */
  email_verified_by?: string
  /**
   * The addresses that no other user may have: the account, if it is an address, and the verified address. Each item is unique
   * among all users. Absent on records of earlier releases, where only the account is unique.
   */
  addresses?: string[]
  /** What can be undone, the latest one last. Absent: nothing. */
  undos?: UndoRecord[]
  /** The same on records of earlier releases. The next entry of `undos` takes their place. */
  address_changes?: AddressChange[]
  first_factors?: FirstFactor[]
  /**
   * The id that the tickets name with whose link alone the user adds a first factor while one is demanded: an administrator has reset
   * theirs. Of earlier releases: that of the one ticket.
   */
  enrol_ticket?: string
  /** When support staff unlocked the account within the last day of it, the latest one last. Absent: never. ISO 8601. */
  support_unlocks?: string[]
  /** The language of the user's mails: of the pages that they saw last, or of the request that created them. */
  language?: string
  /** Set when the user chose this language on a page. */
  language_chosen?: boolean
  /** Set until the invitation is accepted. The user has no password yet. */
  invited_at?: string
  /** The id of the user who made the invitation, or of the client that made it for itself. */
  invited_by?: string
  /** The ids of the user in other systems, by the name of the system. */
  external?: { [source: string]: string }
  /** The keys of these ids, each unique among all users: toExternalKey. Absent without one. */
  external_keys?: string[]
  /** The system that an import brought the user from, and the run of the import. */
  imported_source?: string
  imported_run?: string
  /** The revision that an import has written. While it is that of the record, nobody else has changed the user. */
  imported_revision?: number
  /** True while the former system is asked for the password (lib/lazy-migration). The first password, way, link or end of the sessions ends it. */
  imported_lazy?: boolean
  /** True for a user with the admin role who is not disabled, absent otherwise: an index key that finds administrators. They may have expired. */
  administers?: boolean
  /** True while `ways` has a second factor, whatever the configuration says of it. Otherwise absent. For lists. */
  has_factor?: boolean
  /** The ids of the upstreams of their identities, sorted, with a space before and after each: see toUpstreamFilter. Absent without one. */
  upstreams?: string
  /** Tokens minted under an earlier epoch are revoked. */
  epoch: number
  /** When the epoch was last incremented: what another provider was asked for before it, proves nothing after it. Absent: never, or by an earlier release. */
  epoch_at?: string
  /** Incremented when a role is given. Links from before are no longer valid. Absent: 0. */
  link_epoch?: number
  /** Incremented by every write. A write can thus require that the record has not changed since its rules were checked. */
  revision: number
  /** Set on the user that bootstrap created. A unique key, so that concurrent calls create one admin. */
  bootstrap?: string
}

/** A change of a stored user. */
export type UserChange = Change<UserRecord>

export type UserField = FieldName<UserRecord>

/** Fields to set and to remove, as parts of a change. */
export interface UserFields { set: Partial<UserRecord>, unset: UserField[] }

/** Those of these fields that a user has, to be removed. */
export function listPresent<T extends keyof UserRecord> (user: Pick<UserRecord, T>, ...fields: T[]): T[] {
  return fields.filter((field) => user[field] !== undefined)
}

/** Why a user may do nothing: an administrator has disabled them, or they have expired. Undefined for an active one. */
export function findInactive (user: Pick<UserRecord, 'disabled_at' | 'expired_at'>, now: string): 'disabled' | 'expired' | undefined {
  if (user.disabled_at !== undefined) return 'disabled'
  return user.expired_at !== undefined && user.expired_at <= now ? 'expired' : undefined
}

/** Whether the user is neither disabled nor expired. */
export const isActive = (user: UserRecord, now: string): boolean => findInactive(user, now) === undefined

/** Whether the former system has their password, and is asked about it. */
export const hasFormerPassword = ({ imported_lazy, password }: UserRecord): boolean => imported_lazy === true && !password

/** Whether an account is an email address. Only that format of accounts contains an `@`. */
export function isAddress (account: string): boolean {
  return account.includes('@')
}

/** The address for mails to the user: the verified address, or one that an administrator has set, or else the account if it is an address. */
export function findMailbox ({ account, email }: Pick<UserRecord, 'account' | 'email'>): string | undefined {
  return email ?? (isAddress(account) ? account : undefined)
}

/** The domain of an address. */
export const findDomain = (address: string): string => address.slice(address.lastIndexOf('@') + 1)

/** Whether an address is in one of these domains. */
export const isOfDomain = (address: string, domains: readonly string[]): boolean => domains.some((domain) => domain.toLowerCase() === findDomain(address))

/** The addresses that no other user may have. */
export function listAddresses (account: string, email?: string): string[] {
  return [...new Set([account, email])].filter((address) => address !== undefined).filter(isAddress)
}

/** A user as a change leaves them, but for its increments. */
export function applyChange (record: UserRecord, { set = {}, unset = [] }: UserChange): UserRecord {
  const gone = new Set<string>(unset)
  const kept = Object.entries(record).filter(([field]) => !gone.has(field))
  return { ...Object.fromEntries(kept), ...defined(set) } as UserRecord
}

type NewUser = Omit<UserRecord, 'id' | 'created_at' | 'modified_at' | 'verified_at' | 'addresses' | 'epoch' | 'revision'> & { id?: string }

/**
 * The record of a user created at `time`. A user without an expiry is verified.
 * @param byOperator false for a user whom no administrator created: `verified_at` stays unset
 */
export function createUserRecord (time: number, { id = generateId(time), ...fields }: NewUser, byOperator = true): UserRecord {
  const timestamp = toTimestamp(time)
  const verified = byOperator && fields.expired_at === undefined ? { verified_at: timestamp } : {}
  const addresses = listAddresses(fields.account, fields.email)
  return {
    id, created_at: timestamp, modified_at: timestamp, ...verified, ...fields, ...(addresses.length > 0 && { addresses }), epoch: 0, revision: 0
  }
}
