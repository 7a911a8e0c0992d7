import { IdentityError } from './errors.ts'

/** The sign-in came of a way that is not for everything, and asks for something that makes ways for everything. */
export class RestrictedError extends IdentityError {
  constructor () {
    super('ErrPerm', 'authorization: the sign-in came of a provider that is for some apps only, so it adds no way to sign in and sets no password')
  }
}

/**
 * The one gate of everything that makes a way to sign in, sets a password, or takes one away: by the API and on the pages.
 * @param actor.isRestricted whether all that they have begun their sign-in with is for some clients only
 * @throws RestrictedError
 */
export function checkUnrestricted ({ isRestricted = false }: { isRestricted?: boolean | undefined }): void {
  if (isRestricted) throw new RestrictedError()
}
