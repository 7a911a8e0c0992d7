import type { Base } from '../base.ts'
import { type Proof, toStrength } from '../proofs.ts'
import type { UserRecord } from '../records/user.ts'
import { FRESH } from '../ways/evidence.ts'
import type { Judgement } from './may-sign-in.ts'
import { meets } from '../ways/step-up.ts'
import { beginsSignIn } from '../ways/words.ts'
import type { Slot, Progress, Step } from './steps/step.ts'

/** The steps of a sign-in. */
export interface SignInSteps {
  /** The order of the steps: those that begin a sign-in, then those that only come second. */
  places: readonly [Slot, ...Slot[]]
  /** The steps that add a factor, for a person of whom one is demanded and who has none. */
  enrolments?: readonly Step[] | undefined
  /** A step after everything is proved, for those who need it: it proves nothing. */
  closing?: Step | undefined
  /** Whether proofs came only of ways that are for some clients: these add no way with which a sign-in begins. Absent: never. */
  areRestricted?: ((proofs: readonly Proof[], user: UserRecord) => boolean) | undefined
}

/** Creates the function that finds the steps with which a sign-in can go on after a judgement. */
export function createOpenSteps (
  { places: [first, ...later], enrolments = [], closing, areRestricted = () => false, now }: SignInSteps & Pick<Base, 'now'>
) {
  /** The steps that a user can take. */
  async function listOpenOf (steps: readonly Step[], user: UserRecord): Promise<readonly Step[]> {
    const open: Step[] = []
    for (const step of steps) if (await (step.isOpen?.(user) ?? true)) open.push(step)
    return open
  }

  /**
   * The steps that add a factor. An old session is not enough to begin. After an administrator's reset, the password is not enough either:
   * the browser carries the link that was sent to the user.
   */
  async function listEnrolments (
    { user, standing }: Extract<Judgement, { because: 'missing' }>, { enrolling, link }: Progress
  ): Promise<readonly Step[]> {
    // Who has nothing else but an identity at another provider begins with its answer, also where it does not say when.
    const counting = user.password ? standing : standing.map(({ undated: _undated, ...proof }) => proof)
    const isFresh = enrolling !== undefined || (standing.length > 0 && meets(toStrength(counting), { maxAge: FRESH }, now()))
    const isLinked = user.enrol_ticket === undefined || user.enrol_ticket === link
    const steps = areRestricted(standing, user) ? enrolments.filter(({ kind }) => kind !== 'passkey') : enrolments
    return isFresh && isLinked && standing.some(beginsSignIn) ? await listOpenOf(steps, user) : []
  }

  /** The steps that can add what is missing, at the first place that has any. */
  return async function listOpen (judged: Judgement, progress: Progress): Promise<readonly Step[]> {
    if (judged.may) return closing !== undefined && await closing.isOpen?.(judged.user) === true ? [closing] : []
    if (judged.because === 'missing') return await listEnrolments(judged, progress)
    if (judged.because !== 'below') return []
    const { user, demanded, standing } = judged
    const isBegun = standing.some(beginsSignIn)
    for (const place of isBegun ? later : [first]) {
      const useful = place.filter(({ kind }) => (
        standing.every((proof) => proof.kind !== kind) && (!isBegun || demanded !== 'phr' || kind === 'passkey')))
      const open = await listOpenOf(useful, user)
      if (open.length > 0) return open
    }
    return []
  }
}
