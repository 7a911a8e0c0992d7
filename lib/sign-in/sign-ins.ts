import { beginsSignIn } from '../ways/words.ts'
import type { Judgement, MaySignIn } from '../ways/may-sign-in.ts'
import type { Acr, Proof, Strength } from '../proofs.ts'
import { type Clock, toLifetime, toTimestamp } from '../clock.ts'
import { type Document, DuplicateKeyError, type Store } from '../store/port.ts'
import { hashToken } from '../crypto/random-token.ts'
import type { Attempt, Place, Progress, Step, Verdict } from './steps/step.ts'

/** Seconds for each step after the first one. */
const PROGRESS_TTL = 10 * 60

/** Wrong forms of later steps, after which the sign-in begins again. */
const MOST_WRONG = 5

/** A sign-in between two steps. The id is the hash of a secret that only the browser has. */
interface ProgressRecord extends Document {
  user_id: string
  user_epoch: number
  account: string
  /** None while it only counts the forms of a browser whose session has the proofs. */
  proofs: Proof[]
  /** Forms since the last step that were wrong or are still being verified. Absent: none. */
  wrong?: number
  created_at: string
  expired_at: string
}

/**
 * A link that a browser has opened before its sign-in, and confirms after it. The id is a hash of the secret of that sign-in. The
 * link's token is in no URL and no page in between, and it is not stored.
 */
interface CarriedLinkRecord extends Document {
  /** The id of the link's ticket. */
  ticket: string
  created_at: string
  expired_at: string
}

/** The name by which attempts from the second step on are counted. Nobody can type it: what is typed is trimmed. */
const toUserName = (user_id: string): string => ` user ${user_id}`

const toLinkId = (secret: string): string => hashToken(`link ${secret}`)

/** A sign-in after its last step. */
export interface SignedIn extends Progress {
  strength: Strength
}

/** What a link has proved. */
export type Proved = Pick<Progress, 'user_id' | 'user_epoch'> & Omit<Proof, 'at'>

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
}

/**
 * The result of a form: a sign-in, another step, the same step again, or that the user cannot prove as much as the request asks for.
 */
export type Outcome =
  | { done: SignedIn }
  | { next: Located }
  | { again: Located, refused: Extract<Verdict, { refused: unknown }>['refused'] }
  | { unmet: true }

/** Where a sign-in is: what counts of its progress, and the steps that it can go on with. */
type Stage = { progress: Progress | null, open: readonly Step[], isStored: boolean }

/**
 * Signs users in step by step. The proofs of a browser are in the store, never in the browser. Nothing is stored for a sign-in with
 * a single step. After each step, `maySignIn` judges whether another one is needed.
 * @param places the order of the steps: those that begin a sign-in, then those that only come second
 * @param onDone called with the user after the last step, before the sign-in is answered
 */
