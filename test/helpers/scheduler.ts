import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Around, type StoreCall, isListing } from './wrap-store.ts'

/** A store call in the log. */
export interface Step extends StoreCall {
  actor: string
}

/** A call that waits. The id is the same in every run with the same calls before it. */
export interface Waiting extends Step {
  id: string
}

/** Picks one of `count` possible next steps: the calls that wait. */
export type Choose = (count: number, waiting?: readonly Waiting[]) => number

/** A pseudo-random sequence, the same for the same seed (mulberry32). */
export function createRandom (seed: number): Choose {
  let state = seed
  return (count) => {
    state = (state + 0x6D2B79F5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % count
  }
}

/**
 * Tries every sequence of choices, one run each. It counts like an odometer whose digits have the ranges that the runs reveal.
 * @param most the maximum number of runs
 * @returns the number of runs, and whether they covered every sequence
 */
export async function exhaust (most: number, run: (choose: Choose) => Promise<void>): Promise<{ runs: number, complete: boolean }> {
  let path: { choice: number, count: number }[] = []
  for (let runs = 1; ; runs++) {
    let depth = 0
    await run((count) => {
      const step = path[depth] ?? { choice: 0, count }
      path[depth++] = step
      return step.choice
    })
    while (path.length > 0 && path.at(-1)!.choice + 1 === path.at(-1)!.count) path = path.slice(0, -1)
    const last = path.at(-1)
    if (last === undefined) return { runs, complete: true }
    if (runs === most) return { runs, complete: false }
    last.choice++
  }
}

/** Calls that read only. */
const READS = ['get', 'getBy', 'getLinked', 'count', 'next', 'return']

/** Whether the order of two calls cannot matter: both only read. */
const commute = (one: StoreCall, other: StoreCall): boolean => READS.includes(one.method) && READS.includes(other.method)

/** A place where the runs branch: the calls that may come next, of which those before `index` have been tried. */
interface Branch { calls: Waiting[], index: number, asleep: Waiting[] }

/**
 * Tries every sequence of choices that can end differently. Of the sequences that differ in the order of reads only, it tries one: a call is
 * *asleep* where a branch that was tried before begins with it, until a call comes that it does not commute with (sleep sets, Godefroid 1996).
 * @param most the maximum number of runs
 * @returns the number of runs, and whether they covered every sequence
 */
export async function exhaustDistinct (most: number, run: (choose: Choose) => Promise<void>): Promise<{ runs: number, complete: boolean }> {
  const path: Branch[] = []
  for (let runs = 1; ; runs++) {
    let depth = 0
    let asleep: Waiting[] = []
    let isKnown = false
    await run((_count, waiting = []) => {
      const calls = waiting.filter(({ id }) => !asleep.some((one) => one.id === id))
      // Another run has gone on like this one, which is played to its end without branches.
      isKnown ||= calls.length === 0
      if (isKnown) return 0
      const branch = path[depth] ??= { calls, index: 0, asleep }
      depth++
      const chosen = branch.calls[branch.index]!
      asleep = [...branch.asleep, ...branch.calls.slice(0, branch.index)].filter((one) => commute(one, chosen))
      return waiting.findIndex(({ id }) => id === chosen.id)
    })
    while (path.length > 0 && path.at(-1)!.index + 1 === path.at(-1)!.calls.length) path.pop()
    const last = path.at(-1)
    if (last === undefined) return { runs, complete: true }
    if (runs === most) return { runs, complete: false }
    last.index++
  }
}

interface Actor {
  name: string
  isOver: boolean
  /** The calls that it has made. */
  calls: number
}

/**
 * Suspends every actor at each store call, and lets one call proceed at a time. Between their calls the actors share no state,
 * so every possible interleaving is an order of these calls.
 */
export class Scheduler {
  /** The calls made so far, in order. */
  readonly log: Step[] = []
  readonly #actor = new AsyncLocalStorage<Actor>()
  readonly #actors = new Map<string, Actor>()
  readonly #waiting: (Waiting & { proceed: () => Promise<void> })[] = []
  /** Calls in flight whose order cannot matter. */
  #passing = 0
  /** Whether the order of a call can matter. If not, the call proceeds at once. */
  isShared: (call: StoreCall) => boolean = () => true
  /**
   * Whether to wait until every actor is suspended or has ended, and until the work that they left behind has too. Otherwise the
   * time between their store calls, for a socket or a hash, would influence the order.
   */
  waitsForAll = false
  /** Throws to make a call fail. */
  interrupt: (step: Step, log: readonly Step[]) => void = () => {}

  /** For wrapStore. Calls outside `run` proceed at once. */
  readonly around: Around = (call, run) => {
    const current = this.#actor.getStore()
    if (current === undefined || current.isOver) return run()
    const actor = current.name
    if (isListing(call.method)) return run()
    if (!this.isShared(call)) return this.#pass(run())
    return new Promise((resolve, reject) => {
      const proceed = async () => {
        const step = { actor, ...call }
        try {
          this.interrupt(step, this.log)
          this.log.push(step)
          resolve(await run())
        } catch (error) {
          reject(error)
        }
      }
      this.#waiting.push({ id: `${actor} ${current.calls++}`, actor, ...call, proceed })
    })
  }

  #pass (result: unknown): unknown {
    if (!(result instanceof Promise)) return result
    this.#passing++
    return result.finally(() => { this.#passing-- })
  }

  /** Runs work as an actor when the async context is lost: behind a socket. */
  as<T> (name: string, work: () => T): T {
    return this.#actor.run(this.#actors.get(name) ?? { name, isOver: true, calls: 0 }, work)
  }

  /** Runs the actors to completion, in the order that `choose` picks. */
  async run (actors: Record<string, () => Promise<unknown>>, choose: Choose): Promise<void> {
    const active = new Set(Object.keys(actors))
    this.log.length = 0
    this.#actors.clear()
    for (const [name, act] of Object.entries(actors)) {
      const actor = { name, isOver: false, calls: 0 }
      this.#actors.set(name, actor)
      void this.#actor.run(actor, () => act().catch(() => {}).finally(() => { active.delete(name) }))
    }
    const isReady = () => !this.waitsForAll || [...active].every((name) => this.#waiting.some(({ actor }) => actor === name))
    for (let idle = 0; active.size > 0 || (this.waitsForAll && this.#waiting.length > 0); idle++) {
      // Microtasks are done by then, so each actor is suspended at a call or has ended.
      // An actor's work between store calls may take longer, and needs the processor.
      await (this.waitsForAll && idle > 20 ? sleep(1) : new Promise(setImmediate))
      if (this.#passing > 0 || this.#waiting.length === 0 || !isReady()) {
        // Many, because a store on a file waits for the disk.
        if (idle > 10_000_000) throw new Error('the actors wait for something other than a store call')
        continue
      }
      idle = 0
      // Which of them was suspended first does not matter: a choice is the same in each run.
      if (this.waitsForAll) this.#waiting.sort((one, other) => one.actor < other.actor ? -1 : Number(one.actor > other.actor))
      const [next] = this.#waiting.splice(choose(this.#waiting.length, this.#waiting), 1)
      await next!.proceed()
    }
    // Work that an actor leaves behind is not scheduled.
    if (this.waitsForAll) for (const actor of this.#actors.values()) actor.isOver = true
  }
}
