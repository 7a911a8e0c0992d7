import { toTimestamp } from '../clock.ts'
import { ACRS, type Acr, type Strength, toStrength } from '../proofs.ts'
import { PASSWORD } from '../way.ts'

/** The claims about the sign-in that a token comes from (RFC 9470, 6). None, if it comes from no sign-in. */
export interface StrengthClaims {
  acr?: string
  amr?: string[]
  /** Seconds since 1970. */
  auth_time?: number
}

const NONE: StrengthClaims = {}

/** @param toEpoch a stored time as seconds since 1970 */
export function showStrength (auth: Readonly<Strength> | undefined, toEpoch: (timestamp: string) => number): StrengthClaims {
  if (auth === undefined) return NONE
  const { acr, amr, time } = auth
  return { acr, ...(amr.length > 0 && { amr: [...amr] }), auth_time: toEpoch(time) }
}

/**
 * Reads the claims of another service. Undefined where it does not say how the user has signed in: the token comes from no sign-in, or the
 * service is of an earlier release. A class that is not known here counts as the weakest one.
 */
export function readStrength ({ acr, amr = [], auth_time }: StrengthClaims): Strength | undefined {
  if (acr === undefined || auth_time === undefined) return undefined
  return { acr: ACRS.find((known) => known === acr) ?? ACRS[0], amr, time: toTimestamp(auth_time * 1000) }
}

/** The strength of a token that an operator mints as if its user had just signed in. */
export function inventStrength (acr: Acr, at: string): Strength {
  const password = { way: PASSWORD, kind: 'password', at } as const
  if (acr === '1') return toStrength([password])
  return toStrength(acr === 'mfa' ? [password, { way: 'minted', kind: 'totp', at }] : [{ way: 'minted', kind: 'passkey', uv: true, at }])
}
