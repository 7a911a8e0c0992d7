import { StoreBusyError, storeError } from '../../errors.ts'
import type { DocumentCache } from './cache.ts'
import type { Touched } from './changes.ts'
import { type Failure, toFailure } from './failure.ts'
import { type BatchResult, type Operation, type Outcome, type Value, type Versions, unwrap } from './operations.ts'
import { PROBE } from './sql.ts'
import { Thread, type ThreadData, threadFile } from './thread.ts'

/** Operations of one transaction. More of them wait, and share the next sync of the disk. */
const BATCH = 500
/** Characters of one batch, approximately: copying a message to the thread must not block the event loop. */
const BATCH_LENGTH = 1_000_000
/** Operations that may wait, and their characters, before further ones are refused with ErrBusy. */
const WAITING = 10_000
const WAITING_LENGTH = 64_000_000

/** The share of the timeout reserved for the answer: the thread stops waiting for a lock before its caller stops waiting for the thread. */
const MARGIN = 0.2

/** Milliseconds of the longest timer. It is in effect no timeout, but it keeps the process alive, which the thread does not. */
const UNBOUNDED = 2 ** 31 - 1

/** Changes nothing, and needs no table: it succeeds when the thread has started. */
const NOTHING: Operation = { kind: 'run', sql: 'SELECT NULL', values: [] }

/** Milliseconds for which a written batch proves that the disk accepts writes. */
const FRESH = 1_000

interface Pending {
  operation: Operation
  touched: Touched | null
  length: number
  /** By the clock of WriterOptions.now. */
  deadline: number
  resolve: (value: Value) => void
  reject: (error: unknown) => void
}

/** The message to the thread, as JSON, which costs a third of a structured clone. The thread answers with a BatchResult. */
export interface Batch {
  operations: Operation[]
  /** The documents that they may change. */
  changed: Touched[]
  /** Milliseconds to wait for the lock. */
  wait: number
}

export interface WriterOptions {
  /** Milliseconds an operation may take, waiting included. */
  timeout: number
  /** Is notified of the documents being written, and of the result of each batch. */
  cache?: DocumentCache
  /**
   * Called with the failures of a batch before it is acknowledged. When it throws, every write of the batch is rejected with that error.
   */
  verify?: (failures: readonly Failure[]) => void
  /** Milliseconds of a monotonic clock. */
  now?: () => number
  /** The thread's module, for tests. */
  file?: URL
}

/** Groups writes into batches and sends them to the writer thread, one transaction at a time. */
export class Writer {
  readonly #thread: Thread
  readonly #timeout: number
  readonly #cache: DocumentCache | undefined
  readonly #verify: (failures: readonly Failure[]) => void
  readonly #now: () => number
  /** Oldest first. */
  readonly #waiting = new Set<Pending>()
  /** Characters of the waiting operations. */
  #length = 0
  #inFlight: Pending[] = []
  /** Waiting or in flight, in the order of their deadlines. */
  readonly #unsettled = new Set<Pending>()
  /** Set while a write is unsettled, so that the process waits for it. It serves all writes: one each would cost more than the rest. */
  #timer: NodeJS.Timeout | undefined
  #scheduled = false
  #closed = false
  /** When the last batch was written. -Infinity if it failed. */
  #writtenAt = Number.NEGATIVE_INFINITY
  #probe: Promise<unknown> | null = null
  #drained: (() => void)[] = []
  #renewal = false

