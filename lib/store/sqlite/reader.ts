import type { SQLInputValue } from 'node:sqlite'
import { busyError, goneError } from '../../errors.ts'
import { TIMERS, type Timers } from '../../timers.ts'
import { BATCH_SIZE, type Rendering, type StoreOptions } from '../port.ts'
import type { Failure } from './failure.ts'
import type { Statement } from './sql.ts'
import { ThreadCalls } from './thread-calls.ts'
import { type ThreadData, threadFile } from './thread.ts'

export interface ReaderData extends ThreadData, Pick<StoreOptions, 'renderers'> {}

/** What the main thread asks a reader thread. `list` identifies an open list. */
export type Question =
  | { kind: 'count', sql: string, values: SQLInputValue[] }
  | Opening
  | { kind: 'next', list: number }
  | { kind: 'close', list: number }

export interface Opening {
  kind: 'open'
  list: number
  sql: string
  values: SQLInputValue[]
  /** The most documents of a batch. */
  size: number
  /** Answer with the whole list and no cursor, or with nothing when it is too large for one answer. */
  whole?: true
  /** Answer with pieces of text instead of batches; the first is of one batch. */
  rendering?: Rendering
}

export interface Answer {
  docs?: string[]
  piece?: string
  /** The list is complete, and its cursor is closed. */
  done?: boolean
  count?: number
}

/** Lists that may hold a cursor at once, and lists that may wait for one. */
const CURSORS = 64
const WAITING = 1_000
/** Milliseconds a list may go unread: its cursor keeps the log from being truncated. MongoDB has the same limit. */
const IDLE = 600_000

export interface ReaderOptions {
  /** Milliseconds a batch or a count may take, waiting included. */
  timeout: number
  /** Milliseconds a list may go unread, and lists that may hold a cursor. */
  idle?: number
  cursors?: number
  timers?: Timers
  /** Called with each failure of the threads. */
  onFailure?: ((failure: Failure) => void) | undefined
  /** The thread's file, for tests. */
  file?: URL
}

/** Reads lists in one thread and counts in another: a count may read a whole table, and no list waits for it. */
export class Reader {
  readonly #lists: ThreadCalls<Question, Answer>
  readonly #counts: ThreadCalls<Question, Answer>
  readonly #options: Required<Omit<ReaderOptions, 'file' | 'onFailure'>>
  readonly #queue = new Set<() => void>()
  /** Ends the lists that hold a cursor; the oldest first. */
  readonly #open = new Set<() => void>()
  #cursors = 0
  #list = 0

  constructor (data: ReaderData, { timeout, idle = IDLE, cursors = CURSORS, timers = TIMERS, onFailure, file = threadFile('reader-thread') }: ReaderOptions) {
    const { renderers: _renderers, ...plain } = data
    this.#options = { timeout, idle, cursors, timers }
    this.#lists = new ThreadCalls(file, data, { timeout, timers, onFailure })
    this.#counts = new ThreadCalls(file, plain, { timeout, timers, onFailure })
  }

  async count ({ sql, values }: Statement): Promise<number> {
    return (await this.#counts.call({ kind: 'count', sql, values })).count!
  }

  /**
   * The documents in batches; the next batch is read while the last is used. A `short` list has at most one document more
   * than a batch, and is first tried in one answer. It takes no cursor, so it never waits for slow readers of long lists.
   * If its documents are too large for that, it is read as a long list.
   */
  async * list (statement: Statement, short: boolean, signal?: AbortSignal): AsyncGenerator<string[], void, undefined> {
    const { docs, done } = short ? await this.#lists.call({ ...this.#toOpening(statement, BATCH_SIZE + 1), whole: true }) : {}
    if (done !== true) {
      for await (const { docs } of this.#readLong(this.#toOpening(statement), signal)) if (docs!.length > 0) yield docs!
      return
    }
    for (let rest = docs!; rest.length > 0; rest = rest.slice(BATCH_SIZE)) yield rest.slice(0, BATCH_SIZE)
  }

  /** The documents as the thread renders them. */
  async * render (statement: Statement, rendering: Rendering, signal?: AbortSignal): AsyncGenerator<string, void, undefined> {
    for await (const { piece } of this.#readLong({ ...this.#toOpening(statement), rendering }, signal)) if (piece !== '') yield piece!
  }

  /** Batches or pieces; the next is read while the last is used. */
  async * #readLong (opening: Opening, signal?: AbortSignal): AsyncGenerator<Answer, void, undefined> {
    await this.#enter(signal)
    const { list } = opening
    let entered = true
    const leave = (ended = false) => {
      if (!entered) return
      entered = false
      this.#open.delete(end)
      // The thread closes the cursor itself at the end of the list.
      if (!ended) this.#lists.post({ kind: 'close', list })
      this.#leave()
    }
    const end = () => leave()
    this.#open.add(end)
    const { idle, timers } = this.#options
    try {
      let answer = await this.#lists.call(opening)
      while (!answer.done) {
        const next = this.#lists.call({ kind: 'next', list })
        // Awaited only after this batch is used: until then a failure must not count as unhandled.
        next.catch(() => {})
        const timer = timers.set(leave, idle).unref()
        try {
          yield answer
        } finally {
          timers.clear(timer)
        }
        answer = await next
      }
      leave(true)
      yield answer
    } finally {
      leave()
    }
  }

  /** Ends the list that has held a cursor longest: its reader gets an error. False when there is none. */
  endOldest (): boolean {
    const [end] = this.#open
    end?.()
    return end !== undefined
  }

  /** Ends the threads, and with them the open lists. */
  async close (): Promise<void> {
    const closing = Promise.all([this.#lists.close(), this.#counts.close()])
    for (const enter of this.#queue) enter()
    this.#queue.clear()
    await closing
  }

  #toOpening ({ sql, values }: Statement, size = BATCH_SIZE): Opening {
    return { kind: 'open', list: ++this.#list, size, sql, values }
  }

  /** Waits for a cursor slot, until the caller disconnects or the timeout passes. */
  async #enter (signal: AbortSignal | undefined): Promise<void> {
    if (signal?.aborted === true) throw goneError()
    const { cursors, timeout, timers } = this.#options
    if (this.#cursors < cursors) {
      this.#cursors++
      return
    }
    if (this.#queue.size >= WAITING) throw busyError('lists')
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#queue.add(resolve)
    const timer = timers.set(() => {
      if (this.#queue.delete(resolve)) reject(busyError('lists'))
    }, timeout)
    const drop = () => {
      if (this.#queue.delete(resolve)) reject(goneError())
    }
    signal?.addEventListener('abort', drop)
    await promise.finally(() => {
      timers.clear(timer)
      signal?.removeEventListener('abort', drop)
    })
  }

  /** Hands the cursor slot to the list that has waited longest. */
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
