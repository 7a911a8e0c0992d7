import { type Clock, toLifetime, toTimestamp } from '../clock.ts'
import type { Document, Store } from '../store/port.ts'
import { hashToken } from '../crypto/random-token.ts'
import type { Attempt, Progress, Step, Verdict } from './steps/step.ts'

/** Seconds for each step after the first one. */
const PROGRESS_TTL = 10 * 60

/** A sign-in between two steps. The id is the hash of a secret that only the browser has. */
interface ProgressRecord extends Document {
  user_id: string
  user_epoch: number
  amr: string[]
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

const toLinkId = (secret: string): string => hashToken(`link ${secret}`)

/** The result of a form: a sign-in, another step, or the same step again. */
export type Outcome = { done: Progress } | { next: Step } | { again: Step, refused: Extract<Verdict, { refused: unknown }>['refused'] }

/**
 * Signs users in step by step. The proofs of a browser are in the store, never in the browser. Nothing is stored for a sign-in with
 * a single step.
 * @param steps in their order
 * @param onDone called with the user after the last step, before the sign-in is answered
 */
export function createSignIns ({ store, now, steps, onDone = async () => {} }: {
  store: Store, now: Clock, steps: readonly [Step, ...Step[]], onDone?: (user_id: string) => Promise<void>
}) {
  const records = store.collection<ProgressRecord>('sign_ins')
  const links = store.collection<CarriedLinkRecord>('sign_ins')

  async function load (secret: string): Promise<Progress | null> {
    const record = await records.get(hashToken(secret))
    if (record === null || record.expired_at <= toTimestamp(now())) return null
    const { user_id, user_epoch, amr } = record
    return { user_id, user_epoch, amr }
  }

  /** The first due step that was not passed yet; undefined when there is none. */
  async function findStep (progress: Progress | null): Promise<Step | undefined> {
    for (const step of steps) {
      if (progress?.amr.includes(step.amr) !== true && (await step.isDue?.(progress) ?? true)) return step
    }
  }

  /** The progress of a browser and its next step. It starts again if no further step is due any more. */
  async function locate (secret: string): Promise<{ progress: Progress | null, step: Step }> {
    const progress = await load(secret)
    const step = await findStep(progress)
    return step === undefined ? { progress: null, step: steps[0] } : { progress, step }
  }

  /** Goes on to the next step, or completes the sign-in. */
  async function advance (secret: string, reached: Progress, isStored: boolean): Promise<{ done: Progress } | { next: Step }> {
    const next = await findStep(reached)
    if (next !== undefined) {
      await records.put({ id: hashToken(secret), ...reached, ...toLifetime(now(), PROGRESS_TTL) })
      return { next }
    }
    if (isStored) await records.delete(hashToken(secret))
    await onDone(reached.user_id)
    return { done: reached }
  }

  return {
    /**
     * The current step of a browser.
     * @param secret identifies the sign-in: long, random, and known to this browser only
     */
    async find (secret: string): Promise<Step> {
      return (await locate(secret)).step
    },

    /**
     * Verifies the form of the browser's current step.
     * @throws ErrLimit, and the errors of the step
     */
    async submit (secret: string, attempt: Attempt): Promise<Outcome> {
      const { progress, step } = await locate(secret)
      const verdict = await step.verify(attempt, progress)
      if ('refused' in verdict) return { again: step, refused: verdict.refused }
      // The first step determines the user.
      const { user_id, user_epoch } = progress ?? verdict.passed
      const reached = { user_id, user_epoch, amr: [...progress?.amr ?? [], step.amr] }
      return await advance(secret, reached, progress !== null)
    },

    /** Goes on with the steps after those that a link has proved. It replaces what the browser has proved before. */
    async proceed (secret: string, proved: Progress): Promise<{ done: Progress } | { next: Step }> {
      return await advance(secret, proved, await load(secret) !== null)
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
