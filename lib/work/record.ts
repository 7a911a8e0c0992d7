import type { Document } from '../store/port.ts'

/** The fields of every stored piece of work. */
export interface WorkRecord extends Document {
  /** `done` only for kinds that keep records of finished work (`keepsDone`). */
  state: 'due' | 'failed' | 'done'
  /** The time of the next attempt. During an attempt, the end of its lease. */
  due_at: string
  /** Incremented by every claim: of two processes that read the same number, only one succeeds. */
  claim: number
  attempts: number
  /** The time after which the work serves no purpose. No attempt is made after it. */
  ends_at: string
  created_at: string
  expired_at: string
  /** Only on failed ones: the reason, in codes. */
  failure?: string
}
