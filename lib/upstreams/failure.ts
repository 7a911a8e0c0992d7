import type { Place } from './attempts.ts'

/** Why a sign-in with an upstream came to nothing. The page has the text for each. */
export type UpstreamRefusal =
  /** The person, or the provider, has refused. */
  | 'refused'
  /** There is no such upstream, it is off, or not for this client. */
  | 'off'
  /** The sign-in is over, was made already, or was begun in another browser, which may keep no cookies. */
  | 'over'
  /** The provider does not answer, or not in time, or wrongly. */
  | 'down'
  /** The provider did not ask the person again. */
  | 'stale'
  /** The provider does not know the person any more without asking them. */
  | 'unrenewed'
  /** Too many sign-ins wait for the provider. */
  | 'busy'
  /** The tenant, or the domain of the address, is none of those that may sign in. */
  | 'tenant'
  | 'domain'
  /** There is no account, and none may be made, or not without a proved address. */
  | 'unknown'
  | 'no_address'
  /** The address or the identity is another account's. */
  | 'taken'
  /** The answer does not say which roles the person has. */
  | 'roles'
  /** The person has signed in by a provider that is for some apps only, which adds no other way. */
  | 'restricted'

/** A sign-in with an upstream that came to nothing. */
export class UpstreamError extends Error {
  override readonly name = 'UpstreamError'
  readonly refusal: UpstreamRefusal
  /** Where the person may begin again. Absent: it is not known. */
  place?: Place
  /** Of `taken`, where an administrator can decide: what events call the identity that was refused. */
  subject?: string

  /** @param cause for the log. It has no secret of the provider */
  constructor (refusal: UpstreamRefusal, cause?: unknown) {
    super(`sign-in with an upstream: ${refusal}`, { cause })
    this.refusal = refusal
  }
}
