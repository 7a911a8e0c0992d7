import type { SQLInputValue } from 'node:sqlite'
import { busyError, storeError } from '../../errors.ts'
import { BATCH_SIZE, type Rendering } from '../port.ts'
import { type Failure, fromFailure } from './failure.ts'
import type { Statement } from './sql.ts'
import { Thread, type ThreadData, threadFile } from './thread.ts'

/** The id is the question's; `list` is that of the one that opened the list. */
export type Question =
  | { kind: 'count', id: number, sql: string, values: SQLInputValue[] }
  | Opening
  | { kind: 'next', id: number, list: number }
  | { kind: 'close', list: number }

export interface Opening {
  kind: 'open'
  id: number
  sql: string
  values: SQLInputValue[]
  /** Documents of a batch at most. */
  size: number
  /** All of it in the first answer, or none of it and the cursor closed. */
  whole?: true
  /** Pieces of text instead of batches; the first is of one batch. */
  rendering?: Rendering
}

export interface Answer {
  id: number
  docs?: string[]
  piece?: string
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
 * The thread's heap (MiB). It only passes texts on, or writes others of them, and with room to spare it would let tens of MiB of them gather
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
  /** Undefined once it is settled. */
  settle: { resolve: (answer: Answer) => void, reject: (error: unknown) => void } | undefined
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
    const { docs, done } = short ? await this.#ask({ ...this.#toOpening(statement, BATCH_SIZE + 1), whole: true }) : {}
    if (done !== true) {
      for await (const { docs } of this.#listLong(this.#toOpening(statement))) if (docs!.length > 0) yield docs!
      return
    }
    for (let rest = docs!; rest.length > 0; rest = rest.slice(BATCH_SIZE)) yield rest.slice(0, BATCH_SIZE)
  }

  /** The documents as the thread renders them. */
  async * render (statement: Statement, rendering: Rendering): AsyncGenerator<string, void, undefined> {
    for await (const { piece } of this.#listLong({ ...this.#toOpening(statement), rendering })) if (piece !== '') yield piece!
  }

  /** Batches or pieces, the next of which is read while one is used. */
  async * #listLong (opening: Opening): AsyncGenerator<Answer, void, undefined> {
    await this.#enter()
    const list = opening.id
    let held = true
    const free = (ended = false) => {
      if (!held) return
      held = false
      // At its end the thread has closed the cursor by itself.
      if (!ended && !this.#closed) this.#thread.post({ kind: 'close', list } satisfies Question)
      this.#leave()
    }
    try {
      let answer = await this.#ask(opening)
      while (!answer.done) {
        const next = this.#ask({ kind: 'next', id: ++this.#id, list })
        // It is looked at when this one has been used; until then a failure is nobody's.
        next.catch(() => {})
        const timer = setTimeout(free, this.#options.idle).unref()
        try {
          yield answer
        } finally {
          clearTimeout(timer)
        }
        answer = await next
      }
      free(true)
      yield answer
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

  #toOpening ({ sql, values }: Statement, size = BATCH_SIZE): Opening {
    return { kind: 'open', id: ++this.#id, size, sql, values }
  }

  #ask (question: Exclude<Question, { kind: 'close' }>): Promise<Answer> {
    if (this.#closed) return Promise.reject(storeError(new Error('the store is closed')))
    if (this.#questions.size >= QUESTIONS) return Promise.reject(busyError('reads'))
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    const { timeout } = this.#options
    const timer = setTimeout(() => this.#settle({ id: question.id, failure: { message: `a read took more than ${timeout} ms` } }), timeout)
    this.#questions.set(question.id, { settle: { resolve, reject }, timer })
    this.#thread.post(question)
    return promise
  }

  #settle (answer: Answer): void {
    const question = this.#questions.get(answer.id)
    if (question === undefined) return
    this.#questions.delete(answer.id)
    clearTimeout(question.timer)
    const { resolve, reject } = question.settle!
    // A table that the map has outgrown still has its entries, and each table is kept by the one before it until all of
    // the old space is looked through: no way must lead from there to what the list was given.
    question.settle = undefined
    if (answer.failure === undefined) resolve(answer)
    else reject(fromFailure(answer.failure))
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
