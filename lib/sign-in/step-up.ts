import { toTimestamp } from '../clock.ts'
import { beginsSignIn } from '../ways/words.ts'
import type { Progress } from './steps/step.ts'

/** Milliseconds for which a proof can be added to: 12 hours. */
const RECENT = 12 * 60 * 60_000

/**
 * What a step-up adds to: the recent proofs of a browser's session. Undefined if none of them begins a sign-in: then it asks for all.
 */
export function toBase (
  { user_id, user_epoch, proofs }: Pick<Progress, 'user_id' | 'user_epoch' | 'proofs'>, now: number
): Progress | undefined {
  const recent = proofs.filter(({ at }) => at >= toTimestamp(now - RECENT))
  return recent.some(beginsSignIn) ? { user_id, user_epoch, account: '', proofs: recent } : undefined
}
