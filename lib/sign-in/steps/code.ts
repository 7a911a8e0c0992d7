import type { UserRecord } from '../../records/user.ts'
import type { Factors } from '../../ways/factors.ts'
import type { Progress, Step, Verdict } from './step.ts'

/** The most characters of a typed code: a recovery code of an earlier release with its hyphens, and some spaces. */
export const CODE_LENGTH = 64

/** A step that comes second: a code of the user whom the first step has identified. */
function createCodeStep (
  kind: Step['kind'], verifyCode: (user_id: string, code: string, signal?: AbortSignal) => Promise<string | null>, isLeft = async (_user: UserRecord) => true
): Step {
  return {
    kind,
    page: 'second-step',
    isOpen: async (user) => Object.values(user.ways ?? {}).some((way) => way.kind === kind) && await isLeft(user),
    async verify ({ form, turn, limit }, progress: Progress | null): Promise<Verdict> {
      if (progress === null) return { refused: { reason: 'ended' } }
      await limit(progress.account)
      const code = (form.get('code') ?? '').trim()
      const way = code.length > CODE_LENGTH ? null : await verifyCode(progress.user_id, code, turn.signal)
      if (way === null) return { refused: { reason: 'wrong-code' } }
      return { passed: { user_id: progress.user_id, user_epoch: progress.user_epoch, way } }
    }
  }
}

/** The code that an authenticator app shows. */
export const createTotpStep = ({ verifyTotp }: Pick<Factors, 'verifyTotp'>): Step => (
  createCodeStep('totp', async (user_id, code) => await verifyTotp(user_id, code.replaceAll(' ', ''))))

/** One of the recovery codes, while any is left. */
export const createRecoveryStep = ({ verifyCode, hasCodes }: Pick<Factors, 'verifyCode' | 'hasCodes'>): Step => (
  createCodeStep('recovery', verifyCode, hasCodes))
