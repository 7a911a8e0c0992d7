import type { StepPage, StepView } from '../../pages/contract.ts'
import type { Message } from '../../pages/texts/en.ts'
import type { Turn } from '../../fair-queue.ts'
import type { MaybePromise } from '../../store/port.ts'
import type { KnownBrowser } from '../known-browsers.ts'

/** Who a sign-in has proved so far, and how. */
export interface Progress {
  user_id: string
  /** The user's epoch when the first step was passed: a password change since then ends the sign-in. */
  user_epoch: number
  /** The methods that were used (RFC 8176). */
  amr: string[]
}

/** A form that was sent, as a step sees it. */
export interface Attempt {
  form: URLSearchParams
  /** Who shares the wait for a hash. */
  turn: Turn
  /**
   * Counts an attempt for the account, before the step verifies anything.
   * @returns what the browser's cookie says about the account
   * @throws ErrLimit
   */
  limit (account: string): Promise<KnownBrowser | undefined>
}

/** Whom the step has proved, or why it has not. A refused step is shown again with the fields of `view`. */
export type Verdict = { passed: Pick<Progress, 'user_id' | 'user_epoch'> } | { refused: { error: Message } & Pick<StepView, 'account'> }

/** One question of a sign-in: a form, and the check of its answer. */
export interface Step {
  /** The method that passing it proves (RFC 8176). No two steps have the same. */
  readonly amr: string
  /** The page with its form. */
  readonly page: StepPage
  /** Whether a user who has got this far needs it. Absent: everybody does. */
  isDue? (progress: Progress | null): MaybePromise<boolean>
  /** @param progress what the steps before have proved; null for the first */
  verify (attempt: Attempt, progress: Progress | null): Promise<Verdict>
}
