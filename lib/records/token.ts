import type { Device } from '../device.ts'
import type { Proof, Strength } from '../proofs.ts'
import type { Document, Json } from '../store/port.ts'

/** A client that uses a token on behalf of the token's user, and whom it acts for in turn (RFC 8693, 4.1). No request can set it yet. */
type Delegate = { client_id: string, act?: Delegate }

/** The fields of every code, token and grant. The id is the SHA-256 of the token, base64url; a grant's is random. */
export interface TokenRecord extends Document {
  user_id: string
  client_id: string
  /** The epochs of the user and the client, as read when the token was requested. A service token does not have that of its user. */
  user_epoch?: number
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
  /**
   * `ClientCredentials` or `Service` when the client acts for itself: with a token of the token endpoint, or with one that an administrator
   * has made. The user is then the client's owner. `Personal` for a token that the user has made for a program.
   */
  kind?: string
  /** Whose a service or personal access token is: the id of a client, or what `toUserHolder` makes of a user's. An index finds tokens by this key. */
  holder?: string
  /** What such a token is for, and its last characters, for people. */
  name?: string
  last4?: string
}

const OF_USER = 'user:'

/** The holder of a user's personal access tokens. No client has such an id. */
export const toUserHolder = (user_id: string): string => `${OF_USER}${user_id}`

/** The range of all such holders. A semicolon sorts next after the colon. */
export const USER_HOLDERS = { since: { holder: OF_USER }, before: { holder: 'user;' } } as const

/** The id of a user in such a holder. Undefined for a client's. */
export const readUserHolder = (holder: string): string | undefined => holder.startsWith(OF_USER) ? holder.slice(OF_USER.length) : undefined

/**
 * A token session: the access and refresh tokens of one authorization. Every look-up of such a token reads it, so deleting
 * it ends the session. It never expires before a token under it.
 */
export interface GrantRecord extends TokenRecord {
  user_epoch: number
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
  place?: Device
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
