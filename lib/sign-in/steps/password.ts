import { LIMITS } from '../../../schemas/common.ts'
import type { Users } from '../../users/users.ts'
import { PASSWORD } from '../../way.ts'
import type { Step } from './step.ts'

/** The account and its password. */
export function createPasswordStep (users: Pick<Users, 'signIn'>): Step {
  return {
    kind: 'password',
    page: 'sign-in',
    isOpen: ({ password }) => Boolean(password),
    async verify ({ form, turn, limit }) {
      const account = (form.get('account') ?? '').trim()
      const password = form.get('password') ?? ''
      const known = await limit(account)
      const found = await users.signIn(account, password, turn, known)
      // The same reason for an unknown account, a wrong password, and a disabled or expired user.
      if (found === null) return { refused: { reason: 'wrong-password', account: account.slice(0, LIMITS.account) } }
      return { passed: { user_id: found.user_id, user_epoch: found.epoch, way: PASSWORD, account } }
    }
  }
}
