import type { Change } from '../store/port.ts'
import type { WorkRecord } from './record.ts'

/** What a kind of work limits by lane. */
interface Lanes<T> {
  /** Declared keys. The first that the record has is its lane: what hangs there leaves room for the others. */
  keys: readonly (string & keyof T)[]
  /** Concurrent attempts of one lane in this process. */
  slots: number
  /** The most due records of one lane. Absent: a lane may hold as many as there are free places then. */
  capacity?: number
}

/** One kind of work. Each kind has its own collection and slots, so that no kind waits for another. */
export interface WorkKind<T extends WorkRecord> {
  collection: string
  /** The name of a record in error messages. */
  name: string
  /** Concurrent attempts of this process. */
  slots: number
  /** Slots of urgent records only. They also have half of the capacity to themselves. */
  reserved?: number
  isUrgent? (record: T): boolean
  /** The most due records, and the most failed ones, that are stored. */
  capacity: number
  /** Due records that this process queues in memory. */
  lookahead: number
  lanes?: Lanes<T>
  /** Milliseconds between two looks for due records of other processes, less than `STALL`. 2 seconds by default. */
  poll?: number
  /** Milliseconds from each failed attempt to the next. */
  retries: readonly number[]
  /** The share by which such a delay may be longer, so that work that failed together is not repeated together. 0 by default. */
  jitter?: number
  /** The most milliseconds that a record waits for an attempt. The longest delay of `retries` by default. */
  longest?: number
  /** Milliseconds that a claim lasts. Its holder renews it. */
  lease?: number
  /**
   * What else changes of a finished record that stays until it expires, so that accepting the same one again causes no second attempt. Null
   * for one that is deleted. Absent: all are.
   */
  toDone? (record: T, time: number): Change | null
  /** Makes one attempt: resolves when the work is done. A CutOffError says that it had no outcome. */
  perform (record: T, signal: AbortSignal): Promise<void>
  /** Called before work is given up, and again after a kill. It does not throw. */
  beforeFailed? (record: T, failure: string): Promise<void>
  /** Whether this process must make no attempt now. Asked before each claim. */
  isHeld? (record: T): boolean
  /** Whether the error is permanent: a retry would fail too. */
  isFinal (error: unknown): boolean
  /** The receiver of an attempt that timed out. The other attempts to it are put off too. */
  nameReceiver? (record: T): string
  /** The most receivers that timed out, of which this process keeps a note. 10,000 by default. */
  held?: number
  /** Milliseconds after which an attempt that `close` aborted is repeated, if its effect may have happened. 0 by default. */
  afterAbort?: number
  /** Milliseconds that failed work is kept. Absent: until its `expired_at`. */
  kept?: number
  /** The new end of failed work that an operator retries. Absent: it keeps its end. */
  renew? (time: number): Pick<WorkRecord, 'ends_at' | 'expired_at'>
}
