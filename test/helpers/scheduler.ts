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

/** Lets every call proceed at once. A suite that still passes then proves nothing: test/race-suites.test.ts tries each. */
const isBypassed = process.env.BYPASS_SCHEDULER === 'yes'

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

/** Calls that read only. */
const READS = ['get', 'getBy', 'getLinked', 'count', 'next', 'return']

/** Whether two calls can be made in either order, with the same end: both only read. */
export const bothRead = (one: StoreCall, other: StoreCall): boolean => READS.includes(one.method) && READS.includes(other.method)

/**
 * Also calls of two collections. Not where an actor looks at another collection outside of the scheduler, and not `getLinked`, which reads
 * several.
 */
export const areIndependent = (one: StoreCall, other: StoreCall): boolean =>
  bothRead(one, other) || (one.collection !== other.collection && one.method !== 'getLinked' && other.method !== 'getLinked')

/** What `exhaust` tries, and what it must find. */
export interface Search {
  /** The fewest orders. Fewer mean that store calls have escaped the scheduler. */
  least: number
  /** The most orders that are tried one after the other. Absent: all. */
  most?: number
  /** How many random orders follow where there are more than `most`. */
  random?: number
  /** The outcomes that must occur. No other may. */
  outcomes?: readonly string[]
  /** Whether the order of two waiting calls cannot matter. */
  commute?: (one: StoreCall, other: StoreCall) => boolean
}

export interface Found {
  /** How many different orders were tried. */
  orders: number
  /** Whether these are all. */
  complete: boolean
  /** How often each outcome occurred. */
  seen: Map<string, number>
}

/** What may come next: a waiting call, or one of `count` when these are something else. */
type Option = { id: string } & Partial<StoreCall>

/** A place where the runs branch: the options of which those before `index` have been tried. */
interface Branch { options: Option[], index: number, asleep: Option[] }

/** The sequences of choices, one after another. */
class Sequences {
  readonly #path: Branch[] = []
  readonly #commute: (one: Option, other: Option) => boolean

  constructor (commute: (one: StoreCall, other: StoreCall) => boolean) {
    const isCall = (option: Option): option is Option & StoreCall => option.method !== undefined
    this.#commute = (one, other) => isCall(one) && isCall(other) && commute(one, other)
  }

  /** A choice for the next run; `isKnown` tells afterwards whether an earlier run could end no other way. */
  begin (): { choose: Choose, isKnown: () => boolean } {
    let depth = 0
    let asleep: Option[] = []
    let isKnown = false
    const choose: Choose = (count, waiting) => {
      const all: readonly Option[] = waiting ?? Array.from({ length: count }, (_, index) => ({ id: `option ${index}` }))
      const options = all.filter(({ id }) => !asleep.some((one) => one.id === id))
      // Another run has gone on like this one, which is played to its end without branches.
      isKnown ||= options.length === 0
      if (isKnown) return 0
      const branch = this.#path[depth] ??= { options, index: 0, asleep }
      depth++
      const chosen = branch.options[branch.index]!
      asleep = [...branch.asleep, ...branch.options.slice(0, branch.index)].filter((one) => this.#commute(one, chosen))
      return all.findIndex(({ id }) => id === chosen.id)
    }
    return { choose, isKnown: () => isKnown }
  }

  /** Goes to the next sequence. @returns false when there is none */
  advance (): boolean {
    while (this.#path.length > 0 && this.#path.at(-1)!.index + 1 === this.#path.at(-1)!.options.length) this.#path.pop()
    const last = this.#path.at(-1)
    if (last !== undefined) last.index++
    return last !== undefined
  }
}

const plural = (count: number): string => count === 1 ? '1 order' : `${count} orders`

/** Throws when the runs prove less than they should. */
function checkSearch ({ least, outcomes }: Search, { orders, seen }: Found): void {
  if (orders < least) throw new Error(`${plural(orders)} tried, and at least ${least} expected: is every store call scheduled?`)
  const found = `${plural(orders)}: ${[...seen].map(([outcome, count]) => `'${outcome}' ${count}`).join(', ')}`
  for (const outcome of outcomes ?? []) if (!seen.has(outcome)) throw new Error(`the outcome '${outcome}' never occurred in ${found}`)
  for (const outcome of seen.keys()) if (outcomes?.includes(outcome) === false) throw new Error(`the outcome '${outcome}' was not expected in ${found}`)
}

/**
 * Tries every sequence of choices that can end differently. Of the sequences that differ only in the order of calls that commute, it tries
 * one: a call is *asleep* where a branch that was tried before begins with it, until a call comes that it does not commute with (sleep sets,
 * Godefroid 1996). Throws when there are fewer orders than expected, or an outcome never occurs.
 * @param run resolves to the outcome, in a word or two
 */
export async function exhaust (search: Search, run: (choose: Choose) => Promise<string | void>): Promise<Found> {
  const { least, most = Number.POSITIVE_INFINITY, random = 0, commute = bothRead } = search
  if (least < 2) throw new RangeError('one order is no race')
  const seen = new Map<string, number>()
  const play = async (choose: Choose) => {
    const outcome = await run(choose) ?? ''
    seen.set(outcome, (seen.get(outcome) ?? 0) + 1)
  }
  const sequences = new Sequences(commute)
  let [orders, complete] = [0, false]
  for (let runs = 0; runs < most && !complete; runs++) {
    const { choose, isKnown } = sequences.begin()
    await play(choose)
    if (!isKnown()) orders++
    complete = !sequences.advance()
  }
  const picked = new Set<string>()
  for (let seed = 1; seed <= random && !complete; seed++) {
    const pick = createRandom(seed)
    const choices: number[] = []
    await play((count) => {
      choices.push(pick(count))
      return choices.at(-1)!
    })
    // Nothing to choose, so that there is one order.
    complete = choices.length === 0
    picked.add(choices.join())
  }
  const found = { orders: orders + picked.size, complete, seen }
  checkSearch(search, found)
  return found
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

  /** The log, as `actor: collection.method`. */
  get order (): string[] {
    return this.log.map(({ actor, collection, method }) => `${actor}: ${collection}.${method}`)
  }

  /** For wrapStore. Calls outside `run` proceed at once. */
  readonly around: Around = (call, run) => {
    const current = this.#actor.getStore()
    if (isBypassed || current === undefined || current.isOver) return run()
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
    // Work that an actor leaves behind, as the renewal of a lease, is not scheduled: nobody would ever let its calls proceed.
    for (const actor of this.#actors.values()) actor.isOver = true
    for (const { proceed } of this.#waiting.splice(0)) await proceed()
  }
}
