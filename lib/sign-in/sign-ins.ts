import type { Judgement, MaySignIn } from '../ways/may-sign-in.ts'
import type { Acr, Proof, Strength } from '../proofs.ts'
import { type Clock, toTimestamp } from '../clock.ts'
import type { Store } from '../store/port.ts'
import { createCarriedLinks } from './carried-links.ts'
import { type SignInSteps, createOpenSteps } from './open-steps.ts'
import { MOST_WRONG, createProgress } from './progress.ts'
import type { Attempt, EnrolView, Progress, Step, Verdict } from './steps/step.ts'

/** The name by which attempts from the second step on are counted. Nobody can type it: what is typed is trimmed. */
const toUserName = (user_id: string): string => ` user ${user_id}`

/** A sign-in after its last step. */
export interface SignedIn extends Progress {
  strength: Strength
}

/** What a link or another provider has proved: at `at`, or now. */
export type Proved = Pick<Progress, 'user_id' | 'user_epoch'> & Omit<Proof, 'at'> & Partial<Pick<Proof, 'at'>>

/** What a sign-in is for. */
export interface SignInAim {
  client_id?: string | undefined
  /** The strength that the request asks for. */
  acr?: Acr | undefined
  /** What the browser's session has proved already: the sign-in only adds what is missing. Absent: it asks for all. */
  base?: Progress | undefined
  /** The kind of proof that the person has chosen, if they have. */
  choice?: string | undefined
}

/** The step to show, and the other kinds of proof that the person may choose instead. */
export interface Located {
  step: Step
  others: Step['kind'][]
  /** What was proved before; null at the first step. */
  progress: Progress | null
  /** What the page shows of a step with several pages. */
  view?: EnrolView
}

/**
 * The result of a form: a sign-in, another step, the same step again after one that has failed, or that the user cannot prove as much as the request asks for.
 */
export type Outcome =
  | { done: SignedIn }
  | { next: Located }
  | { again: Located, refused: Extract<Verdict, { refused: unknown }>['refused'], failed: Step['kind'] }
  | { unmet: true }

/** Where a sign-in is: what counts of its progress, and the steps that it can go on with. */
type Stage = { progress: Progress | null, open: readonly Step[], isStored: boolean }

/**
 * Signs users in step by step. The proofs of a browser are in the store, never in the browser. Nothing is stored for a sign-in with
 * a single step. After each step, `maySignIn` judges whether another one is needed.
 * @param onDone called with the user and what they proved after the last step, before the sign-in is answered
 */
