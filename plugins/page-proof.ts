import type { FastifyInstance, FastifyRequest } from 'fastify'
import { countCharacters } from '../lib/checks.ts'
import { toTimestamp } from '../lib/clock.ts'
import { paramError } from '../lib/errors.ts'
import type { Proof } from '../lib/proofs.ts'
import { CODE_LENGTH } from '../lib/sign-in/steps/code.ts'
import { ASSERTION } from '../lib/sign-in/steps/passkey.ts'
import type { Brought, Confirmed, ProveMore } from '../lib/users/confirm.ts'
import { LIMITS } from '../schemas/common.ts'
import type { AccountMount, Visit } from './account.ts'
import { createBrowserCookies } from './known-browsers.ts'
import { readField } from './sign-in-forms.ts'

const UNVERIFIED = 'did not verify the user'

/** Whether a passkey was refused because it did not verify the person. */
export const isUnverified = (message: string): boolean => message === `passkey: ${UNVERIFIED}`

/** The secret of this browser for the challenges of its account pages. */
export const toPageSecret = ({ session: { xsrf, user_id } }: Pick<Visit, 'session'>): string => `${xsrf} ${user_id}`

/** What a form brings as a proof. Without `password` it is a passkey alone. */
export interface FormProof {
  password: string | undefined
  proveMore: ProveMore
}

/**
 * The proof that a form of the account pages asks for: the current password, and of a person with a second factor a code or a passkey too;
 * or a passkey alone that verifies them. A code is spent only after the password was right, so a mistyped password does not cost a code.
 */
export function createPageProof (
  { identity }: FastifyInstance,
  { getIssuer, limits, limitWrites, now }: Pick<AccountMount, 'getIssuer' | 'limits' | 'limitWrites' | 'now'>
) {
  const { users, ways, factors, passkeys } = identity
  const browsers = createBrowserCookies(identity, getIssuer)

  /** Proves by a passkey. @throws ErrParam unless it verifies the person, or they have typed the password too */
  async function provePasskey (visit: Visit, assertion: string, isAlone: boolean): Promise<Proof[]> {
    const verified = await passkeys.verify('confirm', toPageSecret(visit), assertion, visit.user.user_id)
    if ('refused' in verified) throw paramError('passkey', 'is wrong')
    const { id: way, uv } = verified
    if (isAlone && !uv) throw paramError('passkey', UNVERIFIED)
    return [{ way, kind: 'passkey', uv, at: toTimestamp(now()) }]
  }

  /** @throws ErrParam for a password that is too long, ErrLimit */
  async function read (request: FastifyRequest, visit: Visit): Promise<FormProof> {
    const { user: { user_id, account, hasPassword, hasPasskey } } = visit
    const [password, typed, assertion] = [readField(request, 'current_password'), readField(request, 'code').trim(), readField(request, ASSERTION)]
    await limits.guess(request, account, browsers.find(request, account))
    await limitWrites(user_id)
    if (countCharacters(password) > LIMITS.password) throw paramError('current_password', 'is wrong')
    const isAlone = assertion !== '' && password === ''
    // They have signed in with another provider just now: the sign-in is the proof (lib/ways/evidence.ts).
    if (!hasPassword && !hasPasskey) return { password: undefined, proveMore: async () => [] }
    return {
      password: isAlone ? undefined : password,
      async proveMore (record) {
        if (assertion !== '') return await provePasskey(visit, assertion, isAlone)
        if (!await ways.hasFactor(record)) return []
        const digits = typed.replaceAll(' ', '')
        const kind = /^\d{6}$/.test(digits) ? 'totp' : 'recovery'
        if (typed === '' || typed.length > CODE_LENGTH) throw paramError('code', 'is wrong')
        const way = await (kind === 'totp' ? factors.verifyTotp(user_id, digits) : factors.verifyCode(user_id, typed, visit.actor.signal))
        if (way === null) throw paramError('code', 'is wrong')
        return [{ way, kind, at: toTimestamp(now()) }]
      }
    }
  }

  return {
    read,

    /** Requires the proof. @returns what was proved, and the check for the write. @throws RestrictedError, ErrParam, ErrLimit */
    async require (request: FastifyRequest, visit: Visit, options: Pick<Brought, 'mayBeRestricted'> = {}): Promise<Confirmed> {
      return await users.confirm(visit.actor, { ...await read(request, visit), ...options })
    }
  }
}
