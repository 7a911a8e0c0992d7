import type { Reason } from '../../../schemas/reason.ts'
import type { Proof } from '../../proofs.ts'
import type { UserRecord } from '../../records/user.ts'
import type { Turn } from '../../fair-queue.ts'
import type { MaybePromise } from '../../store/port.ts'
import type { Enrolling, EnrolmentView } from '../../ways/enrolments.ts'
import type { KnownBrowser } from '../../throttling/known-browsers.ts'

/** The user that a sign-in has identified so far, and what they have proved. */
export interface Progress {
  user_id: string
  /** The user's epoch when the first step was passed: a password change since then ends the sign-in. */
  user_epoch: number
  /** The account as it was typed at the step of the password; '' without one. */
  account: string
  proofs: Proof[]
  /** The factor that they are adding. */
  enrolling?: Enrolling
  /** The enrolment whose link the browser carries. It is read for an enrolment only. */
  link?: string
}

/** A sign-in that came to nothing after its first step. */
export interface RefusedSignIn extends Pick<Progress, 'user_id' | 'user_epoch' | 'proofs'> {
  /** `ended`: the user, or what they have proved, does not stand any more. */
  reason: Reason | 'ended'
  /** The kind of step that was tried. Absent: the judgement after the last step refuses it. */
  kind?: Proof['kind']
}

/** What the page of a step that adds a factor shows: why one is needed, or the enrolment that has begun. */
export type EnrolView = { at: 'why' } | EnrolmentView

/** A submitted form, as a step receives it. */
export interface Attempt {
  form: URLSearchParams
  /** The turn in the queue for a hash. */
  turn: Turn
  /**
   * Counts an attempt for the account. The step calls it before it verifies anything. From the second step on it counts for the user.
   * @returns the entry of the browser's cookie for the account
   * @throws ErrLimit
   */
  limit (account: string): Promise<KnownBrowser | undefined>
}

/**
 * Why a form is refused. The page has the text for it, in each language. `ended`: the sign-in has to begin again, because the user or one
 * of their ways has changed. `missing`: the user needs a second factor, has none, and adds one only with a link. `too-many`: too many codes were wrong.
 * `only`: the user signs in by an upstream, and by nothing else. `stale`: another provider has not said when they proved it, and the request
 * asks for it, or what follows does.
 */
export type Refusal = 'wrong-password' | 'wrong-passkey' | 'wrong-code' | 'too-many' | 'ended' | 'missing' | 'only' | 'stale'

/** What a step has proved: by which way, and of whom. Only the first step of a sign-in determines the user. */
export interface Passed extends Pick<Progress, 'user_id' | 'user_epoch'>, Pick<Proof, 'way' | 'uv'> {
  account?: string
}

/**
 * What the step has proved, or the reason for a refusal, or its next page; or that the codes were kept, which proves nothing. A refused step is
 * shown again, with `account` filled in; after `ended`, `missing` and `too-many` the first one. `unknown` is the id of a passkey that no
 * user has, which the browser may forget.
 */
export type Verdict =
  | { passed: Passed }
  | { refused: { reason: Refusal, account?: string, upstream?: string, unknown?: string } }
  | { shown: EnrolView, enrolling?: Enrolling }
  | { kept: true }

/** One step of a sign-in: a form, and the verification of its input. */
export interface Step {
  /** The kind of proof. The alternatives at one place of the order have different ones. */
  readonly kind: Proof['kind']
  /** The page with its form (lib/pages/contract.ts). */
  readonly page: 'sign-in' | 'second-step' | 'enrol'
  /** Whether this user can take it, once they are known. Absent: all users can. */
  isOpen? (user: UserRecord): MaybePromise<boolean>
  /** What the page of a step with several pages shows. */
  show? (progress: Progress): Promise<EnrolView>
  /**
   * @param progress the result of the earlier steps; null for the first step
   * @param secret identifies the sign-in, and is known to its browser only
   */
  verify (attempt: Attempt, progress: Progress | null, secret: string): Promise<Verdict>
}

/** The alternatives at one place in the order of steps. The first one that is open is shown; the person may choose another one. */
export type Slot = readonly [Step, ...Step[]]
