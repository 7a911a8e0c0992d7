import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Around, type StoreCall, isListing } from './wrap-store.ts'

/** Picks one of `count` possible next steps. */
export type Choose = (count: number) => number

/** A store call in the log. */
export interface Step extends StoreCall {
  actor: string
}

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

interface Actor {
  name: string
  isOver: boolean
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
  readonly #waiting: { actor: string, proceed: () => Promise<void> }[] = []
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
    const { name: actor, isOver = true } = this.#actor.getStore() ?? {}
    if (actor === undefined || isOver) return run()
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
      this.#waiting.push({ actor, proceed })
    })
  }

  #pass (result: unknown): unknown {
    if (!(result instanceof Promise)) return result
    this.#passing++
    return result.finally(() => { this.#passing-- })
  }

  /** Runs work as an actor when the async context is lost: behind a socket. */
  as<T> (name: string, work: () => T): T {
    return this.#actor.run(this.#actors.get(name) ?? { name, isOver: true }, work)
  }

  /** Runs the actors to completion, in the order that `choose` picks. */
  async run (actors: Record<string, () => Promise<unknown>>, choose: Choose): Promise<void> {
    const active = new Set(Object.keys(actors))
    this.log.length = 0
    this.#actors.clear()
    for (const [name, act] of Object.entries(actors)) {
      const actor = { name, isOver: false }
      this.#actors.set(name, actor)
      this.#actor.run(actor, () => act().catch(() => {}).finally(() => { active.delete(name) }))
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
      const [next] = this.#waiting.splice(choose(this.#waiting.length), 1)
      await next!.proceed()
    }
    // Work that an actor leaves behind is not scheduled.
    if (this.waitsForAll) for (const actor of this.#actors.values()) actor.isOver = true
  }
}
