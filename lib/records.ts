import { toTimestamp } from './clock.ts'
import { generateId } from './ids.ts'
import type { Place } from './place.ts'
import type { Strength } from './proofs.ts'
import type { Document, Json } from './store/port.ts'
import type { Ways } from './way.ts'

/** Role name -> `true` or an object of attributes. The user has every role that is present. */
export type Roles = Record<string, true | { [key: string]: Json }>

/** A change of a user's address, with the replaced values. */
export type AddressChange = {
  /** The id of the ticket that undoes it. */
  ticket: string
  until: string
  /** The ways that there were. Later ones go with the change. Absent: none. */
  ways?: string[]
  email?: string
  email_verified_at?: string
}

/** A first factor that was added, which the user can undo. */
export type FirstFactor = {
  /** The id of the ticket that undoes it. */
  ticket: string
  until: string
  /** The ways that there were before. */
  ways: string[]
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
  /** 8 characters of salt and a bcrypt hash (lib/users/passwords.ts). Absent or '' for a user without one. */
  password?: string
  /** The other ways to prove who they are (lib/ways). A credential that is not named here is dead. */
  ways?: Ways
  /** The keys of these ways, each unique among all users. Absent without one. */
  way_keys?: string[]
  name: string
  info: { [key: string]: Json }
  /** The address that the user has verified, or that an administrator has set: the account itself, or another one. */
  email?: string
  /** The time when a link mailed to `email` was used. Absent for one that an administrator has set. Independent of verified_at, which the operator sets. */
  email_verified_at?: string
  /**
   * The addresses that no other user may have: the account, if it is an address, and the verified address. Each item is unique
   * among all users. Absent on records of earlier releases, where only the account is unique.
   */
  addresses?: string[]
  /** Changes of the address that can be undone, the latest one last. */
  address_changes?: AddressChange[]
  /** First factors whose addition can be undone, the latest one last. */
  first_factors?: FirstFactor[]
  /** The language of the user's mails: of the pages that they saw last, or of the request that created them. */
  language?: string
  /** Set when the user chose this language on a page. */
  language_chosen?: boolean
  /** Set until the invitation is accepted. The user has no password yet. */
  invited_at?: string
  /** The id of the user who made the invitation, or of the client that made it for itself. */
  invited_by?: string
  /** True for a user with the admin role who is not disabled, absent otherwise: an index key that finds administrators. They may have expired. */
  administers?: boolean
  /** True while `ways` has a second factor, whatever the configuration says of it. Otherwise absent. For lists. */
  has_factor?: boolean
  /** Tokens minted under an earlier epoch are revoked. */
  epoch: number
  /** Incremented when a role is given. Links from before are no longer valid. Absent: 0. */
  link_epoch?: number
  /** Incremented by every write. A write can thus require that the record has not changed since its rules were checked. */
  revision: number
  /** Set on the user that bootstrap created. A unique key, so that concurrent calls create one admin. */
  bootstrap?: string
}

/** Whether the user is neither disabled nor expired. */
export function isActive (user: UserRecord, now: string): boolean {
  return user.disabled_at === undefined && (user.expired_at === undefined || user.expired_at > now)
}

/** Whether an account is an email address. Only that format of accounts contains an `@`. */
export function isAddress (account: string): boolean {
  return account.includes('@')
}