export function createSignIns ({ store, now, places, enrolments, closing, areRestricted, maySignIn, onDone = async () => {} }: SignInSteps & {
  store: Store
  now: Clock
  maySignIn: MaySignIn
  onDone?: (user_id: string, proofs: readonly Proof[]) => Promise<void>
}) {
  const progresses = createProgress({ store, now })
  const links = createCarriedLinks({ store, now })
  const listOpen = createOpenSteps({ places, enrolments, closing, areRestricted, now })
  const start: Stage = { progress: null, open: places[0], isStored: false }

  const judge = async ({ user_id, user_epoch: epoch, proofs }: Progress, { client_id, acr }: SignInAim) => (
    await maySignIn({ user_id, epoch, proofs, client_id, acr }))

  /** The stage of a browser. It starts again if what it has proved is not enough to go on with, or needs nothing more. */
  async function locate (secret: string, aim: SignInAim): Promise<Stage> {
    const record = await progresses.load(secret)
    const again = { ...start, isStored: record !== null }
    const progress = progresses.find(record, aim.base)
    if (progress === null) return again
    const judged = await judge(progress, aim)
    // A session that suffices begins another sign-in.
    const isProved = judged.may && record !== null && record.proofs.length > 0
    if (!isProved && !('standing' in judged)) return again
    const reached = await withLink(secret, judged, progress)
    const open = await listOpen(judged, reached)
    // Only what still stands, so that a session does not collect proofs.
    return open.length === 0 ? again : { ...again, progress: { ...reached, ...('standing' in judged && { proofs: judged.standing }) }, open }
  }

  /** The progress with the link that the browser carries, where a factor can be added only with one. */
  async function withLink (secret: string, judged: Judgement, progress: Progress): Promise<Progress> {
    const isNeeded = !judged.may && judged.because === 'missing' && judged.user.enrol_ticket !== undefined
    const link = isNeeded ? await links.findLink(secret) : undefined
    return link === undefined ? progress : { ...progress, link }
  }

  /** The step of a stage that the person has chosen, or else the first one. */
  function choose ({ progress, open }: Pick<Stage, 'open' | 'progress'>, choice?: string): Located {
    const step = open.find(({ kind }) => kind === choice) ?? open[0]!
    return { step, others: open.filter((other) => other !== step).map(({ kind }) => kind), progress }
  }

  /** The same, with what its page shows. */
  async function show (stage: Pick<Stage, 'open' | 'progress'>, choice?: string): Promise<Located> {
    const located = choose(stage, choice)
    const view = stage.progress === null ? undefined : await located.step.show?.(stage.progress)
    return { ...located, ...(view && { view }) }
  }

  async function forget (secret: string, isStored: boolean): Promise<void> {
    if (isStored) await progresses.remove(secret)
  }

  /** Goes on to the next step, or completes the sign-in. */
  async function advance (secret: string, reached: Progress, aim: SignInAim, isStored: boolean): Promise<Outcome> {
    const judged = await judge(reached, aim)
    const progress = await withLink(secret, judged, reached)
    const open = await listOpen(judged, progress)
    if (open.length > 0) {
      await progresses.put(secret, reached)
      // As long as the step that it is for.
      if (progress.link !== undefined) await links.carryLink(secret, progress.link)
      return { next: await show({ open, progress }) }
    }
    await forget(secret, isStored)
    if (judged.may) {
      await onDone(reached.user_id, reached.proofs)
      return { done: { ...reached, strength: judged.strength } }
    }
    if (judged.because === 'unmet') return { unmet: true }
    if (judged.because === 'only') return { again: choose(start), refused: { reason: 'only', upstream: judged.upstream }, failed: reached.proofs.at(-1)!.kind }
    return { again: choose(start), refused: { reason: judged.because === 'missing' ? 'missing' : 'ended' }, failed: reached.proofs.at(-1)!.kind }
  }

  /** Stays at a step, which goes on with another page. */
  async function stay (
    secret: string, link: string | undefined, located: Located, { shown: view, enrolling }: Extract<Verdict, { shown: unknown }>
  ): Promise<Outcome> {
    if (link !== undefined) await links.carryLink(secret, link)
    return { next: await progresses.stay(secret, enrolling) ? { ...located, view } : choose(start) }
  }

  /** Verifies the form of a later step. Null when the sign-in has ended meanwhile. */
  async function verifyLater (secret: string, { progress, isStored }: Stage, step: Step, attempt: Attempt): Promise<Verdict | null> {
    const { user_id } = progress!
    const wrong = await progresses.countForm(secret, progress!, isStored)
    if (wrong === null) return null
    if (wrong > MOST_WRONG) return { refused: { reason: 'too-many' } }
    try {
      const verified = await step.verify({ ...attempt, limit: async () => await attempt.limit(toUserName(user_id)) }, progress, secret)
      // Only the first step determines the user: with the password of another account nobody goes on.
      const verdict: Verdict = 'passed' in verified && verified.passed.user_id !== user_id ? { refused: { reason: 'wrong-password' } } : verified
      return 'refused' in verdict && wrong === MOST_WRONG ? { refused: { reason: 'too-many' } } : verdict
    } catch (error) {
      await progresses.discountForm(secret)
      throw error
    }
  }

  return {
    /**
     * The current step of a browser.
     * @param secret identifies the sign-in: long, random, and known to this browser only
     */
    async find (secret: string, aim: SignInAim = {}): Promise<Located> {
      return await show(await locate(secret, aim), aim.choice)
    },

    /**
     * Verifies the form of the browser's current step.
     * @throws ErrLimit, and the errors of the step
     */
    async submit (secret: string, attempt: Attempt, aim: SignInAim = {}): Promise<Outcome> {
      const stage = await locate(secret, aim)
      const { progress, isStored } = stage
      const located = choose(stage, aim.choice)
      const { step } = located
      // The form of a step that is not due any more.
      if (aim.choice !== undefined && step.kind !== aim.choice) return { next: await show(stage) }
      const verdict = progress === null ? await step.verify(attempt, null, secret) : await verifyLater(secret, stage, step, attempt)
      if (verdict === null) return { next: choose(start) }
      if ('shown' in verdict) return await stay(secret, progress?.link, located, verdict)
      if ('refused' in verdict) {
        const { refused } = verdict
        const isEnded = refused.reason === 'ended' || refused.reason === 'missing'
        if (isEnded) await forget(secret, true)
        const isOver = isEnded || refused.reason === 'too-many'
        return { again: isOver ? choose(start) : await show(stage, aim.choice), refused, failed: step.kind }
      }
      if ('kept' in verdict) return await advance(secret, progress!, aim, true)
      const { user_id, user_epoch, way, uv, account = '' } = verdict.passed
      const proof: Proof = { way, kind: step.kind, ...(uv !== undefined && { uv }), at: toTimestamp(now()) }
      // The first step determines the user.
      const reached = progress === null
        ? { user_id, user_epoch, account, proofs: [proof] }
        : { user_id: progress.user_id, user_epoch: progress.user_epoch, account: progress.account || account, proofs: [...progress.proofs, proof] }
      return await advance(secret, reached, aim, isStored || progress !== null)
    },

    /** Goes on with the steps after those that a link or another provider has proved. It replaces what the browser has proved before. */
    async proceed (secret: string, { user_id, user_epoch, ...proof }: Proved, aim: SignInAim = {}): Promise<Outcome> {
      const reached = { user_id, user_epoch, account: '', proofs: [{ at: toTimestamp(now()), ...proof }] }
      return await advance(secret, reached, aim, await progresses.load(secret) !== null)
    },

    /** Deletes the browser's progress. */
    async cancel (secret: string): Promise<void> {
      await forget(secret, await progresses.load(secret) !== null)
    },

    ...links
  }
}

export type SignIns = ReturnType<typeof createSignIns>
