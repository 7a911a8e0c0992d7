import type { errors as OidcErrors, KoaContextWithOIDC } from 'oidc-provider'
import { type Clock, toEpoch, toLifetime, toTimestamp } from '../clock.ts'
import type { SecretBox } from '../crypto/secrets.ts'
import type { LazyDocuments } from '../client-documents/index.ts'
import type { AddressMode } from '../events/address.ts'
import type { Registry } from '../resources/registry.ts'
import type { Json, Store } from '../store/port.ts'
import type { Tokens } from '../tokens/tokens.ts'
import type { IdentityStanding } from '../upstreams/standing.ts'
import type { Callers } from './callers.ts'
import type { Times } from './contract.ts'
import type { SignToken } from './jwt-access-tokens.ts'
import type { KeyRing } from './keys.ts'
import type { TokenLimits } from './token-limits.ts'

/** Lifetimes that no option sets, in seconds. `untouched`: of what an anonymous request has stored, until its form is submitted. */
export const LIFETIMES = { code: 60, deviceCode: 600, interaction: 3600, untouched: 1800, idToken: 3600 } as const

/** A model as oidc-provider stores it. */
export type Payload = Record<string, Json>

/** The dependencies of the adapters. */
export interface AdapterParts {
  store: Store
  tokens: Tokens
  box: SecretBox
  times: Times
  /** How much of a network address is stored. */
  addresses: AddressMode
  keys: Pick<KeyRing, 'nameUserCode'>
  /** The resource indicator of the service's own API. */
  apiUri: string
  /** Seconds an access token lives. */
  accessTtl: number
  /** Seconds from the sign-in after which a browser's session ends, however often it is used. */
  sessionMax: number
  /** Seconds from the authorization after which no refresh token is issued. */
  refreshMax: number
  /** Seconds for which a used refresh token is still accepted. */
  refreshGrace: number
  limits: TokenLimits
  /** Signs a token for a resource whose tokens are JWTs. */
  signToken: SignToken
  /** The registry of resources, read once in each request. */
  readRegistry: () => Promise<Registry>
  /** Judges what requests present of their clients. */
  callers: Pick<Callers, 'present'>
  /** Judges identities at other providers. Absent: there are none. */
  standing?: IdentityStanding | undefined
  /** Clients from documents. Absent: there are none. */
  documents?: LazyDocuments | undefined
  /** oidc-provider's error classes: an adapter that throws one decides the OAuth error that the client sees. */
  errors: typeof OidcErrors
  /** The current request, if there is one. */
  getContext (): KoaContextWithOIDC | undefined
}

/** The adapter methods that one model uses. */
export interface ModelAdapter {
  upsert? (id: string, payload: Payload, expiresIn: number): Promise<void>
  find? (id: string): Promise<Payload | undefined>
  findByUid? (uid: string): Promise<Payload | undefined>
  findByUserCode? (code: string): Promise<Payload | undefined>
  consume? (id: string): Promise<void>
  destroy? (id: string): Promise<void>
  revokeByGrantId? (grantId: string): Promise<void>
}

export function createTimes (now: Clock): Times {
  return {
    now,
    lifetime: (seconds) => toLifetime(now(), seconds),
    toEpoch: (timestamp) => toEpoch(timestamp, now),
    fromEpoch: (seconds) => toTimestamp(seconds * 1000 - Date.now() + now())
  }
}

/** The stored part of a payload: without the token, and without the times, which the record has. */
export function toStored ({ jti: _, iat: __, exp: ___, ...rest }: Payload): Payload {
  return rest
}

/** The payload of a stored record; the inverse of `toStored`. */
export function toPayload (
  record: { created_at: string, expired_at: string, payload?: Payload | undefined, consumed?: boolean }, jti: string | undefined, times: Times
): Payload {
  return {
    ...record.payload,
    ...(jti !== undefined && { jti }),
    iat: times.toEpoch(record.created_at),
    exp: times.toEpoch(record.expired_at),
    ...(record.consumed === true && { consumed: true })
  }
}
