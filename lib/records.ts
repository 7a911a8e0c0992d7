import { toTimestamp } from './clock.ts'
import { generateId } from './ids.ts'
import type { Place } from './place.ts'
import type { Proof, Strength } from './proofs.ts'
import type { Change, Document, Json } from './store/port.ts'
import type { Ways } from './way.ts'

/** Role name -> `true` or an object of attributes. The user has every role that is present. */
export type Roles = Record<string, true | { [key: string]: Json }>

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

/** An act that opened a way in, or moved the address, and can be undone with a mailed link (lib/users/undos.ts). */
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
  info: { [key: string]: Json }
  /** The address that is proved to be the user's, or that an administrator has set: the account itself, or another one. */
  email?: string
  /** When `email` was proved. Absent for one that an administrator has only set. Independent of verified_at, which the operator sets. */
  email_verified_at?: string
  /** Who has proved it: see Prover in lib/users/address-proof.ts. Absent for one that was proved under an earlier layout: nobody knows. */
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
  /** True while the former system is asked for the password (lib/former). The first password, way, link or end of the sessions ends it. */
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

/** Whether the user is neither disabled nor expired. */
export function isActive (user: UserRecord, now: string): boolean {
  return user.disabled_at === undefined && (user.expired_at === undefined || user.expired_at > now)
}

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
export function applyChange (record: UserRecord, { set = {}, unset = [] }: Change): UserRecord {
  const kept = Object.entries(record).filter(([field]) => !unset.includes(field))
  return { ...Object.fromEntries(kept), ...set } as UserRecord
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

/** How a client authenticates. */
export type TokenAuth = 'none' | 'secret' | 'private_key_jwt'

/** A named secret of a client. The secret itself is not stored. */
export type NamedSecret = {
  id: string
  name: string
  /** SHA-256, base64url. */
  hash: string
  /** The last characters of the secret, for people. */
  last4: string
  created_at: string
  expires_at?: string
}

/** A public key of a client. */
export type ClientKey = {
  /** Its thumbprint (RFC 7638). */
  id: string
  /** Always with `kid`, which the client's other keys do not have. */
  jwk: { [member: string]: string }
  created_at: string
}

/** A stored client. */
export interface ClientRecord extends Document {
  createdAt: string
  modifiedAt: string
  /** The sealed secret that is readable (lib/crypto/secrets.ts). Absence does not make a client public: see lib/clients/token-auth.ts. */
  secret?: string
  /** How the client authenticates, whatever secrets are left. Absent: `secret` with a readable secret, else `none`. */
  tokenAuth?: TokenAuth
  /** The former way to authenticate, which passes until then. */
  former_auth?: { method: Exclude<TokenAuth, 'none'>, until: string }
  secrets?: NamedSecret[]
  /** The keys of its assertions. */
  keys?: ClientKey[]
  redirectUris: string[]
  scopes: string[]
  /** The owner. Absent on a client that no user has registered: nobody owns it (lib/clients/owner.ts). */
  userId?: string
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
  /** How its ID and logout tokens are signed. Absent: RS256. */
  idTokenAlg?: 'ES256'
  /** Whether its authorization requests must be signed by one of its keys (RFC 9101). Absent: they may be. */
  signedRequests?: 'required'
  /** The stricter rules that it keeps to: FAPI 2.0. Set by administrators. */
  profile?: 'fapi2'
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
  /** True for a client of an earlier release with a scope of a name that is reserved now. For this client it stays a free scope. */
  reserved?: boolean
  /** Of a client that nobody has registered: what people have consented to of the document at its id, a URL (lib/documents). */
  document?: ClientDocument
  /** Incremented by every write. A write can thus require that the record has not changed since its rules were checked. */
  revision?: number
  /** Tokens minted under an earlier epoch are revoked. */
  epoch: number
}

/** The version of a document that the last decision of a person was about. `hash` and `print` are '' for a URL that was blocked before its first use. */
export type ClientDocument = {
  /** SHA-256 of the URL: the id of the record of the document. */
  id: string
  hash: string
  /** Identifies the name, the redirect URIs and the method. */
  print: string
  method: 'none' | 'private_key_jwt'
  /** When it was used last, to the day. */
  used_at: string
  /** When its keys were fetched last. Present for `private_key_jwt`. */
  keys_at?: string
  /** The scopes to which the document limits its client. Absent: no limit of its own. */
  scope?: string[]
}

type NewClient = Omit<ClientRecord, 'id' | 'createdAt' | 'modifiedAt' | 'epoch'> & { id?: string }

/**
 * The first epoch of a record whose id may be used again after the record was removed: the time of its creation. Tokens of the removed
 * record have an earlier epoch. From 0, they would be valid again.
 */
export const toFirstEpoch = (time: number): number => time

/**
 * The record of a client registered at `time`.
 * @param isLasting false for an id that may be used again after the client was removed
 */
export function createClientRecord (time: number, { id = generateId(time), ...fields }: NewClient, isLasting = true): ClientRecord {
  const timestamp = toTimestamp(time)
  return { id, createdAt: timestamp, modifiedAt: timestamp, ...fields, epoch: isLasting ? 0 : toFirstEpoch(time) }
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
  /**
   * On access tokens from the token endpoint: the id of the client's secret or key that authenticated the request. The token is invalid
   * once the client has it no longer. Absent for a public client, and on tokens of earlier releases.
   */
  auth_id?: string
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
  /** What an identity at another provider has proved in that sign-in. Absent if none has, and on records of earlier releases. */
  upstream_proof?: Proof
  /** The key of the session there. */
  upstream_sid?: string
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
  auth_id?: string
}
