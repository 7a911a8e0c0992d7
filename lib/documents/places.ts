import { LRUCache } from 'lru-cache'
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

/** Hosts that strangers have made up whose turns are remembered. */
const CAPACITY = 1_000

interface Host {
  /** First fetches of the host start one after the other. */
  gate: FairQueue
  slots: FairQueue
  left: number
  at: number
}

interface PlaceParts {
  now: Clock
  isNamed: (host: string) => boolean
  timers?: Timers | undefined
}

/** The places of fetches. Networks take turns at each host, and in all places together. */
export class Places {
  readonly #now: Clock
  readonly #timers: Timers
  readonly #isNamed: PlaceParts['isNamed']
  readonly #named = new Map<string, Host>()
  readonly #others = new LRUCache<string, Host>({ max: CAPACITY })
  readonly #all: FairQueue

  constructor ({ now, isNamed, timers = TIMERS }: PlaceParts) {
    this.#now = now
    this.#isNamed = isNamed
    this.#timers = timers
    this.#all = this.#createQueue('documents', SLOTS, WAITING)
  }

  /** Waits until the host may get one more first fetch. @param check tells whether it is needed, when its turn has come */
  async enter (name: string, turn: Turn, check: () => Promise<boolean>): Promise<void> {
    const host = this.#find(name)
    await host.gate.run(async () => { if (await check()) await this.#take(host) }, turn)
  }

  async run<T> (name: string, turn: Turn, fetch: () => Promise<T>): Promise<T> {
    return await this.#find(name).slots.run(async () => await this.#all.run(fetch, turn), turn)
  }

  #createQueue (what: string, slots: number, places: number): FairQueue {
    return new FairQueue({ what, slots, places, maxWait: LONGEST_WAIT, duration: EXPECTED, timers: this.#timers })
  }

  #find (name: string): Host {
    const hosts = this.#isNamed(name) ? this.#named : this.#others
    const known = hosts.get(name)
    if (known !== undefined) return known
    const host = {
      gate: this.#createQueue('documents of one host', 1, WAITING_OF_HOST),
      slots: this.#createQueue('documents of one host', SLOTS_OF_HOST, WAITING_OF_HOST),
      left: BURST,
      at: this.#now()
    }
    hosts.set(name, host)
    return host
  }

  async #take (host: Host): Promise<void> {
    const time = this.#now()
    host.left = Math.min(BURST, host.left + Math.max(0, time - host.at) / STEP)
    host.at = time
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
