import type { Base } from '../base.ts'
import { toLifetime, toTimestamp } from '../clock.ts'
import { defined } from '../defined.ts'
import { hashToken } from '../crypto/random-token.ts'
import type { Proof } from '../proofs.ts'
import { type Document, DuplicateKeyError } from '../store/port.ts'
import type { Enrolling } from '../ways/enrolments.ts'
import type { Progress } from './steps/step.ts'

/** Seconds for each step after the first one. */
const PROGRESS_TTL = 10 * 60

/** Wrong forms of later steps, after which the sign-in begins again. */
export const MOST_WRONG = 5

/** A sign-in between two steps. The id is the hash of a secret that only the browser has. */
export interface ProgressRecord extends Document {
  user_id: string
  user_epoch: number
  account: string
  /** None while only the forms of a browser are stored whose session has the proofs. */
  proofs: Proof[]
  /** Forms since the last step that were wrong or are still being verified. Absent: none. */
  wrong?: number
  enrolling?: Enrolling
  created_at: string
  expired_at: string
}

/** The progress of browsers in their sign-ins. */
export function createProgress ({ store, now }: Pick<Base, 'store' | 'now'>) {
  const records = store.collection<ProgressRecord>('sign_ins')
  const life = () => toLifetime(now(), PROGRESS_TTL)

  const write = ({ user_id, user_epoch, account }: Progress, proofs: Proof[]) => ({ user_id, user_epoch, account, proofs, ...life() })

  return {
    async load (secret: string): Promise<ProgressRecord | null> {
      const record = await records.get(hashToken(secret))
      return record === null || record.expired_at <= toTimestamp(now()) || record.proofs === undefined ? null : record
    },

    /** What counts of a record and of what the browser's session has proved. Nothing after too many wrong forms. */
    find (record: ProgressRecord | null, base: Progress | undefined): Progress | null {
      if ((record?.wrong ?? 0) >= MOST_WRONG) return null
      if (record === null) return base ?? null
      const { user_id, user_epoch, account, proofs, enrolling } = record
      if (proofs.length > 0) return { user_id, user_epoch, account, proofs, enrolling }
      if (base === undefined) return null
      return base.user_id === user_id && base.user_epoch === user_epoch ? { ...base, enrolling: enrolling ?? base.enrolling } : base
    },

    /** Stores what the steps so far have proved. */
    async put (secret: string, progress: Progress): Promise<void> {
      await records.put({ id: hashToken(secret), ...write(progress, progress.proofs) })
    },

    /**
     * Counts a form of a later step before it is verified, so that several at once are no more tries than one after the other.
     * @returns their number; null when the sign-in has ended meanwhile
     */
    async countForm (secret: string, progress: Progress, isStored: boolean): Promise<number | null> {
      const id = hashToken(secret)
      if (!isStored) {
        await records.delete(id, { before: { expired_at: toTimestamp(now() + 1) } })
        await records.insert({ id, ...write(progress, []) })
          .catch((error: unknown) => { if (!(error instanceof DuplicateKeyError)) throw error })
      }
      return (await records.update(id, { increment: { wrong: 1 } }))?.wrong ?? null
    },

    /** Takes back the count of a form that was not verified. */
    async discountForm (secret: string): Promise<void> {
      await records.update(hashToken(secret), { increment: { wrong: -1 } })
    },

    /** Stays at a step that goes on with another page. @returns whether the sign-in still lasts */
    async stay (secret: string, enrolling: Enrolling | undefined): Promise<boolean> {
      const unset = enrolling === undefined ? ['wrong', 'enrolling'] : ['wrong']
      return await records.update(hashToken(secret), { set: defined({ ...life(), enrolling }), unset }) !== null
    },

    async remove (secret: string): Promise<void> {
      await records.delete(hashToken(secret))
    }
  }
}