export function createSignIns ({ store, now, places, maySignIn, onDone = async () => {} }: {
  store: Store, now: Clock, places: readonly [Place, ...Place[]], maySignIn: MaySignIn, onDone?: (user_id: string) => Promise<void>
}) {
  const records = store.collection<ProgressRecord>('sign_ins')
  const links = store.collection<CarriedLinkRecord>('sign_ins')
  const [first, ...later] = places
  const start: Stage = { progress: null, open: first, isStored: false }

  async function load (secret: string): Promise<ProgressRecord | null> {
    const record = await records.get(hashToken(secret))
    return record === null || record.expired_at <= toTimestamp(now()) || record.proofs === undefined ? null : record
  }

  /** What counts of a record and of the session. Nothing after too many wrong forms. */
  function findProgress (record: ProgressRecord | null, { base }: SignInAim): Progress | null {
    if ((record?.wrong ?? 0) >= MOST_WRONG) return null
    if (record === null || record.proofs.length === 0) return base ?? null
    const { user_id, user_epoch, account, proofs } = record
    return { user_id, user_epoch, account, proofs }
  }

  /**
   * Counts a form of a later step before it is verified, so that several at once are no more tries than one after the other.
   * @returns their number; null when the sign-in has ended meanwhile
   */
  async function countForm (secret: string, progress: Progress, isStored: boolean): Promise<number | null> {
    const id = hashToken(secret)
    if (!isStored) {
      await records.delete(id, { before: { expired_at: toTimestamp(now() + 1) } })
      await records.insert({ id, ...progress, proofs: [], ...toLifetime(now(), PROGRESS_TTL) })
        .catch((error: unknown) => { if (!(error instanceof DuplicateKeyError)) throw error })
    }
    return (await records.update(id, { increment: { wrong: 1 } }))?.wrong ?? null
  }

  const judge = async ({ user_id, user_epoch: epoch, proofs }: Progress, { client_id, acr }: SignInAim) => (
    await maySignIn({ user_id, epoch, proofs, client_id, acr }))

  /** The steps that can add what is missing, at the first place that has any. */
  async function listOpen (judged: Extract<Judgement, { because: 'below' }>): Promise<Step[]> {
    const { user, demanded, standing } = judged
    const isBegun = standing.some(beginsSignIn)
    for (const place of isBegun ? later : [first]) {
      const open: Step[] = []
      for (const step of place) {
        const isUseful = standing.every(({ kind }) => kind !== step.kind) && (!isBegun || demanded !== 'phr' || step.kind === 'passkey')
        if (isUseful && await (step.isOpen?.(user) ?? true)) open.push(step)
      }
      if (open.length > 0) return open
    }
    return []
  }

  /** The stage of a browser. It starts again if what it has proved is not enough to go on with, or needs nothing more. */
  async function locate (secret: string, aim: SignInAim): Promise<Stage> {
    const record = await load(secret)
    const again = { ...start, isStored: record !== null }
    const progress = findProgress(record, aim)
    if (progress === null) return again
    const judged = await judge(progress, aim)
    if (judged.may || judged.because !== 'below') return again
    const open = await listOpen(judged)
    // Only what still stands, so that a session does not collect proofs.
    return open.length === 0 ? again : { ...again, progress: { ...progress, proofs: judged.standing }, open }
  }

  /** The step of a stage that the person has chosen, or else the first one. */
  function show ({ open }: Pick<Stage, 'open'>, choice?: string): Located {
    const step = open.find(({ kind }) => kind === choice) ?? open[0]!
    return { step, others: open.filter((other) => other !== step).map(({ kind }) => kind) }
  }

  async function forget (secret: string, isStored: boolean): Promise<void> {
    if (isStored) await records.delete(hashToken(secret))
  }

  /** Goes on to the next step, or completes the sign-in. */
  async function advance (secret: string, reached: Progress, aim: SignInAim, isStored: boolean): Promise<Outcome> {
    const judged = await judge(reached, aim)
    if (judged.may) {
      await forget(secret, isStored)
      await onDone(reached.user_id)
      return { done: { ...reached, strength: judged.strength } }
    }
    const open = judged.because === 'below' ? await listOpen(judged) : []
    if (open.length > 0) {
      await records.put({ id: hashToken(secret), ...reached, ...toLifetime(now(), PROGRESS_TTL) })
      return { next: show({ open }) }
    }
    await forget(secret, isStored)
    if (judged.because === 'unmet') return { unmet: true }
    return { again: show(start), refused: { reason: judged.because === 'ended' ? 'ended' : 'missing' } }
  }

  /** Verifies the form of a later step. Null when the sign-in has ended meanwhile. */
  async function verifyLater (secret: string, { progress, isStored }: Stage, step: Step, attempt: Attempt): Promise<Verdict | null> {
    const { user_id } = progress!
    const wrong = await countForm(secret, progress!, isStored)
    if (wrong === null) return null
    if (wrong > MOST_WRONG) return { refused: { reason: 'too-many' } }
    try {
      const verdict = await step.verify({ ...attempt, limit: async () => await attempt.limit(toUserName(user_id)) }, progress)
      return 'refused' in verdict && wrong === MOST_WRONG ? { refused: { reason: 'too-many' } } : verdict
    } catch (error) {
      await records.update(hashToken(secret), { increment: { wrong: -1 } })
      throw error
    }
  }

  return {
    /**
     * The current step of a browser.
     * @param secret identifies the sign-in: long, random, and known to this browser only
     */
    async find (secret: string, aim: SignInAim = {}): Promise<Located> {
      return show(await locate(secret, aim), aim.choice)
    },

    /**
     * Verifies the form of the browser's current step.
     * @throws ErrLimit, and the errors of the step
     */
    async submit (secret: string, attempt: Attempt, aim: SignInAim = {}): Promise<Outcome> {
      const stage = await locate(secret, aim)
      const { progress, isStored } = stage
      const located = show(stage, aim.choice)
      const { step } = located
      // The form of a step that is not due any more.
      if (aim.choice !== undefined && step.kind !== aim.choice) return { next: located }
      const verdict = progress === null ? await step.verify(attempt, null) : await verifyLater(secret, stage, step, attempt)
      if (verdict === null) return { next: show(start) }
      if ('refused' in verdict) return { again: verdict.refused.reason === 'too-many' ? show(start) : located, refused: verdict.refused }
      const { user_id, user_epoch, way, uv, account = '' } = verdict.passed
      const proof: Proof = { way, kind: step.kind, ...(uv !== undefined && { uv }), at: toTimestamp(now()) }
      // The first step determines the user.
      const reached = progress === null
        ? { user_id, user_epoch, account, proofs: [proof] }
        : { ...progress, account: progress.account || account, proofs: [...progress.proofs, proof] }
      return await advance(secret, reached, aim, isStored || progress !== null)
    },

    /** Goes on with the steps after those that a link has proved. It replaces what the browser has proved before. */
    async proceed (secret: string, { user_id, user_epoch, ...proof }: Proved, aim: SignInAim = {}): Promise<Outcome> {
      const reached = { user_id, user_epoch, account: '', proofs: [{ ...proof, at: toTimestamp(now()) }] }
      return await advance(secret, reached, aim, await load(secret) !== null)
    },

    /** Deletes the browser's progress. */
    async cancel (secret: string): Promise<void> {
      if (await load(secret) !== null) await records.delete(hashToken(secret))
    },

    /** Carries a link through the sign-in of this browser, for ten minutes. Another link replaces it. */
    async carryLink (secret: string, ticket: string): Promise<void> {
      await links.put({ id: toLinkId(secret), ticket, ...toLifetime(now(), PROGRESS_TTL) })
    },

    /** The ticket of the link that this browser carries; undefined without one. */
    async findLink (secret: string): Promise<string | undefined> {
      const record = await links.get(toLinkId(secret))
      return record === null || record.expired_at <= toTimestamp(now()) ? undefined : record.ticket
    },

    async dropLink (secret: string): Promise<void> {
      await links.delete(toLinkId(secret))
    }
  }
}

export type SignIns = ReturnType<typeof createSignIns>
