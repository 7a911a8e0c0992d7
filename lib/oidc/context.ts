/**
 * oidc-provider's objects with our types, where its own types do not know what configuration.ts, clients.ts and the patches put there.
 * Nothing else in lib/oidc changes the type of such an object.
 * @module
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Client, KoaContextWithOIDC, Provider } from 'oidc-provider'
import type { CustomClaims } from '../custom-claims.ts'
import type { Proof } from '../proofs.ts'
import type { ClientGrant, ClientRecord } from '../records/client.ts'
import type { GrantRecord, TokenRecord } from '../records/token.ts'
import type { UserRecord } from '../records/user.ts'
import type { Json } from '../store/port.ts'
import type { Valid } from '../tokens/validity.ts'

/** Our properties of oidc-provider's client. */
export interface OurClient {
  clientId: string
  clientName?: string
  registered_uris: string[]
  /** The scopes that the client may use now. */
  own_scopes: string[]
  /** Those among them that a resource declares. */
  declared_scopes: string[]
  grants: ClientGrant[]
  /** Whether the operator vouches for it, see isVouchedFor. */
  vouched: boolean
  /** The URL of its image, if the operator vouches for it. */
  vouched_image?: string
  /** The user who owns the client. Absent: nobody. */
  owner?: string
  /**
   * Of a client from a document: `print` identifies what people decide on, and `accepted` is true if the stored client has the same. Then
   * somebody has allowed it.
   */
  document?: { print: string, accepted: boolean }
  /** The client's epoch when it was read for this request. */
  epoch: number
  first_party: boolean
  public: boolean
  /** Stricter rules: FAPI 2.0. */
  profile?: 'fapi2'
  /** Honoured only for a confidential client, see configuration.ts. */
  pkce?: 'optional'
  /** Whether its ID tokens have the claims of the granted scopes. */
  id_token_claims: boolean
  /** Claims of the operator's own. */
  custom_claims?: CustomClaims
}

/** The result of a sign-in, see routes/interaction.ts. */
export type SignIn = {
  accountId: string
  acr: string
  amr: string[]
  user_epoch: number
  signed_in_at: string
  /** Absent in an interaction that an earlier release has answered. */
  proofs?: Proof[]
  /** The `auth_time`, in seconds of the wall clock. */
  ts: number
}

/** What a request of oidc-provider has of ours. */
interface OurContext {
  client?: OurClient
  /** Present when the user has signed in for this request. */
  result?: { login?: SignIn, consent?: { document?: string }, code_used?: object }
  /** The fields of the grant that a record of it needs. */
  grant?: Record<'accountId' | 'clientId' | 'openid' | 'resources' | 'rejected', Json>
}

/** @param ctx absent: outside of a request, and then nothing of it is present */
export const toOurs = (ctx: { oidc?: object } | undefined): OurContext => ctx?.oidc ?? {}

/** The client of a request, once oidc-provider has found it. */
export function requireClient (ctx: { oidc?: object } | undefined): OurClient {
  const { client } = toOurs(ctx)
  if (client === undefined) throw new Error('the request has no client yet')
  return client
}

export const toOurClient = (client: object): OurClient => client as OurClient

/** What a request has of the client that it names: the record and that of its owner, and the secret or key that has authenticated it. */
interface Caller { record: ClientRecord, owner: UserRecord | null, auth_id?: string | undefined }

/** By the context of the request, because oidc-provider shares its client objects between requests. */
const callers = new WeakMap<KoaContextWithOIDC, Caller>()

/** Remembers the record that was read for this request. */
export function rememberClient (ctx: KoaContextWithOIDC | undefined, record: ClientRecord, owner: UserRecord | null): void {
  if (ctx !== undefined && callers.get(ctx)?.auth_id === undefined) callers.set(ctx, { record, owner })
}

/** What was read of the client of this request. */
export const findCaller = (ctx: KoaContextWithOIDC): Caller | undefined => callers.get(ctx)

