import type { errors as OidcErrors, KoaContextWithOIDC } from 'oidc-provider'
import type { SecretBox } from '../crypto/secrets.ts'
import type { Json, Store } from '../store/port.ts'
import type { KeyRing } from './keys.ts'
import type { Times } from './times.ts'

/** Seconds that live what no option is for. */
export const LIFETIMES = { code: 60, deviceCode: 600, interaction: 3600, idToken: 3600 } as const

/** What oidc-provider gives us to keep, and gets back. */
export type Payload = Record<string, Json>

/** What the adapters need. */
export interface AdapterParts {
  store: Store
  box: SecretBox
  times: Times
  keys: Pick<KeyRing, 'nameUserCode'>
  firstParty: ReadonlySet<string>
  /** Seconds an access token lives. */
  accessTtl: number
  /** Seconds in which a refresh token that was used already is answered again. */
  refreshGrace: number
  /** oidc-provider's error classes: what is thrown from an adapter goes to the client in their words. */
  errors: typeof OidcErrors
  /** The request under way, where there is one. */
  getContext (): KoaContextWithOIDC | undefined
}

/** The methods of an adapter that a model has use for. */
export interface ModelAdapter {
  upsert? (id: string, payload: Payload, expiresIn: number): Promise<void>
  find? (id: string): Promise<Payload | undefined>
  findByUid? (uid: string): Promise<Payload | undefined>
  findByUserCode? (code: string): Promise<Payload | undefined>
  consume? (id: string): Promise<void>
  destroy? (id: string): Promise<void>
  revokeByGrantId? (grantId: string): Promise<void>
}

/** The payload without the token itself, and without the times, which the record has. */
export function strip ({ jti: _, iat: __, exp: ___, ...rest }: Payload): Payload {
  return rest
}
