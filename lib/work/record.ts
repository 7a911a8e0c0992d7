import { toTimestamp } from '../clock.ts'
import type { Document } from '../store/port.ts'

/** The fields of every stored piece of work. */
export interface WorkRecord extends Document {
  /** `done` only for kinds that keep records of finished work (`toDone`). */
  state: 'due' | 'failed' | 'done'
  /** The time of the next attempt. During an attempt, the end of its lease. */
  due_at: string
  /** When `due_at` was written. Absent on records of earlier releases. */
  set_at?: string
  /** During an attempt: `due_at` is the end of its lease. Absent on those of earlier releases. */
  leased?: true
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

/** The fields of a record whose next attempt, or whose lease, is to end then. */
export const toDue = (due: number, time: number): { due_at: string, set_at: string } => ({ due_at: toTimestamp(due), set_at: toTimestamp(time) })
