import { IdentityError } from '../errors.ts'

/** Why a change of ways was refused. `unknown`: there is no such way, or its enrolment has ended. */
export type WayRefusal = 'in_use' | 'last' | 'most' | 'off' | 'unknown'

const REFUSALS: Readonly<Record<WayRefusal, [code: 'ErrParam' | 'ErrPerm' | 'ErrNotFound', cause: string]>> = {
  in_use: ['ErrParam', 'is in use already'],
  last: ['ErrPerm', 'is the last way in and cannot be removed'],
  most: ['ErrPerm', 'no more of this kind can be added'],
  off: ['ErrPerm', 'two-factor authentication is off, and no method can be added'],
  unknown: ['ErrNotFound', 'no such way, or its enrolment has ended']
}

export class WayError extends IdentityError {
  readonly refusal: WayRefusal

  constructor (refusal: WayRefusal, options?: ErrorOptions) {
    const [code, cause] = REFUSALS[refusal]
    super(code, `way: ${cause}`, options)
    this.refusal = refusal
  }
}
