import type { Reason } from '../../schemas/reason.ts'
import type { ReturnTo } from './intent.ts'

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

/** The same as events say it. Undefined: nothing was tried, or it is tried again by itself. */
export const UPSTREAM_REASONS: Readonly<Record<UpstreamRefusal, Reason | undefined>> = {
  refused: 'upstream_refused',
  off: 'upstream_off',
  over: undefined,
  down: 'upstream_down',
  stale: 'stale',
  unrenewed: undefined,
  busy: 'upstream_down',
  tenant: 'upstream_refused',
  domain: 'upstream_refused',
  unknown: 'no_account',
  no_address: 'unproved_address',
  taken: 'taken',
  roles: 'roles_absent',
  restricted: 'wrong_app'
}

/** A sign-in with an upstream that came to nothing. */
export class UpstreamError extends Error {
  override readonly name = 'UpstreamError'
  readonly refusal: UpstreamRefusal
  /** Where the person may begin again. Absent: it is not known. */
  place?: ReturnTo
  /** Whom the provider has named, where what it says of them is refused. */
  claimed?: { issuer: string, subject: string }
  /** Of `taken`, where an administrator can decide: what events call the identity that was refused. */
  subject?: string

  /** @param cause for the log. It has no secret of the provider */
  constructor (refusal: UpstreamRefusal, cause?: unknown) {
    super(`sign-in with an upstream: ${refusal}`, { cause })
    this.refusal = refusal
  }
}