  constructor (data: ThreadData, options: WriterOptions) {
    const { timeout, cache, verify = () => {}, now = () => performance.now(), file = threadFile('writer-thread') } = options
    this.#timeout = timeout
    this.#cache = cache
    this.#verify = verify
    this.#now = now
    this.#thread = new Thread(file, data, {
      message: (message) => {
        const { outcomes, versions } = message as BatchResult
        this.#answer((index) => outcomes[index]!, versions, outcomes.flatMap((outcome) => 'failure' in outcome ? outcome.failure : []))
      },
      death: (error) => this.#answer(() => ({ error: storeError(error) }), null, [toFailure(error)])
    })
  }

  write (operation: Operation, touched: Touched | null = null): Promise<Value> {
    if (this.#closed) return Promise.reject(storeError(new Error('the store is closed')))
    if (this.#waiting.size >= WAITING || this.#length > WAITING_LENGTH) return Promise.reject(new StoreBusyError('writes'))
    return this.#accept(operation, touched, this.#timeout)
  }

  /** Starts the thread, which migrates the file, however long that takes. Rejects with the reason when it cannot start. */
  async start (): Promise<void> {
    await this.#accept(NOTHING, null, UNBOUNDED)
  }

  /** Rejects if the disk accepts no writes. Writes a probe to find out, unless a batch was written within FRESH. */
  async check (): Promise<void> {
    if (this.#now() - this.#writtenAt < FRESH) return
    this.#probe ??= this.write({ kind: 'run', sql: PROBE, values: [] }).finally(() => { this.#probe = null })
    await this.#probe
  }

  /** Requests an empty transaction, which gives the content a version if another program left it without one. */
  renewVersion (): void {
    if (this.#renewal) return
    this.#renewal = true
    const end = () => { this.#renewal = false }
    this.write(NOTHING).then(end, end)
  }

  /** Accepts no more writes, and resolves when the accepted ones are settled. */
  async drain (): Promise<void> {
    this.#closed = true
    if (this.#unsettled.size > 0) await new Promise<void>((resolve) => this.#drained.push(resolve))
  }

  async close (): Promise<void> {
    await this.drain()
    await this.#thread.end(this.#timeout)
  }

  #accept (operation: Operation, touched: Touched | null, timeout: number): Promise<Value> {
    return new Promise((resolve, reject) => {
      const pending: Pending = { operation, touched, length: countCharacters(operation), deadline: this.#now() + timeout, resolve, reject }
      if (touched !== null) this.#cache?.collection(touched.collection).beginWrite(touched.id)
      this.#waiting.add(pending)
      this.#length += pending.length
      this.#unsettled.add(pending)
      if (this.#timer === undefined) this.#setTimer(pending)
      if (this.#scheduled || this.#inFlight.length > 0) return
      // Writes of the same turn of the event loop share a batch.
      this.#scheduled = true
      setImmediate(() => {
        this.#scheduled = false
        // An answer may have sent the next batch already.
        if (this.#inFlight.length === 0) this.#send()
      })
    })
  }

  #send (): void {
    const batch: Pending[] = []
    let length = 0
    for (const pending of this.#waiting) {
      if (batch.length === BATCH || (batch.length > 0 && length + pending.length > BATCH_LENGTH)) break
      this.#waiting.delete(pending)
      batch.push(pending)
      length += pending.length
    }
    const [oldest] = batch
    if (oldest === undefined) return
    this.#length -= length
    this.#inFlight = batch
    const left = Math.min(this.#timeout, oldest.deadline - this.#now())
    this.#cache?.send()
    this.#thread.post(JSON.stringify({
      operations: batch.map(({ operation }) => operation),
      changed: batch.flatMap(({ touched }) => touched ?? []),
      wait: Math.max(0, left - MARGIN * this.#timeout)
    } satisfies Batch))
  }

  #answer (outcome: (index: number) => Outcome | { error: unknown }, versions: Versions | null, failures: readonly Failure[] = []): void {
    const batch = this.#inFlight
    this.#inFlight = []
    const refusal = this.#findRefusal(failures)
    this.#cache?.answer(versions)
    // A batch without changes proves nothing: it never reached the disk.
    if (versions === null) this.#writtenAt = Number.NEGATIVE_INFINITY
    else if (versions.after !== versions.before) this.#writtenAt = this.#now()
    for (const pending of batch) this.#endWrite(pending)
    // Sends the next batch first, so that the thread works while the callers of this one continue.
    this.#send()
    for (const [index, pending] of batch.entries()) this.#settle(pending, refusal ?? outcome(index))
  }

  #findRefusal (failures: readonly Failure[]): { error: unknown } | null {
    try {
      this.#verify(failures)
      return null
    } catch (error) {
      return { error }
    }
  }

  #settle (pending: Pending, outcome: Outcome | { error: unknown }): void {
    if (!this.#unsettled.delete(pending)) return
    if (this.#unsettled.size === 0) {
      clearTimeout(this.#timer)
      this.#timer = undefined
      for (const drained of this.#drained.splice(0)) drained()
    }
    try {
      if ('error' in outcome) throw outcome.error
      pending.resolve(unwrap(outcome))
    } catch (error) {
      pending.reject(error)
    }
  }

  #setTimer ({ deadline }: Pending): void {
    this.#timer = setTimeout(() => this.#expire(deadline), Math.max(0, Math.ceil(deadline - this.#now())))
  }

  /** Rejects the writes whose deadline has passed. One that was sent may still take effect; one that still waits will not. */
  #expire (now: number): void {
    for (const pending of this.#unsettled) {
      if (pending.deadline > now) {
        this.#setTimer(pending)
        return
      }
      if (this.#waiting.delete(pending)) {
        this.#length -= pending.length
        this.#endWrite(pending)
      }
      this.#settle(pending, { error: storeError(new Error(`a write took more than ${this.#timeout} ms`)) })
    }
  }

  #endWrite ({ touched }: Pending): void {
    if (touched !== null) this.#cache?.collection(touched.collection).endWrite(touched.id)
  }
}

function countCharacters (operation: Operation): number {
  if (operation.kind === 'state') return operation.doc.length
  let length = operation.kind === 'update' ? operation.change.length : 0
  const values = operation.kind === 'series' ? operation.statements.flatMap(({ values }) => values) : operation.values
  for (const value of values) length += typeof value === 'string' ? value.length : 8
  return length
}
