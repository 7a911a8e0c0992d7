import { AsyncLocalStorage } from 'node:async_hooks'
import type { Around, StoreCall } from './wrap-store.ts'

/** Picks one of `count` things that could happen next. */
export type Choose = (count: number) => number

/** A call of the store that has happened: when is its place in the log. */
export interface Step extends StoreCall {
  actor: string
}

/** The same sequence for the same seed (mulberry32). */
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
 * Walks through every sequence of choices, one run each, as a counter whose digits have the ranges that the runs show.
 * @param most runs; past it the walk ends
 * @returns the runs it took, and whether they were all there are
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

/**
 * Holds every actor at each call of the store, and lets one call at a time happen: what the actors do between their calls
 * touches nothing shared, so that the order of calls is all there is to an order of events.
 */
export class Scheduler {
  /** The calls that have happened, in order. */
  readonly log: Step[] = []
  readonly #actor = new AsyncLocalStorage<string>()
  readonly #waiting: (() => Promise<void>)[] = []
  /** Whether the place of a call in an order can make a difference; one that cannot happens as soon as it is made. */
  isShared: (call: StoreCall) => boolean = () => true
  /** Throws where a call is to fail instead of happening. */
  interrupt: (step: Step, log: readonly Step[]) => void = () => {}

  /** For wrapStore: calls outside `run` happen at once. */
  readonly around: Around = (call, run) => {
    const actor = this.#actor.getStore()
    if (actor === undefined || !this.isShared(call)) return run()
    // A list that begins reads nothing yet; its batches do.
    if (call.method === 'list') return run()
    return new Promise((resolve, reject) => {
      this.#waiting.push(async () => {
        const step = { actor, ...call }
        try {
          this.interrupt(step, this.log)
          this.log.push(step)
          resolve(await run())
        } catch (error) {
          reject(error)
        }
      })
    })
  }

  /** Runs the actors to their ends in the order that `choose` makes. */
  async run (actors: Record<string, () => Promise<unknown>>, choose: Choose): Promise<void> {
    let ended = 0
    const all = Object.entries(actors)
    this.log.length = 0
    for (const [name, act] of all) this.#actor.run(name, () => act().catch(() => {}).finally(() => { ended++ }))
    for (let idle = 0; ended < all.length; idle++) {
      // All microtasks are done by then: each actor waits at a call, or has ended.
      await new Promise(setImmediate)
      if (this.#waiting.length === 0) {
        if (idle > 10_000) throw new Error('the actors wait for something that is no call of the store')
        continue
      }
      idle = 0
      const [next] = this.#waiting.splice(choose(this.#waiting.length), 1)
      await next!()
    }
  }
}
