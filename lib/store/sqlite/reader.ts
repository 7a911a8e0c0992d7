import type { SQLInputValue } from 'node:sqlite'
import { TIMERS, type Timers } from '../../timers.ts'
import type { PageQuery, Rendering, StoreOptions, Urgency } from '../port.ts'
import type { Failure } from './failure.ts'
import type { Statement } from './sql.ts'
import { ThreadCalls } from './thread-calls.ts'
import { type ThreadData, threadFile } from './thread.ts'

export interface ReaderData extends ThreadData, Pick<StoreOptions, 'renderers'> {}

/** What the main thread asks a reader thread. `list` identifies an open list. */
export type Question =
  | { kind: 'count' | 'page', sql: string, values: SQLInputValue[] }
  | Opening
  | { kind: 'next', list: number }
  | { kind: 'close', list: number }

export interface Opening {
  kind: 'open'
  list: number
  sql: string
  values: SQLInputValue[]
  /** Answer with pieces of text instead of batches; the first is of one batch. */
  rendering?: Rendering
}

/** The first documents of a page, as JSON. */
export interface Part {
  docs: string[]
  /** These are all. */
  done: boolean
}

export interface Answer {
  docs?: string[]
  piece?: string
  /** The page or list is complete. */
  done?: boolean
  count?: number
}

/** Milliseconds a list may go unread: its cursor keeps the log from being truncated. MongoDB has the same limit. */
const IDLE = 600_000

export interface ReaderOptions {
  /** Milliseconds a batch, a page or a count may take, waiting included. */
  timeout: number
  /** Milliseconds a list may go unread. */
  idle?: number
  timers?: Timers
  /** Called with each failure of the threads. */
  onFailure?: ((failure: Failure) => void) | undefined
  /** The thread's file, for tests. */
  file?: URL
}

/** Reads in two threads: urgent reads never wait for one that may read a whole table. */
export class Reader {
  readonly #bulk: ThreadCalls<Question, Answer>
  readonly #urgent: ThreadCalls<Question, Answer>
  readonly #options: Required<Pick<ReaderOptions, 'idle' | 'timers'>>
  /** Ends the lists that hold a cursor; the oldest first. */
  readonly #open = new Set<() => void>()
  #list = 0

  constructor (data: ReaderData, { timeout, idle = IDLE, timers = TIMERS, onFailure, file = threadFile('reader-thread') }: ReaderOptions) {
    const { renderers: _renderers, ...plain } = data
    this.#options = { idle, timers }
    this.#bulk = new ThreadCalls(file, data, { timeout, timers, onFailure })
    this.#urgent = new ThreadCalls(file, plain, { timeout, timers, onFailure })
  }

  async count ({ sql, values }: Statement, { urgent }: Urgency = {}): Promise<number> {
    return (await this.#threadFor(urgent).call({ kind: 'count', sql, values })).count!
  }

  /** The first documents, as many as fit an answer, and whether these are all. */
  async page ({ sql, values }: Statement, { urgent, until }: Pick<PageQuery, 'urgent' | 'until'> = {}): Promise<Part> {
    const { docs, done } = await this.#threadFor(urgent).call({ kind: 'page', sql, values }, until)
    return { docs: docs!, done: done! }
  }

  /** The documents in batches; the next batch is read while the last is used. */
  async * stream ({ sql, values }: Statement): AsyncGenerator<string[], void, undefined> {
    for await (const { docs } of this.#read({ kind: 'open', list: ++this.#list, sql, values })) if (docs!.length > 0) yield docs!
  }

  /** The documents as the thread renders them. */
  async * render ({ sql, values }: Statement, rendering: Rendering): AsyncGenerator<string, void, undefined> {
    for await (const { piece } of this.#read({ kind: 'open', list: ++this.#list, sql, values, rendering })) if (piece !== '') yield piece!
  }

  #threadFor (urgent = false): ThreadCalls<Question, Answer> {
    return urgent ? this.#urgent : this.#bulk
  }

  /** Batches or pieces; the next is read while the last is used. */
  async * #read (opening: Opening): AsyncGenerator<Answer, void, undefined> {
    const { list } = opening
    const { idle, timers } = this.#options
    // The thread closes the cursor itself at the end of the list.
    const end = () => { if (this.#open.delete(end)) this.#bulk.post({ kind: 'close', list }) }
    this.#open.add(end)
    try {
      let answer = await this.#bulk.call(opening)
      while (!answer.done) {
        const next = this.#bulk.call({ kind: 'next', list })
        // Awaited only after this batch is used: until then a failure must not count as unhandled.
        next.catch(() => {})
        const timer = timers.set(end, idle).unref()
        try {
          yield answer
        } finally {
          timers.clear(timer)
        }
        answer = await next
      }
      this.#open.delete(end)
      yield answer
    } finally {
      end()
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
    await Promise.all([this.#bulk.close(), this.#urgent.close()])
  }
}
