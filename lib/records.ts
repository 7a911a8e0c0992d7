import { type Document, type Json } from './store/port.ts'

/** Role name -> `true` or an object of attributes. A role that is present is held. */
export type Roles = Record<string, true | { [key: string]: Json }>

/** A stored user. Field names are those of service.md, 2. */
export interface UserRecord extends Document {
  account: string
  created_at: string
  modified_at: string
  verified_at?: string
  expired_at?: string
  disabled_at?: string
  roles: Roles
  /** 8 characters of salt and a bcrypt hash, see lib/passwords.ts. */
  password: string
  name: string
  info: { [key: string]: Json }
  /** Tokens minted under an earlier epoch are dead. */
  epoch: number
  /** Counts the writes, so that a rule checked on what was read holds at the write. */
  revision: number
  /** Held by the one user that bootstrap made: a unique key, so that two at once make one. */
  bootstrap?: string
}

/** A stored client. */
export interface ClientRecord extends Document {
  createdAt: string
  modifiedAt: string
  /** The sealed secret (lib/secrets.ts); absent for a public client. */
  secret?: string
  redirectUris: string[]
  scopes: string[]
  userId: string
  name: string
  image?: string
  /** Tokens minted under an earlier epoch are dead. */
  epoch: number
}

/** What every code, token and grant holds. Its id is the SHA-256 of the token, base64url; a grant's is random. */
export interface TokenRecord extends Document {
  user_id: string
  client_id: string
  /** The epochs of the user and the client that were read when the token was asked for. */
  user_epoch: number
  client_epoch: number
  created_at: string
  expired_at: string
  /** The scopes granted, where fewer than the client's. */
  scopes?: string[]
  /** The token session: present where there is a refresh token. */
  grant_id?: string
}

/**
 * A token session: the access and refresh tokens that came from one sign-in. Of its refresh tokens the one named
 * here is good, so that rotation and logout are each one write on one document.
 */
export interface GrantRecord extends TokenRecord {
  refresh_id: string
  last_used_at: string
}
