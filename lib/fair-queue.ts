import { busyError, goneError } from './errors.ts'
import { TIMERS, type Timers } from './timers.ts'

/** Number of most recently served keys whose last turn is stored. Any other key counts as never served. */
const KEYS = 10_000

/** The weight of a new duration in the moving average. */
const WEIGHT = 1 / 8

/**
 * The group of all known callers: of accounts and clients that have proved who they are, and of browsers in which an account has signed in.
 * While one waits, every second turn is theirs, so strangers make them wait for themselves only. Its keys are accounts and clients.
 */
export const KNOWN = 'known'

/** Assigns a job to a key and a group, and allows it to be aborted. */
export interface Turn {
  /** Jobs with the same key share one turn. */
  key?: string | undefined
  /** Keys of a group take turns among themselves, and the group has the turns of a single key. Absent: the key is its own group. */
  group?: string | undefined
  /** Aborted when the caller has disconnected. A job that has not started is then dropped. */
  signal?: AbortSignal | undefined
}

export interface FairQueueOptions {
  /** The kind of job, for the message of ErrBusy. */
  what: string
  /** Concurrent jobs. */
  slots: number
  /**
   * Jobs that may wait. This bounds memory. When all places are taken, the last job of the group that has most gives its place to one of a
   * group that has fewer, so that no group fills them for the others. Known callers have half of the places for
   * themselves, as far as they need them.
   */
  places: number
  /** Milliseconds that a job may wait. */
  maxWait: number
  /** Estimated milliseconds per job, until durations are measured. */
  duration: number
  timers?: Timers
}

/** The waiting jobs of one key, in the order of arrival. */
type Jobs = Set<Job>

interface Job {
  cost: number
  begin: () => void
  /** Ends its wait with an error. */
  fail: (error: Error) => void
}

/** The number of the last turn of each of the most recently served names. */
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

/** The turns that these jobs take. */
function sumCosts (jobs: Jobs): number {
  let sum = 0
  for (const { cost } of jobs) sum += cost
  return sum
}

/** The jobs of a group. */
function countJobs (keys: Map<string, Jobs> | undefined): number {
  let count = 0
  for (const { size } of keys?.values() ?? []) count += size
  return count
}

/** The entry with the greatest number. */
function findMost<T> (entries: Iterable<[name: string, value: T]>, count: (value: T, name: string) => number): T | undefined {
  let most: { value: T, count: number } | undefined
  for (const [name, value] of entries) {
    const found = count(value, name)
    if (most === undefined || found > most.count) most = { value, count: found }
  }
  return most?.value
}

/** Turns until the last of `own` jobs of a name starts, while other waiting names take turns with it. */
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
 * A queue in which keys take turns. The least recently served key is next, and a key that was never served comes before all
 * others. A caller with many jobs waits behind their own jobs, and a new caller is served soon. Groups take turns in the same way
 * before their keys do, so a caller gains nothing by using many keys.
 */
export class FairQueue {
  readonly #options: FairQueueOptions
  readonly #timers: Timers
  /** The waiting jobs by group and key. No map or set in it is empty. */
  readonly #waiting = new Map<string, Map<string, Jobs>>()
  readonly #servedGroups = new LastTurns()
  readonly #servedKeys = new LastTurns()
  readonly #idle: (() => void)[] = []
  #turns = 0
  #places = 0
  #running = 0
  #isKnownServed = false
  #endedAt = Number.NEGATIVE_INFINITY
  #duration: number

  constructor ({ timers = TIMERS, ...options }: FairQueueOptions) {
    this.#options = options
    this.#timers = timers
    this.#duration = options.duration
  }

