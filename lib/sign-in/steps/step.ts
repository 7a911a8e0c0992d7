import type { Turn } from '../../fair-queue.ts'
import type { MaybePromise } from '../../store/port.ts'
import type { KnownBrowser } from '../../throttling/known-browsers.ts'

/** The user that a sign-in has identified so far, and the methods. */
export interface Progress {
  user_id: string
  /** The user's epoch when the first step was passed: a password change since then ends the sign-in. */
  user_epoch: number
  /** The methods used so far (RFC 8176). */
  amr: string[]
}

/** A submitted form, as a step receives it. */
export interface Attempt {
  form: URLSearchParams
  /** The turn in the queue for a hash. */
  turn: Turn
  /**
   * Counts an attempt for the account. The step calls it before it verifies anything.
   * @returns the entry of the browser's cookie for the account
   * @throws ErrLimit
   */
  limit (account: string): Promise<KnownBrowser | undefined>
}

/** Why a step refuses a form. The page has the text for it, in each language. */
export type Refusal = 'wrong-password'

/** The user that the step has identified, or the reason for a refusal. A refused step is shown again, with `account` filled in. */
export type Verdict = { passed: Pick<Progress, 'user_id' | 'user_epoch'> } | { refused: { reason: Refusal, account?: string } }

/** One step of a sign-in: a form, and the verification of its input. */
export interface Step {
  /** The authentication method of the step (RFC 8176). Each step has a different one. */
  readonly amr: string
  /** The page with its form (lib/pages/contract.ts). */
  readonly page: 'sign-in'
  /** Whether the user needs this step after the earlier ones. Absent: all users do. */
  isDue? (progress: Progress | null): MaybePromise<boolean>
  /** @param progress the result of the earlier steps; null for the first step */
  verify (attempt: Attempt, progress: Progress | null): Promise<Verdict>
}
