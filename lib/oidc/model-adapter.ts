import type { errors as OidcErrors, KoaContextWithOIDC } from 'oidc-provider'
import { type Clock, toLifetime } from '../clock.ts'
import type { SecretBox } from '../crypto/secrets.ts'
import type { Json, Store } from '../store/port.ts'
import type { Tokens } from '../tokens/tokens.ts'
import type { KeyRing } from './keys.ts'

/** Lifetimes that no option sets, in seconds. */
export const LIFETIMES = { code: 60, deviceCode: 600, interaction: 3600, idToken: 3600 } as const

/** What oidc-provider stores of a model. */
export type Payload = Record<string, Json>

/** The dependencies of the adapters. */
export interface AdapterParts {
  store: Store
  tokens: Tokens
  box: SecretBox
  times: Times
  keys: Pick<KeyRing, 'nameUserCode'>
  firstParty: ReadonlySet<string>
  /** Seconds an access token lives. */
  accessTtl: number
  /** Seconds in which a spent refresh token is still answered. */
  refreshGrace: number
  /** oidc-provider's error classes: what an adapter throws reaches the client in their words. */
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

/**
 * oidc-provider counts whole seconds of the wall clock, and records carry the service's own time. The two differ only in a
 * test that moves the service's clock: stored records then age with it.
 */
export interface Times {
  now (): number
  lifetime (seconds: number): { created_at: string, expired_at: string }
  /** A stored time as seconds of the wall clock. */
  toEpoch (timestamp: string): number
}

export function createTimes (now: Clock): Times {
  return {
    now,
    lifetime: (seconds) => toLifetime(now(), seconds),
    toEpoch: (timestamp) => Math.floor((Date.parse(timestamp) - now() + Date.now()) / 1000)
  }
}

/** The part of a payload that is stored: the token itself is not, and the record has the times. */
export function toStored ({ jti: _, iat: __, exp: ___, ...rest }: Payload): Payload {
  return rest
}

/** The payload of a stored record: `toStored` undone. */
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