  /**
   * Runs the job when its turn comes.
   * @param cost the turns that a slow job counts as: others have theirs before its key is next
   * @throws ErrBusy when the wait is too long, or is expected to be; its Retry-After is the expected wait
   */
  async run<T> (work: () => Promise<T>, { key = '', group = key, signal }: Turn = {}, cost = 1): Promise<T> {
    if (signal?.aborted === true) throw goneError()
    if (this.#running < this.#options.slots) this.#begin(group, key, cost)
    else await this.#wait(group, key, cost, signal)
    const start = this.#timers.now()
    try {
      return await work()
    } finally {
      // An outlier, such as the start of a thread, must not make the queue look long.
      const duration = Math.min((this.#timers.now() - start) / cost, 2 * Math.max(this.#duration, 1))
      this.#duration += WEIGHT * (duration - this.#duration)
      this.#next()
    }
  }

  /** The number of waiting jobs. */
  get waiting (): number {
    return this.#places
  }

  /** Milliseconds since the last job ended: 0 while one runs, Infinity before the first. */
  get rest (): number {
    return this.#running > 0 ? 0 : this.#timers.now() - this.#endedAt
  }

  /** Resolves when no job runs or waits. */
  async idle (): Promise<void> {
    if (this.#running > 0) await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  async #wait (group: string, key: string, cost: number, signal: AbortSignal | undefined): Promise<void> {
    const wait = this.#expectWait(group, key)
    if (wait > this.#options.maxWait || (this.#places >= this.#options.places && !this.#makePlace(group, key))) throw busyError(this.#options.what, wait)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const job: Job = {
      cost,
      begin: resolve,
      fail: (error) => {
        this.#remove(group, key, job)
        reject(error)
      }
    }
    const keys = this.#waiting.get(group) ?? new Map<string, Jobs>()
    const jobs = keys.get(key) ?? new Set()
    this.#waiting.set(group, keys.set(key, jobs.add(job)))
    this.#places++
    const drop = () => job.fail(goneError())
    const timer = this.#timers.set(() => job.fail(busyError(this.#options.what, this.#expectWait(group, key))), this.#options.maxWait)
    timer.unref?.()
    signal?.addEventListener('abort', drop)
    await promise.finally(() => {
      this.#timers.clear(timer)
      signal?.removeEventListener('abort', drop)
    })
  }

  /** Drops a job of the group that has most, or else of the known caller that has most. False if they would then have fewer than this one. */
  #makePlace (group: string, key: string): boolean {
    const own = this.#waiting.get(group)
    const most = findMost(this.#waiting, (keys, name) => this.#countShare(keys, name))
    const name = most === this.#waiting.get(KNOWN) ? KNOWN : ''
    const isShared = this.#countShare(most, name) <= this.#countShare(own, group) + 1
    if (isShared && group !== KNOWN) return false
    const longest = findMost((isShared ? own : most) ?? [], ({ size }) => size)
    if (longest === undefined || (isShared && longest.size <= (own?.get(key)?.size ?? 0) + 1)) return false
    const last = [...longest].at(-1)
    last?.fail(busyError(this.#options.what))
    return last !== undefined
  }

  /** The places that a group has. Known callers have half of all beside. */
  #countShare (keys: Map<string, Jobs> | undefined, group: string): number {
    return countJobs(keys) - (group === KNOWN ? Math.floor(this.#options.places / 2) : 0)
  }

  #remove (group: string, key: string, job: Job): void {
    const keys = this.#waiting.get(group)
    const jobs = keys?.get(key)
    if (keys === undefined || jobs?.delete(job) !== true) return
    this.#places--
    if (jobs.size === 0) keys.delete(key)
    if (keys.size === 0) this.#waiting.delete(group)
  }

  #begin (group: string, key: string, cost: number): void {
    this.#running++
    this.#turns++
    this.#isKnownServed = group === KNOWN
    const last = this.#turns + cost - 1
    this.#servedGroups.set(group, last)
    this.#servedKeys.set(key, last)
  }

  /** Expected milliseconds until one more job of this key would start. */
  #expectWait (group: string, key: string): number {
    const keys = this.#waiting.get(group) ?? new Map<string, Jobs>()
    const inGroup = countTurns(key, 1 + sumCosts(keys.get(key) ?? new Set()), this.#sizesOf(keys), this.#servedKeys)
    const fair = countTurns(group, inGroup, this.#sizes(), this.#servedGroups)
    const turns = group === KNOWN ? Math.min(fair, 2 * inGroup) : fair + Math.min(fair, countJobs(this.#waiting.get(KNOWN)))
    return turns * this.#duration / this.#options.slots
  }

  * #sizesOf (keys: Map<string, Jobs>): Generator<[key: string, size: number]> {
    for (const [key, jobs] of keys) yield [key, sumCosts(jobs)]
  }

  * #sizes (): Generator<[group: string, size: number]> {
    for (const [group, keys] of this.#waiting) {
      let sum = 0
      for (const jobs of keys.values()) sum += sumCosts(jobs)
      yield [group, sum]
    }
  }

  /** Gives the free slot to the least recently served key of the least recently served group. */
  #next (): void {
    this.#running--
    this.#endedAt = this.#timers.now()
    const known = this.#isKnownServed ? undefined : this.#waiting.get(KNOWN)
    const [group, keys] = known === undefined ? findNext(this.#waiting, this.#servedGroups) ?? [] : [KNOWN, known]
    const [key, jobs] = findNext(keys ?? [], this.#servedKeys) ?? []
    const [job] = jobs ?? []
    if (group !== undefined && key !== undefined && job !== undefined) {
      this.#remove(group, key, job)
      this.#begin(group, key, job.cost)
      job.begin()
    }
    if (this.#running === 0) for (const resolve of this.#idle.splice(0)) resolve()
  }
}
