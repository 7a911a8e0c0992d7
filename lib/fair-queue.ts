import { busyError, goneError } from './errors.ts'
import type { Actor } from './roles.ts'
import { TIMERS, type Timers } from './timers.ts'

/** Keys whose last turn is remembered: those served most recently. Any other key counts as never served. */
const KEYS = 10_000

/** Of a new duration in the mean. */
const WEIGHT = 1 / 8

/** Who waits for a piece of work, and until when. */
export interface Turn {
  /** Work with the same key shares one turn. */
  key?: string | undefined
  /** Aborted when nobody waits for the result any more: work that has not begun is dropped. */
  signal?: AbortSignal | undefined
}

/** What a user asks for shares a turn, whatever their address. */
export function toTurn ({ user_id, signal }: Pick<Actor, 'user_id' | 'signal'>): Turn {
  return { key: `user ${user_id}`, signal }
}

export interface FairQueueOptions {
  /** The kind of work, for the message of ErrBusy. */
  what: string
  /** Pieces of work at once. */
  slots: number
  /** Pieces of work that may wait: a bound on memory, which the expected wait reaches first. */
  places: number
  /** Milliseconds that work may wait. */
  maxWait: number
  /** Milliseconds that one piece of work probably takes, until durations are measured. */
  duration: number
  timers?: Timers
}

interface Job {
  since: number
  begin: () => void
  fail: (error: Error) => void
}

/**
 * Work that takes turns by key: the least recently served key is next, and a key that was never served comes before all
 * others. Whoever asks for much waits behind their own work, and a stranger is soon served.
 */
export class FairQueue {
  readonly #options: FairQueueOptions
  readonly #timers: Timers
  /** What waits, by key, each in the order of its arrival. No set is empty. */
  readonly #waiting = new Map<string, Set<Job>>()
  /** The number of each key's last turn, in the order of these turns. */
  readonly #served = new Map<string, number>()
  readonly #idle: (() => void)[] = []
  #turns = 0
  #places = 0
  #running = 0
  #duration: number

  constructor ({ timers = TIMERS, ...options }: FairQueueOptions) {
    this.#options = options
    this.#timers = timers
    this.#duration = options.duration
  }

  /**
   * Does the work when its turn comes.
   * @throws ErrBusy when the wait is, or is expected to be, too long; its Retry-After is the expected wait
   */
  async run<T> (work: () => Promise<T>, { key = '', signal }: Turn = {}): Promise<T> {
    if (signal?.aborted === true) throw goneError()
    if (this.#running < this.#options.slots) this.#begin(key)
    else await this.#wait(key, signal)
    const start = this.#timers.now()
    try {
      return await work()
    } finally {
      // An outlier, such as the start of a thread, must not make the queue look long.
      const duration = Math.min(this.#timers.now() - start, 2 * Math.max(this.#duration, 1))
      this.#duration += WEIGHT * (duration - this.#duration)
      this.#next()
    }
  }

  /** The number of pieces of work that wait. */
  get waiting (): number {
    return this.#places
  }

  /** Resolves when no work runs or waits. */
  async idle (): Promise<void> {
    if (this.#running > 0) await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  async #wait (key: string, signal: AbortSignal | undefined): Promise<void> {
    const wait = this.#expectWait(key)
    if (wait > this.#options.maxWait || this.#places >= this.#options.places) throw busyError(this.#options.what, wait)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const job: Job = { since: this.#timers.now(), begin: resolve, fail: reject }
    const jobs = this.#waiting.get(key)
    if (jobs === undefined) this.#waiting.set(key, new Set([job]))
    else jobs.add(job)
    this.#places++
    const drop = () => {
      this.#remove(key, job)
      reject(goneError())
    }
    signal?.addEventListener('abort', drop)
    await promise.finally(() => signal?.removeEventListener('abort', drop))
  }

  #remove (key: string, job: Job): void {
    const jobs = this.#waiting.get(key)
    if (jobs?.delete(job) !== true) return
    this.#places--
    if (jobs.size === 0) this.#waiting.delete(key)
  }

  #begin (key: string): void {
    this.#running++
    this.#served.delete(key)
    this.#served.set(key, ++this.#turns)
    if (this.#served.size <= KEYS) return
    const [oldest] = this.#served.keys()
    if (oldest !== undefined) this.#served.delete(oldest)
  }

  #lastTurn (key: string): number {
    return this.#served.get(key) ?? 0
  }

  /** Milliseconds until the turn of one more piece of work with this key. */
  #expectWait (key: string): number {
    const own = this.#waiting.get(key)?.size ?? 0
    const last = this.#lastTurn(key)
    let before = 1 + own
    for (const [other, { size }] of this.#waiting) {
      if (other !== key) before += Math.min(size, this.#lastTurn(other) <= last ? own + 1 : own)
    }
    return before * this.#duration / this.#options.slots
  }

  /** Hands the slot to the least recently served key, and refuses what has waited too long. */
  #next (): void {
    this.#running--
    const oldest = this.#timers.now() - this.#options.maxWait
    let least = Infinity
    let next: [key: string, job: Job] | undefined
    for (const [key, jobs] of this.#waiting) {
      for (const job of jobs) {
        if (job.since >= oldest) break
        this.#remove(key, job)
        job.fail(busyError(this.#options.what, this.#expectWait(key)))
      }
      const [first] = jobs
      const last = this.#lastTurn(key)
      if (first === undefined || last >= least) continue
      least = last
      next = [key, first]
    }
    if (next !== undefined) {
      this.#remove(...next)
      this.#begin(next[0])
      next[1].begin()
    }
    if (this.#running === 0) for (const resolve of this.#idle.splice(0)) resolve()
  }
}
