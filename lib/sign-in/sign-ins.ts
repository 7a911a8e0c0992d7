import type { Judgement, MaySignIn } from './may-sign-in.ts'
import type { Acr, Proved, Strength } from '../proofs.ts'
import type { Base } from '../base.ts'
import { toTimestamp } from '../clock.ts'
import { defined } from '../defined.ts'
import { toUserName } from '../throttling/account-limits.ts'
import { IdentityError } from '../errors.ts'
import { nameClient } from '../events/origin.ts'
import { createCarriedLinks } from './carried-links.ts'
import { type SignInSteps, createOpenSteps } from './open-steps.ts'
import { MOST_WRONG, createProgress } from './progress.ts'
import type { Attempt, EnrolView, Passed, Progress, RefusedSignIn, Step, Verdict } from './steps/step.ts'

/** A sign-in after its last step. */
export interface SignedIn extends Progress {
  strength: Strength
}

/** What a sign-in is for. */
export interface SignInRequest {
  client_id?: string | undefined
  /** The strength that the request asks for. */
  acr?: Acr | undefined
  /** The time since when all must have been proved: ISO 8601. */
  since?: string | undefined
  /** Whether somebody without a second factor adds one within the sign-in, where `mfa` is asked for. */
  enrols?: boolean | undefined
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
 * The result of a form.
 * - `done`: the sign-in is complete.
 * - `next`: another step follows.
 * - `again`: the form was refused, and its step is shown again.
 * - `unmet`: the user cannot prove as much as the request asks for.
 */
export type Outcome =
  | { done: SignedIn }
  | { next: Located }
  | { again: Located, refused: Extract<Verdict, { refused: unknown }>['refused'], failed: Step['kind'] }
  | { unmet: true }

/**
 * Where a sign-in is: what counts of its progress, and the steps that it can go on with. `fallen`: what was proved does not stand any more, so
 * it starts again.
 */
type Stage = { progress: Progress | null, open: readonly [Step, ...Step[]], isStored: boolean, fallen?: RefusedSignIn }

/** Why a sign-in with no step left is refused. */
function explain (judged: Exclude<Judgement, { may: true }>): 'missing' | 'ended' | 'stale' {
  if (judged.because === 'below' && judged.isLate === true) return 'stale'
  if (judged.because !== 'missing') return 'ended'
  return judged.user.password && judged.standing.some(({ undated }) => undated === true) ? 'stale' : 'missing'
}

/** The same as events say it. */
const REASONS = { missing: 'factor_missing', ended: 'ended', stale: 'stale', only: 'only_upstream', unmet: 'acr_unmet' } as const

/** A form of a later step: whether something is stored of its sign-in, and what that is for. */
interface LaterForm {
  isStored: boolean
  asked: SignInRequest
}

interface SignInParts extends SignInSteps, Pick<Base, 'store' | 'now'> {
  maySignIn: MaySignIn
  onDone?: ((done: SignedIn, asked: SignInRequest) => Promise<void>) | undefined
  onRefused?: ((refused: RefusedSignIn, asked: SignInRequest) => void) | undefined
}

/** The step of a stage that the person has chosen, or else the first one. */
function choose ({ progress, open }: Pick<Stage, 'open' | 'progress'>, choice?: string): Located {
  const step = open.find(({ kind }) => kind === choice) ?? open[0]
  return { step, others: open.filter((other) => other !== step).map(({ kind }) => kind), progress }
}

/** What has been proved after a step. The first one determines the user. */
function toReached (progress: Progress | null, { user_id, user_epoch, way, uv, account = '' }: Passed, kind: Step['kind'], at: string): Progress {
  const proof = defined({ way, kind, uv, at })
  if (progress === null) return { user_id, user_epoch, account, proofs: [proof] }
  return {
    user_id: progress.user_id, user_epoch: progress.user_epoch, account: progress.account || account, proofs: [...progress.proofs, proof]
  }
}

const hasAny = (steps: readonly Step[]): steps is readonly [Step, ...Step[]] => steps.length > 0

/** Finds where a browser is in its sign-in, and judges what it has proved. */
function createStages ({ progresses, links, listOpen, maySignIn, start }: {
  progresses: ReturnType<typeof createProgress>
  links: ReturnType<typeof createCarriedLinks>
  listOpen: ReturnType<typeof createOpenSteps>
  maySignIn: MaySignIn
  start: Stage
}) {
  const judge = async ({ user_id, user_epoch: epoch, proofs }: Progress, { client_id, acr, since, enrols }: SignInRequest) => (
    await maySignIn({ user_id, epoch, proofs, client_id, acr, since, enrols }))

  /** The stage of a browser. It starts again if what it has proved is not enough to go on with, or needs nothing more. */
  async function locate (secret: string, asked: SignInRequest): Promise<Stage> {
    const record = await progresses.load(secret)
    const again = { ...start, isStored: record !== null }
    const progress = progresses.find(record, asked.base)
    if (progress === null) return again
    const judged = await judge(progress, asked)
    // A session that suffices begins another sign-in.
    const isBegun = record !== null && record.proofs.length > 0
    if (isBegun && !judged.may && judged.because === 'ended') return { ...again, fallen: { ...progress, reason: judged.reason } }
    if (!(judged.may && isBegun) && !('standing' in judged)) return again
    const reached = await withLink(secret, judged, progress)
    const open = await listOpen(judged, reached)
    if (!hasAny(open)) return again
    // Only what still stands, so that a session does not collect proofs.
    const proofs = 'standing' in judged ? judged.standing : reached.proofs
    return { ...again, progress: { ...reached, proofs }, open }
  }

  /** The progress with the link that the browser carries, where a factor can be added only with one. */
  async function withLink (secret: string, judged: Judgement, progress: Progress): Promise<Progress> {
    const isNeeded = !judged.may && judged.because === 'missing' && judged.user.enrol_ticket !== undefined
    const link = isNeeded ? await links.findLink(secret) : undefined
    return link === undefined ? progress : { ...progress, link }
  }

  /** The step of a stage, with what its page shows. */
  async function show (stage: Pick<Stage, 'open' | 'progress'>, choice?: string): Promise<Located> {
    const located = choose(stage, choice)
    const view = stage.progress === null ? undefined : await located.step.show?.(stage.progress)
    return view === undefined ? located : { ...located, view }
  }

  return { judge, withLink, locate, show }
}

/**
 * Signs users in step by step. The proofs of a browser are in the store, never in the browser. Nothing is stored for a sign-in with
 * a single step. After each step, `maySignIn` judges whether another one is needed.
 * @param onDone called after the last step, before the sign-in is answered
 * @param onRefused called when a sign-in has come to nothing after its first step
 */
export function createSignIns (parts: SignInParts) {
  const { now, places, onDone = async () => {}, onRefused = () => {} } = parts
  const progresses = createProgress(parts)
  const links = createCarriedLinks(parts)
  const listOpen = createOpenSteps(parts)
  const start: Stage = { progress: null, open: places[0], isStored: false }

  const { judge, withLink, locate, show } = createStages({ ...parts, progresses, links, listOpen, start })

  async function forget (secret: string, isStored: boolean): Promise<void> {
    if (isStored) await progresses.remove(secret)
  }

  /** Goes on to the next step, or completes the sign-in. */
  async function advance (secret: string, reached: Progress, asked: SignInRequest, isStored: boolean): Promise<Outcome> {
    const judged = await judge(reached, asked)
    const progress = await withLink(secret, judged, reached)
    const open = await listOpen(judged, progress)
    if (hasAny(open)) {
      await progresses.put(secret, reached)
      // As long as the step that it is for.
      if (progress.link !== undefined) await links.carryLink(secret, progress.link)
      return { next: await show({ open, progress }) }
    }
    await forget(secret, isStored)
    if (judged.may) {
      const done = { ...reached, strength: judged.strength }
      await onDone(done, asked)
      return { done }
    }
    const because = judged.because === 'unmet' || judged.because === 'only' ? judged.because : explain(judged)
    onRefused({ ...reached, reason: REASONS[because] }, asked)
    if (judged.because === 'unmet') return { unmet: true }
    const refused = judged.because === 'only' ? { reason: judged.because, upstream: judged.upstream } : { reason: explain(judged) }
    return { again: choose(start), refused, failed: reached.proofs.at(-1)?.kind ?? 'password' }
  }

  /** Stays at a step, which goes on with another page. */
  async function stay (
    secret: string, link: string | undefined, located: Located, { shown: view, enrolling }: Extract<Verdict, { shown: unknown }>
  ): Promise<Outcome> {
    if (link !== undefined) await links.carryLink(secret, link)
    return { next: await progresses.stay(secret, enrolling) ? { ...located, view } : choose(start) }
  }

  /** Verifies the form of a later step. Null when the sign-in has ended meanwhile. */
  async function verifyLater (secret: string, progress: Progress, step: Step, attempt: Attempt, { isStored, asked }: LaterForm): Promise<Verdict | null> {
    const { user_id } = progress
    const { kind } = step
    const wrong = await progresses.countForm(secret, progress, isStored)
    if (wrong === null) return null
    if (wrong > MOST_WRONG) {
      onRefused({ ...progress, reason: 'limited', kind }, asked)
      return { refused: { reason: 'too-many' } }
    }
    const limit = async () => await attempt.limit(toUserName(user_id)).catch((error: unknown) => {
      if (error instanceof IdentityError && error.code === 'ErrLimit') onRefused({ ...progress, reason: 'limited', kind }, asked)
      throw error
    })
    try {
      const verified = await step.verify({ ...attempt, limit }, progress, secret)
      // Only the first step determines the user: with the password of another account nobody goes on.
      const isOther = 'passed' in verified && verified.passed.user_id !== user_id
      if (isOther) onRefused({ ...progress, reason: kind === 'password' ? 'wrong_password' : 'wrong_code', kind }, asked)
      const verdict: Verdict = isOther ? { refused: { reason: 'wrong-password' } } : verified
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
    async find (secret: string, asked: SignInRequest = {}): Promise<Located> {
      return await show(await locate(secret, asked), asked.choice)
    },

    /**
     * Verifies the form of the browser's current step.
     * @throws ErrLimit, and the errors of the step
     */
    async submit (secret: string, attempt: Attempt, asked: SignInRequest = {}): Promise<Outcome> {
      nameClient(asked.client_id)
      const stage = await locate(secret, asked)
      const { progress, isStored, fallen } = stage
      if (fallen !== undefined) {
        await forget(secret, isStored)
        onRefused(fallen, asked)
      }
      const located = choose(stage, asked.choice)
      const { step } = located
      // The form of a step that is not due any more.
      if (asked.choice !== undefined && step.kind !== asked.choice) return { next: await show(stage) }
      const verdict = progress === null
        ? await step.verify(attempt, null, secret)
        : await verifyLater(secret, progress, step, attempt, { isStored, asked })
      if (verdict === null) return { next: choose(start) }
      if ('shown' in verdict) return await stay(secret, progress?.link, located, verdict)
      if ('refused' in verdict) {
        const { refused } = verdict
        const ended = refused.reason === 'ended' || refused.reason === 'missing' ? refused.reason : undefined
        if (ended !== undefined) {
          await forget(secret, true)
          if (progress !== null) onRefused({ ...progress, reason: REASONS[ended], kind: step.kind }, asked)
        }
        const isOver = ended !== undefined || refused.reason === 'too-many'
        return { again: isOver ? choose(start) : await show(stage, asked.choice), refused, failed: step.kind }
      }
      if ('kept' in verdict) return progress === null ? { next: choose(start) } : await advance(secret, progress, asked, true)
      const reached = toReached(progress, verdict.passed, step.kind, toTimestamp(now()))
      return await advance(secret, reached, asked, isStored || progress !== null)
    },

    /** Goes on with the steps after those that a link or another provider has proved. It replaces what the browser has proved before. */
    async proceed (secret: string, { user_id, user_epoch, ...proof }: Proved, asked: SignInRequest = {}): Promise<Outcome> {
      nameClient(asked.client_id)
      const reached = { user_id, user_epoch, account: '', proofs: [{ at: toTimestamp(now()), ...proof }] }
      return await advance(secret, reached, asked, await progresses.load(secret) !== null)
    },

    /** The steps with which a sign-in can go on after a judgement. */
    listOpen,

    /** Deletes the browser's progress. */
    async cancel (secret: string): Promise<void> {
      await forget(secret, await progresses.load(secret) !== null)
    },

    ...links
  }
}

export type SignIns = ReturnType<typeof createSignIns>
