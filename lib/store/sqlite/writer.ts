import { busyError, storeError } from '../../errors.ts'
import type { DocumentCache, Versions } from './cache.ts'
import { unwrap } from './failure.ts'
import { LastCommit } from './last-commit.ts'
import type { BatchResult, Operation, Outcome, Value } from './operations.ts'
import { Thread, type ThreadData, threadFile } from './thread.ts'

/** Operations of one transaction: what waits meanwhile shares the next sync of the disk. */
const BATCH = 500
/** Characters of one batch, about: handing over a message must not hold the event loop. */
const BATCH_LENGTH = 1_000_000
/** Operations, and their characters, that may wait before callers are told to come again later. */
const WAITING = 10_000
const WAITING_LENGTH = 64_000_000

/** The share of an operation's time that is kept for the answer: the thread gives up a lock before its caller gives up. */
const MARGIN = 0.2

/** Milliseconds that are no bound: the longest a timer takes. */
const UNBOUNDED = 2 ** 31 - 1

/** Does nothing but wait for its turn. */
const NOTHING: Operation = { kind: 'read', sql: 'SELECT NULL AS "doc"', values: [] }

/** Changes nothing, and is written to the disk all the same. */
const PROBE: Operation = { kind: 'run', sql: 'UPDATE "store.version" SET "version" = "version"', values: [] }

/** The document that a write may change. */
export interface Touched {
  collection: string
  id: string
}

interface Pending {
  operation: Operation
  touched: Touched | null
  length: number
  /** By performance.now(). */
  deadline: number
  resolve: (value: Value) => void
  reject: (error: unknown) => void
  /** Once; what comes later comes too late for anyone. */
  settled: boolean
}

/** What the thread gets; it answers with a BatchResult. */
export interface Batch {
  operations: Operation[]
  /** Milliseconds to wait for the lock. */
  wait: number
}

export interface WriterOptions {
  /** Milliseconds an operation may take, waiting included. */
  timeout: number
  /** Told what is written, and when. */
  cache?: DocumentCache
  /** The thread's file, for tests. */
  file?: URL
}

/** Groups writes and sends them to the one thread that writes, a transaction at a time. */
export class Writer {
  readonly #thread: Thread
  readonly #timeout: number
  readonly #cache: DocumentCache | undefined
  /** Oldest first. */
  #waiting: Pending[] = []
  #length = 0
  #inFlight: Pending[] = []
  #unsettled = 0
  /** Runs while something is unsettled: one for all of them, since a timer for each would cost more than its write does here. */
  #timer: NodeJS.Timeout | undefined
  /** When it rings: no later than the first deadline. */
  #alarm = Infinity
  #scheduled = false
  #closed = false
  /** The last batch that had something to write could not be written. */
  #failed = false
  #probe: Promise<unknown> | null = null
  #drained: (() => void)[] = []

