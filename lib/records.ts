import { toTimestamp } from './clock.ts'
import { generateId } from './ids.ts'
import type { Document, Json } from './store/port.ts'

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
  /** 8 characters of salt and a bcrypt hash, see lib/users/passwords.ts. */
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

type NewUser = Omit<UserRecord, 'id' | 'created_at' | 'modified_at' | 'verified_at' | 'epoch' | 'revision'> & { id?: string }

/** The record of a user created at `time`. Without an expiry the user is verified. */
export function createUserRecord (time: number, { id = generateId(time), ...fields }: NewUser): UserRecord {
  const timestamp = toTimestamp(time)
  const verified = fields.expired_at === undefined ? { verified_at: timestamp } : {}
  return { id, created_at: timestamp, modified_at: timestamp, ...verified, ...fields, epoch: 0, revision: 0 }
}

/** A stored client. */
export interface ClientRecord extends Document {
  createdAt: string
  modifiedAt: string
  /** The sealed secret (lib/crypto/secrets.ts); absent for a public client. */
  secret?: string
  redirectUris: string[]
  scopes: string[]
  userId: string
  name: string
  image?: string
  /** An operator vouches for it: it signs users in without asking for their consent. */
  first_party?: boolean
  /** Tokens minted under an earlier epoch are dead. */
  epoch: number
}

type NewClient = Omit<ClientRecord, 'id' | 'createdAt' | 'modifiedAt' | 'epoch'> & { id?: string }

/** The record of a client registered at `time`. */
export function createClientRecord (time: number, { id = generateId(time), ...fields }: NewClient): ClientRecord {
  const timestamp = toTimestamp(time)
  return { id, createdAt: timestamp, modifiedAt: timestamp, ...fields, epoch: 0 }
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
  /** The token session: present where there is a refresh token, or the token came from a sign-in. */
  grant_id?: string
  /** RFC 9449: the thumbprint of the key whose holder alone may use the token. */
  jkt?: string
  /** Of a one-shot code or a refresh token: false until its first use. */
  consumed?: boolean
  consumed_at?: string
  /** What the authorization server keeps of its own beside these; never a token. */
  payload?: { [key: string]: Json }
  /** `ClientCredentials` where the client acts by itself, for its owner. */
  kind?: string
}

/**
 * A token session: the access and refresh tokens that came of one authorization. Every look-up of such a token reads it, so
 * that deleting it ends the session. It never expires before a token under it.
 */
export interface GrantRecord extends TokenRecord {
  /** When it was made or last refreshed: a write for each request would cost more than it tells. */
  last_used_at: string
  /** The sign-in at the browser that it came from. */
  session_uid?: string
  /** It ends when that sign-in does: nobody asked for offline access. */
  bound?: boolean
}
