/**
 * oidc-provider's objects with our types, where its own types do not know what configuration.ts, clients.ts and the patches put there.
 * Nothing else in lib/oidc changes the type of such an object.
 * @module
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Client, KoaContextWithOIDC, Provider } from 'oidc-provider'
import type { Proof } from '../proofs.ts'
import type { ClientGrant } from '../records.ts'
import type { Json } from '../store/port.ts'

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
  /** The user who owns the client. */
  owner: string
  /** The client's epoch when it was read for this request. */
  epoch: number
  first_party: boolean
  public: boolean
  /** Honoured only for a confidential client, see configuration.ts. */
  pkce?: 'optional'
  /** Whether its ID tokens have the claims of the granted scopes. */
  id_token_claims: boolean
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
  result?: { login?: SignIn }
  /** The fields of the grant that a record of it needs. */
  grant?: Record<'accountId' | 'clientId' | 'openid' | 'resources' | 'rejected', Json>
}

/** @param ctx absent: outside of a request, and then nothing of it is present */
export const toOurs = (ctx: { oidc?: object } | undefined): OurContext => (ctx?.oidc ?? {}) as OurContext

export const toOurClient = (client: object): OurClient => client as OurClient

interface IdToken {
  /** The request; absent for a logout token. */
  ctx?: { oidc: { entities: { AccessToken?: { jti: string } } } }
  mask: object
  set (claim: string, value: unknown): void
  issue (options?: { use?: string }): Promise<string>
}

/** Members of oidc-provider that its types leave out. */
interface Internals {
  createContext (this: Provider, request: IncomingMessage, response: ServerResponse): KoaContextWithOIDC
  OIDCContext: (new (ctx: KoaContextWithOIDC) => KoaContextWithOIDC['oidc']) & { prototype: object }
  IdToken: (new (claims: { sub: string }, options: { client: Client }) => IdToken) & { prototype: IdToken }
}

export const toInternals = (provider: object): Internals => provider as Internals
