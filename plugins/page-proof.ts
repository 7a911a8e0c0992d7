import type { FastifyInstance, FastifyRequest } from 'fastify'
import { countCharacters } from '../lib/checks.ts'
import { toTimestamp } from '../lib/clock.ts'
import { paramError } from '../lib/errors.ts'
import type { Proof } from '../lib/proofs.ts'
import { CODE_LENGTH } from '../lib/sign-in/steps/code.ts'
import type { ProveMore } from '../lib/users/confirm.ts'
import { LIMITS } from '../schemas/common.ts'
import type { AccountMount, Visit } from './account.ts'
import { createBrowserCookies } from './known-browsers.ts'
import { readField } from './sign-in-forms.ts'

/** What a form brings as a proof. */
export interface FormProof {
  password: string
  proveMore: ProveMore
}

/**
 * The proof that a form of the account pages asks for: the current password, and of a person with a second factor a code too. The code is
 * spent only after the password was right, so a mistyped password does not cost a code.
 */
export function createPageProof (
  { identity: { users, ways, factors, knownBrowsers } }: FastifyInstance,
  { getIssuer, limits, limitWrites, now }: Pick<AccountMount, 'getIssuer' | 'limits' | 'limitWrites' | 'now'>
) {
  const browsers = createBrowserCookies(knownBrowsers, getIssuer)

  /** @throws ErrParam for a password that is too long, ErrLimit */
  async function read (request: FastifyRequest, { user: { user_id, account } }: Visit): Promise<FormProof> {
    const [password, typed] = [readField(request, 'current_password'), readField(request, 'code').trim()]
    await limits.guess(request, account, browsers.find(request, account))
    await limitWrites(user_id)
    if (countCharacters(password) > LIMITS.password) throw paramError('current_password', 'is wrong')
    return {
      password,
      async proveMore (record) {
        if (!await ways.hasFactor(record)) return []
        const digits = typed.replaceAll(' ', '')
        const kind = /^\d{6}$/.test(digits) ? 'totp' : 'recovery'
        if (typed === '' || typed.length > CODE_LENGTH) throw paramError('code', 'is wrong')
        const way = await (kind === 'totp' ? factors.verifyTotp(user_id, digits) : factors.verifyCode(user_id, typed))
        if (way === null) throw paramError('code', 'is wrong')
        return [{ way, kind, at: toTimestamp(now()) }]
      }
    }
  }

  return {
    read,

    /** Requires the proof. @returns what was proved. @throws ErrParam, ErrLimit */
    async require (request: FastifyRequest, visit: Visit): Promise<readonly Proof[]> {
      return await users.confirm(visit.actor, await read(request, visit))
    }
  }
}