/** The addresses that no other user may have. */
export function listAddresses (account: string, email?: string): string[] {
  return [...new Set([account, email])].filter((address) => address !== undefined).filter(isAddress)
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

/** The grants a client may use: authorization code, refresh token, client credentials, device code. */
export type ClientGrant = 'code' | 'refresh' | 'client' | 'device'

/** A stored client. */
export interface ClientRecord extends Document {
  createdAt: string
  modifiedAt: string
  /** The sealed secret (lib/crypto/secrets.ts). Absent for a public client. */
  secret?: string
  redirectUris: string[]
  scopes: string[]
  userId: string
  name: string
  image?: string
  /** Absent: by kind, see lib/clients/kinds.ts. */
  grants?: ClientGrant[]
  /** Whether a confidential client may leave PKCE out. Absent: it is required. */
  pkce?: 'optional'
  /** The operator's own client, which signs users in without asking for consent. */
  first_party?: boolean
  /** The roles of the client's own tokens: with roles it is a service account. */
  roles?: Roles
  /** Whether ID tokens contain the claims of the granted scopes, in addition to userinfo. */
  id_token_claims?: boolean
  /** The URL that receives logout tokens when a user's sign-in has ended (lib/logout/logouts.ts). */
  backchannelLogoutUri?: string
  /** True with `backchannelLogoutUri`, absent otherwise: an index key that finds whether any client has one. */
  backchannel?: boolean
  /** A disabled client gets no tokens. Disabling it increments the epoch. */
  disabled_at?: string
  /** The declared scopes among `scopes`: scope -> id of the record of its resource. */
  declared?: { [scope: string]: string }
  /** Those of `scopes` that only an administrator could give at the time. */
  admin_scopes?: string[]
  /** Incremented by every write. A write can thus require that the record has not changed since its rules were checked. */
  revision?: number
  /** Tokens minted under an earlier epoch are revoked. */
  epoch: number
}

type NewClient = Omit<ClientRecord, 'id' | 'createdAt' | 'modifiedAt' | 'epoch'> & { id?: string }

/** The record of a client registered at `time`. */
export function createClientRecord (time: number, { id = generateId(time), ...fields }: NewClient): ClientRecord {
  const timestamp = toTimestamp(time)
  return { id, createdAt: timestamp, modifiedAt: timestamp, ...fields, epoch: 0 }
}

/** A client that uses a token on behalf of the token's user, and whom it acts for in turn (RFC 8693, 4.1). No request can set it yet. */
type Delegate = { client_id: string, act?: Delegate }

/** The fields of every code, token and grant. The id is the SHA-256 of the token, base64url; a grant's is random. */
export interface TokenRecord extends Document {
  user_id: string
  client_id: string
  /** The epochs of the user and the client, as read when the token was requested. */
  user_epoch: number
  client_epoch: number
  created_at: string
  expired_at: string
  /** The granted scopes. Absent: all of the client's. */
  scopes?: string[]
  /**
   * On tokens that the operator minted. `unrestricted` gives all of the user's power. `narrowed` gives the named scopes only,
   * which may include scopes of the API that the client does not have.
   */
  operator?: 'unrestricted' | 'narrowed'
  /** The audience: the URI and the id of the resource that the token was requested for (RFC 8707). */
  resource?: string
  resource_id?: string
  /** Refers to the registry of resources, which defines the meaning of the scopes. */
  registry_id?: string
  /** The token session. Present with a refresh token, and on tokens from a sign-in. */
  grant_id?: string
  /** The thumbprint of the key that the token is bound to (RFC 9449). */
  jkt?: string
  /** On single-use codes: false until the first use. */
  consumed?: boolean
  /** On refresh tokens: the generation of their session when they were issued. */
  generation?: number
  /** How the user had signed in. Absent on tokens that come from no sign-in, and on those of earlier releases. */
  auth?: Strength
  /** Who uses the token on the user's behalf. Absent: the client itself. */
  act?: Delegate
  /** Further fields of the authorization server. Never contains a token. */
  payload?: { [key: string]: Json }
  /** `ClientCredentials` when the client acts for itself. The user is then the client's owner. */
  kind?: string
}

/**
 * A token session: the access and refresh tokens of one authorization. Every look-up of such a token reads it, so deleting
 * it ends the session. It never expires before a token under it.
 */
export interface GrantRecord extends TokenRecord {
  /** The time of creation or of the last refresh. Other requests do not update it, because a write per request would cost too much. */
  last_used_at: string
  /** Incremented by the first use of a refresh token of this generation. */
  generation: number
  /** The times of these first uses, the latest one first; only the last few. */
  refreshed_at: string[]
  /** The browser's sign-in session in which the authorization was made. */
  session_uid?: string
  /** True if it ends with that sign-in session, because offline access was not requested. */
  bound?: boolean
  /** The browser, system and address of the sign-in. */
  place?: Place
}

/** The fields that decide whether a token, code, grant or sign-in session is still valid. */
export interface Revocable extends Document {
  user_id?: string
  client_id?: string
  grant_id?: string
  user_epoch?: number
  client_epoch?: number
  expired_at: string
  resource?: string
  resource_id?: string
  kind?: string
}