/** Whether what the request presents authenticates its client. */
export async function authenticateCaller (
  ctx: KoaContextWithOIDC | undefined, id: string, verify: (record: ClientRecord) => Promise<{ auth_id?: string } | null>
): Promise<boolean> {
  const caller = ctx === undefined ? undefined : callers.get(ctx)
  if (caller?.record.id !== id) return false
  const verdict = await verify(caller.record)
  if (verdict !== null) caller.auth_id = verdict.auth_id
  return verdict !== null
}

/** The secret or the key that has authenticated the client of this request. */
export const findAuthId = (ctx: KoaContextWithOIDC | undefined): string | undefined => ctx === undefined ? undefined : callers.get(ctx)?.auth_id

/** The `jti` of an assertion that was just used up. */
const spent = new WeakMap<KoaContextWithOIDC, string>()

export function noteSpent (ctx: KoaContextWithOIDC, jti: string): void {
  spent.set(ctx, jti)
}

/** Whether the assertion of this request has this `jti`, and was just used up. True once: a later proof with the same `jti` is another one. */
export function takeSpent (ctx: KoaContextWithOIDC | undefined, jti: string): boolean {
  return ctx !== undefined && spent.get(ctx) === jti && spent.delete(ctx)
}

const texts = new WeakMap<KoaContextWithOIDC, { id: string, text: string }>()

/** Notes that a token of this request is a JWT: its text takes the place of the id that oidc-provider gave it. */
export function rememberText (ctx: KoaContextWithOIDC, id: string, text: string): void {
  texts.set(ctx, { id, text })
}

/** The text of the token that was just stored under this id; undefined for an opaque one, whose id is its text. Once. */
export function takeText (ctx: KoaContextWithOIDC | undefined, id: string): string | undefined {
  const found = ctx && texts.get(ctx)
  if (ctx === undefined || found?.id !== id) return undefined
  texts.delete(ctx)
  return found.text
}

/** The token session of a request of the token endpoint, as the look-up of its code or refresh token has read it. */
type Held = Pick<Valid<TokenRecord>, 'record' | 'user' | 'client' | 'grant'>

const sessions = new WeakMap<KoaContextWithOIDC, Held>()

export function rememberSession (ctx: KoaContextWithOIDC | undefined, { record, user, client, grant }: Held): void {
  if (ctx?.oidc?.route === 'token') sessions.set(ctx, { record, user, client, grant })
}

export const findSession = (ctx: KoaContextWithOIDC | undefined): Held | undefined => ctx && sessions.get(ctx)

/** The grant of the request's token session, if it has this id. */
export function findHeldGrant (ctx: KoaContextWithOIDC | undefined, id: string): GrantRecord | undefined {
  const grant = findSession(ctx)?.grant
  return grant?.id === id ? grant : undefined
}

/** The key of the operator's own claims among those of an account: oidc-provider passes on the claims of scopes, and no others. */
export const CUSTOM = Symbol('custom claims')

interface IdToken {
  /** The request; absent for a logout token. */
  ctx?: { oidc: { entities: { AccessToken?: { jti: string } }, params?: { grant_type?: unknown } } }
  mask: object
  set (claim: string, value: unknown): void
  issue (options?: { use?: string }): Promise<string>
}

/** Members of oidc-provider that its types leave out. */
interface Internals {
  Client: new (metadata: object) => Client
  createContext (this: Provider, request: IncomingMessage, response: ServerResponse): KoaContextWithOIDC
  OIDCContext: (new (ctx: KoaContextWithOIDC) => KoaContextWithOIDC['oidc']) & { prototype: object }
  Claims: { prototype: { available: { [CUSTOM]?: object }, result (): Promise<object> } }
  ReplayDetection: { unique (iss: string, jti: string, exp: number): Promise<boolean> }
  IdToken: (new (claims: { sub: string }, options: { client: Client }) => IdToken) & { prototype: IdToken }
}

export const toInternals = (provider: object): Internals => provider as Internals
