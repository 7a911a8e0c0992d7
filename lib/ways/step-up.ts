import { IdentityError } from '../errors.ts'
import { ACRS, type Acr, type Strength, reaches } from '../proofs.ts'

/** How a user must have signed in for an operation. */
export interface Demand {
  /** The weakest class that is enough. Absent: any. */
  acr?: Acr
  /** Seconds since the oldest of the proofs, at most. Absent: any. */
  maxAge?: number
}

/**
 * Checks the demand of a guard.
 * @throws Error that names the option
 */
export function checkDemand ({ acr, maxAge }: Demand): void {
  if (acr !== undefined && !ACRS.includes(acr)) throw new Error(`guard: acr must be one of ${ACRS.join(', ')}`)
  if (maxAge !== undefined && !(Number.isSafeInteger(maxAge) && maxAge > 0)) throw new Error('guard: maxAge must be a whole number of seconds, at least 1')
}

/**
 * Whether a sign-in meets a demand. What does not come from a sign-in meets none.
 * @param now milliseconds since 1970
 */
export function meets (auth: Readonly<Strength> | undefined, { acr, maxAge }: Demand, now: number): boolean {
  if (auth === undefined || (acr !== undefined && !reaches(auth, acr))) return false
  // Written so that a time that cannot be read is too old.
  return maxAge === undefined || now - Date.parse(auth.time) <= maxAge * 1000
}

/** The error that asks for another sign-in, with what it must prove (RFC 9470, 3). */
export function stepUpError ({ acr, maxAge }: Demand, text = 'the user must sign in again, or in another way, for this'): IdentityError {
  const parameters = [
    'error="insufficient_user_authentication"',
    `error_description="${text}"`,
    ...(acr === undefined ? [] : [`acr_values="${acr}"`]),
    ...(maxAge === undefined ? [] : [`max_age="${maxAge}"`])
  ]
  return new IdentityError('ErrUnknown', text, { headers: { 'www-authenticate': `Bearer ${parameters.join(', ')}` } })
}
