import { checkText, countCharacters } from '../checks.ts'
import { paramError } from '../errors.ts'

/** Characters of the passwords that bootstrap and the command line generate: 142 bits. No rule asks for more. */
export const GENERATED_PASSWORD = 24

/** Characters of the longest common password. */
export const LONGEST_COMMON = 20

/** The names of the user. A password must not be one of them. */
interface PasswordOwner {
  account: string
  /** Another address of the user. */
  email?: string | undefined
}

/**
 * Checks a password that a user or an administrator chose. Passwords that are stored already are not checked again.
 * @returns the password, unchanged
 * @throws ErrParam, whose `reason` is `short`, `common` or `name`
 */
export type CheckNewPassword = (password: string, owner: PasswordOwner) => Promise<string>

/** Removes differences of case, and compatibility forms such as full-width letters. Upper case comes first: it turns `ß` into `SS`. */
function fold (text: string): string {
  return text.normalize('NFKC').toUpperCase().toLowerCase()
}

/**
 * The rules of NIST SP 800-63B-4, 3.1.1.2, and OWASP ASVS 5.0, 6.2: a minimum length in code points, no common password, and no
 * name that an attacker would try first. There are no rules about kinds of characters.
 * @param min the minimum length; 1 accepts any password that is not empty
 * @param serviceName the name of the service, if it has one
 */
export function createPasswordRules ({ min, serviceName = '' }: { min: number, serviceName?: string | undefined }): CheckNewPassword {
  return async function checkNewPassword (password, { account, email = '' }) {
    if (password === '') throw paramError('password', 'must not be empty', 'short')
    checkText('password', password)
    if (min === 1) return password
    if (countCharacters(password) < min) throw paramError('password', `must have at least ${min} characters`, 'short')
    const folded = fold(password)
    if ([account, email, serviceName].some((name) => name !== '' && fold(name) === folded)) {
      throw paramError('password', 'must not be the account or the name of the service', 'name')
    }
    if (countCharacters(folded) > LONGEST_COMMON) return password
    // Loaded on demand, because the list has 140 KB.
    const { isCommon } = await import('./common-passwords.ts')
    if (isCommon(folded)) throw paramError('password', 'is one of the most common passwords', 'common')
    return password
  }
}
