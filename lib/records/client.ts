import { toTimestamp } from '../clock.ts'
import type { CustomClaims } from '../custom-claims.ts'
import { generateId } from '../ids.ts'
import type { Roles } from '../roles.ts'
import type { Change, Document } from '../store/port.ts'
import { hasWords, toClientWords } from '../words.ts'

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
  /** The previous way to authenticate, which passes until then. */
  former_auth?: { method: Exclude<TokenAuth, 'none'>, until: string }
  secrets?: NamedSecret[]
  /** The keys of its assertions. */
  keys?: ClientKey[]
  redirectUris: string[]
  scopes: string[]
  /** The owner. Absent on a client that no user has registered: nobody owns it (lib/clients/owner.ts). */
  userId?: string
  name: string
  /** The words by whose beginnings the client is found (lib/words.ts). Absent on a record that an earlier release has written. */
  words?: string[]
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
  /** Claims of the operator's own about users. Absent: none. */
  claims?: CustomClaims
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
  /** Of a client that nobody has registered: what people have consented to of the document at its id, a URL (lib/client-documents). */
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
  const words = toClientWords({ id, name: fields.name })
  return { id, createdAt: timestamp, modifiedAt: timestamp, ...fields, words, epoch: isLasting ? 0 : toFirstEpoch(time) }
}

/** Completes a change of a client: its words follow its name, also where an earlier release has changed that. */
export function withClientWords<T extends { set?: Change<ClientRecord>['set'] }> ({ id, name, words }: ClientRecord, change: T): T {
  const wanted = toClientWords({ id, name: change.set?.name ?? name })
  return hasWords(words, wanted) ? change : { ...change, set: { ...change.set, words: wanted } }
}

/**
 * Whether the operator vouches for a client: it is first-party, has roles, or has a scope that only an administrator could
 * give. Its owner may not change it or see its secret, because that would give the owner the power of the client.
 */
export function isVouchedFor (
  { first_party, roles = {}, scopes, admin_scopes = [], document }: Pick<ClientRecord, 'first_party' | 'roles' | 'scopes' | 'admin_scopes' | 'document'>
): boolean {
  // Whoever writes the document decides about such a client.
  if (document !== undefined) return false
  return first_party === true || Object.keys(roles).length > 0 || admin_scopes.some((scope) => scopes.includes(scope))
}

/** The id of the readable secret, among the named ones. */
export const FIRST = 'first'

/** Whether the client still has the secret or the key that once authenticated a request. Its expiry does not matter here. */
export function hasCredential ({ secret, secrets, keys }: Pick<ClientRecord, 'secret' | 'secrets' | 'keys'>, auth_id: string): boolean {
  const isIt = ({ id }: { id: string }) => id === auth_id
  return auth_id === FIRST ? secret !== undefined : secrets?.some(isIt) === true || keys?.some(isIt) === true
}
