import type { SQLInputValue } from 'node:sqlite'
import { busyError, storeError } from '../../errors.ts'
import { BATCH_SIZE } from '../port.ts'
import { type Failure, fromFailure } from './failure.ts'
import type { Statement } from './sql.ts'
import { Thread, type ThreadData, threadFile } from './thread.ts'

export type Question =
  | { kind: 'count', id: number, sql: string, values: SQLInputValue[] }
  /** `whole`: all of it in the first answer, or none of it and the cursor closed. */
  | { kind: 'open', id: number, size: number, whole: boolean, sql: string, values: SQLInputValue[] }
  | { kind: 'next', id: number }
  | { kind: 'close', id: number }

export interface Answer {
  id: number
  docs?: string[]
  /** No more will come; the cursor is closed. */
  done?: boolean
  count?: number
  failure?: Failure
}

/** Lists that may hold a cursor at once, and lists that may wait for one. */
const CURSORS = 64
const WAITING = 1_000
/** Questions that may wait for the thread. */
const QUESTIONS = 10_000
/** Milliseconds a list may go unread: its cursor keeps the log from being cut back. MongoDB's own limit. */
const IDLE = 600_000

/**
 * The thread's heap (MiB). It only passes texts on, and with room to spare it would let tens of MiB of them gather
 * before it collects any. A batch is a megabyte at most, unless one document is larger.
 */
const HEAP = { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 128 }

export interface ReaderOptions {
  /** Milliseconds a batch or a count may take, waiting included. */
  timeout: number
  /** Milliseconds a list may go unread, and lists that may hold a cursor. */
  idle?: number
  cursors?: number
  /** The thread's file, for tests. */
  file?: URL
}

interface Pending {
  resolve: (answer: Answer) => void
  reject: (error: unknown) => void
  timer: NodeJS.Timeout
}

/** Sends counts and lists to the thread that reads. */
export class Reader {
  readonly #thread: Thread
  readonly #options: Required<Omit<ReaderOptions, 'file'>>
  readonly #questions = new Map<number, Pending>()
  readonly #queue = new Set<() => void>()
  #cursors = 0
  #id = 0
  #closed = false

  constructor (data: ThreadData, { timeout, idle = IDLE, cursors = CURSORS, file = threadFile('reader-thread') }: ReaderOptions) {
    this.#options = { timeout, idle, cursors }
    this.#thread = new Thread(file, data, {
      message: (answer) => this.#settle(answer as Answer),
      death: (error) => this.#fail(error)
    }, HEAP)
  }

  async count ({ sql, values }: Statement): Promise<number> {
    return (await this.#ask({ kind: 'count', id: ++this.#id, sql, values })).count!
  }

  /**
   * The documents in batches, the next of which is read while one is used. A list that is `short` has at most one
   * document more than a batch, and is tried in one answer first: it needs no place among the lists that hold a cursor,
   * so that slow readers of long ones never stop it. One whose documents are too large for that is read as a long one.
   */
  async * list (statement: Statement, short: boolean): AsyncGenerator<string[], void, undefined> {
    const { docs, done } = short ? await this.#open(++this.#id, statement, BATCH_SIZE + 1, true) : {}
    if (done !== true) {
      yield * this.#listLong(statement)
      return
    }
    for (let rest = docs!; rest.length > 0; rest = rest.slice(BATCH_SIZE)) yield rest.slice(0, BATCH_SIZE)
  }

  async * #listLong (statement: Statement): AsyncGenerator<string[], void, undefined> {
    await this.#enter()
    const id = ++this.#id
    let held = true
    const free = (ended = false) => {
      if (!held) return
      held = false
      // At its end the thread has closed the cursor by itself.
      if (!ended && !this.#closed) this.#thread.post({ kind: 'close', id })
      this.#leave()
    }
    try {
      let answer = await this.#open(id, statement, BATCH_SIZE, false)
      while (!answer.done) {
        const next = this.#ask({ kind: 'next', id })
        // It is looked at when this batch has been used; until then a failure is nobody's.
        next.catch(() => {})
        const timer = setTimeout(free, this.#options.idle).unref()
        try {
          yield answer.docs!
        } finally {
          clearTimeout(timer)
        }
        answer = await next
      }
      free(true)
      if (answer.docs!.length > 0) yield answer.docs!
    } finally {
      free()
    }
  }

  /** Ends the thread, and with it the lists that are open. */
  async close (): Promise<void> {
    this.#closed = true
    for (const enter of this.#queue) enter()
    this.#queue.clear()
    await this.#thread.end(this.#options.timeout)
  }

  #open (id: number, { sql, values }: Statement, size: number, whole: boolean): Promise<Answer> {
    return this.#ask({ kind: 'open', id, size, whole, sql, values })
  }

  #ask (question: Question): Promise<Answer> {
    if (this.#closed) return Promise.reject(storeError(new Error('the store is closed')))
    if (this.#questions.size >= QUESTIONS) return Promise.reject(busyError('reads'))
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    const { timeout } = this.#options
    const timer = setTimeout(() => this.#settle({ id: question.id, failure: { message: `a read took more than ${timeout} ms` } }), timeout)
    this.#questions.set(question.id, { resolve, reject, timer })
    this.#thread.post(question)
    return promise
  }

  /** One list or count asks one question at a time, so that its id tells the answer. */
  #settle (answer: Answer): void {
    const question = this.#questions.get(answer.id)
    if (question === undefined) return
    this.#questions.delete(answer.id)
    clearTimeout(question.timer)
    if (answer.failure === undefined) question.resolve(answer)
    else question.reject(fromFailure(answer.failure))
  }

  #fail ({ message }: Error): void {
    for (const id of this.#questions.keys()) this.#settle({ id, failure: { message } })
  }

  /** Takes a place among the lists that hold a cursor. */
  async #enter (): Promise<void> {
    if (this.#cursors < this.#options.cursors) {
      this.#cursors++
      return
    }
    if (this.#queue.size >= WAITING) throw busyError('lists')
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#queue.add(resolve)
    const timer = setTimeout(() => {
      if (this.#queue.delete(resolve)) reject(busyError('lists'))
    }, this.#options.timeout)
    await promise.finally(() => clearTimeout(timer))
  }

  /** Hands the place to the list that has waited longest. */
  #leave (): void {
    const [next] = this.#queue
    if (next === undefined) {
      this.#cursors--
      return
    }
    this.#queue.delete(next)
    next()
  }
}
