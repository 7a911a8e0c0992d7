import { readAssertion } from '../../ways/passkey-messages.ts'
import type { Passkeys } from '../../ways/passkeys.ts'
import type { Progress, Step, Verdict } from './step.ts'

/** The field of a form with the answer of an authenticator. */
export const ASSERTION = 'assertion'

/** The name by which attempts to begin a sign-in with a passkey are counted. Nobody can type it: what is typed is trimmed. */
const toName = (text: string): string => ` passkey ${readAssertion(text)?.id ?? ''}`

/** A passkey: it begins a sign-in, or comes second. */
export function createPasskeyStep ({ verify, has }: Pick<Passkeys, 'verify' | 'has'>): { first: Step, later: Step } {
  const create = (isFirst: boolean): Step => ({
    kind: 'passkey',
    page: isFirst ? 'sign-in' : 'second-step',
    isOpen: has,
    async verify ({ form, limit }, progress: Progress | null, secret: string): Promise<Verdict> {
      // It identifies the user, unless they are known: then only theirs count.
      if (!isFirst && progress === null) return { refused: { reason: 'ended' } }
      const text = form.get(ASSERTION) ?? ''
      await limit(progress === null ? toName(text) : progress.account)
      const verified = await verify(isFirst ? 'begin' : 'second', secret, text, progress?.user_id)
      // The same reason for an unknown, removed and foreign passkey, a disabled user, another site, and a page that was open for too long.
      if ('refused' in verified) return { refused: { reason: 'wrong-passkey', unknown: verified.unknown } }
      const { user, id, uv } = verified
      return { passed: { user_id: user.id, user_epoch: progress?.user_epoch ?? user.epoch, way: id, uv } }
    }
  })
  return { first: create(true), later: create(false) }
}