  constructor (data: ThreadData, { timeout, cache, file = threadFile('writer-thread') }: WriterOptions) {
    this.#timeout = timeout
    this.#cache = cache
    const commits = new LastCommit()
    cache?.follow(commits)
    this.#thread = new Thread(file, { ...data, lastCommit: commits.memory }, {
      message: (message) => {
        const { outcomes, versions } = message as BatchResult
        this.#answer((index) => outcomes[index]!, versions)
      },
      death: (error) => this.#answer(() => ({ error: storeError(error) }), null)
    })
  }

  write (operation: Operation, touched: Touched | null = null): Promise<Value> {
    if (this.#closed) return Promise.reject(storeError(new Error('the store is closed')))
    if (this.#waiting.length >= WAITING || this.#length > WAITING_LENGTH) return Promise.reject(busyError('writes'))
    return this.#accept(operation, touched, this.#timeout)
  }

  /** Starts the thread, which makes the tables, however long that takes. Rejects with what it failed of. */
  async start (): Promise<void> {
    await this.#accept(NOTHING, null, UNBOUNDED)
  }

  /**
   * Whether writing works, as far as is known: rejects with what is wrong when the last batch failed, and a write that
   * changes nothing does so still. It is tried because no other may come: who finds a service unfit sends it none.
   */
  async check (): Promise<void> {
    if (!this.#failed) return
    this.#probe ??= this.write(PROBE).finally(() => { this.#probe = null })
    await this.#probe
    this.#failed = false
  }

  /** Accepts no more, and resolves when what was accepted is settled. */
  async drain (): Promise<void> {
    this.#closed = true
    if (this.#unsettled > 0) await new Promise<void>((resolve) => this.#drained.push(resolve))
  }

  async close (): Promise<void> {
    await this.drain()
    await this.#thread.end(this.#timeout)
  }

  #accept (operation: Operation, touched: Touched | null, timeout: number): Promise<Value> {
    return new Promise((resolve, reject) => {
      const deadline = performance.now() + timeout
      const pending: Pending = { operation, touched, length: lengthOf(operation), deadline, resolve, reject, settled: false }
      if (touched !== null) this.#cache?.touch(touched.collection, touched.id)
      this.#waiting.push(pending)
      this.#length += pending.length
      this.#unsettled++
      if (deadline < this.#alarm) this.#setAlarm(deadline)
      // Not at once: writes of the same turn of the event loop go together.
      if (this.#scheduled || this.#inFlight.length > 0) return
      this.#scheduled = true
      setImmediate(() => {
        this.#scheduled = false
        // One may be under way by now: an answer sends what waits, too.
        if (this.#inFlight.length === 0) this.#send()
      })
    })
  }

  #send (): void {
    let count = 0
    let length = 0
    for (const pending of this.#waiting) {
      if (count === BATCH || (count > 0 && length + pending.length > BATCH_LENGTH)) break
      count++
      length += pending.length
    }
    const batch = this.#waiting.splice(0, count)
    const [oldest] = batch
    if (oldest === undefined) return
    this.#length -= length
    this.#inFlight = batch
    const wait = Math.max(0, Math.min(this.#timeout, oldest.deadline - performance.now()) - MARGIN * this.#timeout)
    this.#cache?.send()
    this.#thread.post({ operations: batch.map(({ operation }) => operation), wait } satisfies Batch)
  }

  #answer (outcome: (index: number) => Outcome | { error: unknown }, versions: Versions | null): void {
    const batch = this.#inFlight
    this.#inFlight = []
    this.#cache?.answer(versions)
    // One that changed nothing proves nothing: it never came to the disk.
    if (versions === null) this.#failed = true
    else if (versions.to !== versions.from) this.#failed = false
    for (const pending of batch) this.#release(pending)
    // Before callers are told, who have work to do then: the thread goes on meanwhile.
    this.#send()
    for (const [index, pending] of batch.entries()) this.#settle(pending, outcome(index))
  }

  #settle (pending: Pending, outcome: Outcome | { error: unknown }): void {
    if (pending.settled) return
    pending.settled = true
    if (--this.#unsettled === 0) {
      this.#setAlarm(Infinity)
      for (const drained of this.#drained.splice(0)) drained()
    }
    try {
      if ('error' in outcome) throw outcome.error
      pending.resolve(unwrap(outcome))
    } catch (error) {
      pending.reject(error)
    }
  }

  #setAlarm (deadline: number): void {
    this.#alarm = deadline
    clearTimeout(this.#timer)
    if (deadline < Infinity) this.#timer = setTimeout(() => this.#expire(), Math.ceil(deadline - performance.now()))
  }

  /** Fails what is out of time, and sets the alarm for what is not. */
  #expire (): void {
    const now = performance.now()
    const isLate = ({ deadline }: Pending) => deadline <= now
    const late = this.#waiting.filter(isLate)
    this.#waiting = this.#waiting.filter((pending) => !isLate(pending))
    for (const pending of late) {
      this.#length -= pending.length
      this.#release(pending)
    }
    // One that is with the thread already may still happen.
    for (const pending of [...this.#inFlight.filter(isLate), ...late]) {
      this.#settle(pending, { error: storeError(new Error(`a write took more than ${this.#timeout} ms`)) })
    }
    const deadlines = [...this.#inFlight, ...this.#waiting].filter(({ settled }) => !settled).map(({ deadline }) => deadline)
    this.#setAlarm(Math.min(...deadlines))
  }

  #release ({ touched }: Pending): void {
    if (touched !== null) this.#cache?.release(touched.collection, touched.id)
  }
}

function lengthOf (operation: Operation): number {
  let length = operation.kind === 'update' ? operation.change.length : 0
  for (const value of operation.values) length += typeof value === 'string' ? value.length : 8
  return length
}
