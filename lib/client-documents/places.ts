import type { Clock } from '../clock.ts'
import { FairQueue, type Turn } from '../fair-queue.ts'
import { TIMERS, type Timers } from '../timers.ts'

/** Concurrent fetches, and those of one host. */
const SLOTS = 8
const SLOTS_OF_HOST = 4

/** Calls that wait, and those for one host. */
const WAITING = 64
const WAITING_OF_HOST = 32

/** Milliseconds that a call may wait for each of its turns, and that a fetch is expected to take until one is measured. */
const LONGEST_WAIT = 10_000
const EXPECTED = 500

/** First fetches that a host may get at once, and milliseconds between further ones: 30 a minute. */
const BURST = 30
const STEP = 2_000

/** Hosts that are remembered beside those with calls. */
const CAPACITY = 1_000

interface Host {
  /** First fetches of the host start one after the other. */
  gate: FairQueue
  slots: FairQueue
  /** Calls that run or wait. */
  calls: number
  /** First fetches that were left at `at`. */
  left: number
  at: number
}

interface PlaceParts {
  now: Clock
  timers?: Timers | undefined
}

/** First fetches that a host may get at once now. */
const countLeft = ({ left, at }: Host, time: number): number => Math.min(BURST, left + Math.max(0, time - at) / STEP)

/**
 * The places of fetches. Networks take turns at each host, and in all places together. A host is remembered for its calls and for what it has
 * spent, and then forgotten: names that strangers make up cost the others nothing.
 */
export class Places {
  readonly #now: Clock
  readonly #timers: Timers
  readonly #hosts = new Map<string, Host>()
  readonly #all: FairQueue

  constructor ({ now, timers = TIMERS }: PlaceParts) {
    this.#now = now
    this.#timers = timers
    this.#all = this.#createQueue('documents', SLOTS, WAITING)
  }

  /** Waits until the host may get one more first fetch. @param check tells whether it is needed, when its turn has come */
  async enter (name: string, turn: Turn, check: () => Promise<boolean>): Promise<void> {
    await this.#use(name, async (host) => await host.gate.run(async () => { if (await check()) await this.#take(host) }, turn))
  }

  async run<T> (name: string, turn: Turn, fetch: () => Promise<T>): Promise<T> {
    return await this.#use(name, async ({ slots }) => await slots.run(async () => await this.#all.run(fetch, turn), turn))
  }

  #createQueue (what: string, slots: number, places: number): FairQueue {
    return new FairQueue({ what, slots, places, maxWait: LONGEST_WAIT, duration: EXPECTED, timers: this.#timers })
  }

  async #use<T> (name: string, work: (host: Host) => Promise<T>): Promise<T> {
    const host = this.#hosts.get(name) ?? {
      gate: this.#createQueue('documents of one host', 1, WAITING_OF_HOST),
      slots: this.#createQueue('documents of one host', SLOTS_OF_HOST, WAITING_OF_HOST),
      calls: 0,
      left: BURST,
      at: this.#now()
    }
    this.#hosts.set(name, host)
    host.calls++
    try {
      return await work(host)
    } finally {
      host.calls--
      if (host.calls === 0) this.#release(name, host)
    }
  }

  /** Forgets idle hosts with a full budget. If too many hosts are left, it also forgets the idle one with the most budget. */
  #release (name: string, host: Host): void {
    const time = this.#now()
    if (countLeft(host, time) === BURST) this.#hosts.delete(name)
    if (this.#hosts.size <= CAPACITY) return
    let least: { name: string, left: number } | undefined
    for (const [other, one] of this.#hosts) {
      if (one.calls > 0) continue
      const left = countLeft(one, time)
      if (left === BURST) this.#hosts.delete(other)
      else if (least === undefined || left > least.left) least = { name: other, left }
    }
    if (this.#hosts.size > CAPACITY && least !== undefined) this.#hosts.delete(least.name)
  }

  async #take (host: Host): Promise<void> {
    host.left = countLeft(host, this.#now())
    host.at = this.#now()
    if (host.left < 1) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#timers.set(resolve, (1 - host.left) * STEP).unref?.()
      await promise
      host.left = 1
      host.at = this.#now()
    }
    host.left--
  }
}
