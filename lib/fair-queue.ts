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
  /** Keys with the same group take turns among themselves, and share the turns of one. Absent: the key is a group of its own. */
  group?: string | undefined
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

/** What waits with one key, in the order of its arrival. */
type Jobs = Set<Job>

interface Job {
  since: number
  begin: () => void
  fail: (error: Error) => void
}

/** The numbers of last turns, of those served most recently. */
class LastTurns {
  readonly #turns = new Map<string, number>()

  get (name: string): number {
    return this.#turns.get(name) ?? 0
  }

  set (name: string, turn: number): void {
    this.#turns.delete(name)
    this.#turns.set(name, turn)
    if (this.#turns.size <= KEYS) return
    const [oldest] = this.#turns.keys()
    if (oldest !== undefined) this.#turns.delete(oldest)
  }
}

/** Turns until the last of `own` pieces of work by one name, while the others that wait take turns with it. */
function countTurns (name: string, own: number, others: Iterable<[name: string, size: number]>, served: LastTurns): number {
  const last = served.get(name)
  let turns = own
  for (const [other, size] of others) {
    if (other !== name) turns += Math.min(size, served.get(other) <= last ? own : own - 1)
  }
  return turns
}

/** The least recently served name. */
function findNext<T> (entries: Iterable<[name: string, value: T]>, served: LastTurns): [name: string, value: T] | undefined {
  let next: [name: string, value: T] | undefined
  for (const entry of entries) if (next === undefined || served.get(entry[0]) < served.get(next[0])) next = entry
  return next
}

/**
 * Work that takes turns by key: the least recently served key is next, and a key that was never served comes before all
 * others. Whoever asks for much waits behind their own work, and a stranger is soon served. Groups take turns in the same way
 * before their keys do, so that many keys give their holder no more than one.
 */
export class FairQueue {
  readonly #options: FairQueueOptions
  readonly #timers: Timers
  /** What waits, by group and key. No map and no set is empty. */
  readonly #waiting = new Map<string, Map<string, Jobs>>()
  readonly #servedGroups = new LastTurns()
  readonly #servedKeys = new LastTurns()
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
  async run<T> (work: () => Promise<T>, { key = '', group = key, signal }: Turn = {}): Promise<T> {
    if (signal?.aborted === true) throw goneError()
    if (this.#running < this.#options.slots) this.#begin(group, key)
    else await this.#wait(group, key, signal)
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

  async #wait (group: string, key: string, signal: AbortSignal | undefined): Promise<void> {
    const wait = this.#expectWait(group, key)
    if (wait > this.#options.maxWait || this.#places >= this.#options.places) throw busyError(this.#options.what, wait)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const job: Job = { since: this.#timers.now(), begin: resolve, fail: reject }
    const keys = this.#waiting.get(group) ?? new Map<string, Jobs>()
    const jobs = keys.get(key) ?? new Set()
    this.#waiting.set(group, keys.set(key, jobs.add(job)))
    this.#places++
    const drop = () => {
      this.#remove(group, key, job)
      reject(goneError())
    }
    signal?.addEventListener('abort', drop)
    await promise.finally(() => signal?.removeEventListener('abort', drop))
  }

  #remove (group: string, key: string, job: Job): void {
    const keys = this.#waiting.get(group)
    const jobs = keys?.get(key)
    if (keys === undefined || jobs?.delete(job) !== true) return
    this.#places--
    if (jobs.size === 0) keys.delete(key)
    if (keys.size === 0) this.#waiting.delete(group)
  }

  #begin (group: string, key: string): void {
    this.#running++
    this.#turns++
    this.#servedGroups.set(group, this.#turns)
    this.#servedKeys.set(key, this.#turns)
  }

  /** Milliseconds until the turn of one more piece of work with this key. */
  #expectWait (group: string, key: string): number {
    const keys = this.#waiting.get(group) ?? new Map<string, Jobs>()
    const inGroup = countTurns(key, 1 + (keys.get(key)?.size ?? 0), this.#sizesOf(keys), this.#servedKeys)
    const turns = countTurns(group, inGroup, this.#sizes(), this.#servedGroups)
    return turns * this.#duration / this.#options.slots
  }

  * #sizesOf (keys: Map<string, Jobs>): Generator<[key: string, size: number]> {
    for (const [key, { size }] of keys) yield [key, size]
  }

  * #sizes (): Generator<[group: string, size: number]> {
    for (const [group, keys] of this.#waiting) {
      let sum = 0
      for (const { size } of keys.values()) sum += size
      yield [group, sum]
    }
  }

  /** Refuses what has waited too long. */
  #expire (): void {
    const oldest = this.#timers.now() - this.#options.maxWait
    for (const [group, keys] of this.#waiting) {
      for (const [key, jobs] of keys) {
        for (const job of jobs) {
          if (job.since >= oldest) break
          this.#remove(group, key, job)
          job.fail(busyError(this.#options.what, this.#expectWait(group, key)))
        }
      }
    }
  }

  /** Hands the slot to the least recently served key of the least recently served group. */
  #next (): void {
    this.#running--
    this.#expire()
    const [group, keys] = findNext(this.#waiting, this.#servedGroups) ?? []
    const [key, jobs] = findNext(keys ?? [], this.#servedKeys) ?? []
    const [job] = jobs ?? []
    if (group !== undefined && key !== undefined && job !== undefined) {
      this.#remove(group, key, job)
      this.#begin(group, key)
      job.begin()
    }
    if (this.#running === 0) for (const resolve of this.#idle.splice(0)) resolve()
  }
}
