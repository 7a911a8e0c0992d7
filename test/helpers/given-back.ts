import { createHook } from 'node:async_hooks'
import { getEventListeners } from 'node:events'
import { readdirSync, readlinkSync } from 'node:fs'
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Test } from 'tap'

/** Milliseconds to wait for what closes a turn later. Only a leak takes as long. */
const LIMIT = 3_000

/** Milliseconds between two counts. */
const PAUSE = 5

/** Milliseconds from which on a timer is a limit, which no row waits for. The least one is 900, in plugins/readiness.ts. */
const LONG = 500

/** Milliseconds that no test takes, and the most that a timer can wait. */
const NEVER = 2 ** 31 - 1

/** Resources that somebody must end. `process.getActiveResourcesInfo()` leaves out those that do not keep the process alive. */
const TYPES: ReadonlySet<string> = new Set([
  'Timeout', 'TCPWRAP', 'TCPSERVERWRAP', 'PIPEWRAP', 'PIPESERVERWRAP', 'UDPWRAP', 'PROCESSWRAP', 'SIGNALWRAP', 'FSEVENTWRAP', 'STATWATCHER',
  'FILEHANDLE', 'DIRHANDLE', 'WORKER', 'MESSAGEPORT'
])

const resources = new Map<number, string>()
createHook({
  init: (id, type) => { if (TYPES.has(type)) resources.set(id, type) },
  destroy: (id) => { resources.delete(id) }
}).enable()

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** What a call may keep by mistake. */
export interface Holders {
  /** Signals that outlive the calls, by name: their listeners are counted. */
  signals?: Record<string, AbortSignal>
  /** Maps, sets and arrays that outlive the calls, or functions that count something. */
  sizes?: Record<string, { size: number } | { length: number } | (() => number)>
}

export interface GivenBackOptions extends Holders {
  /** Calls between the two counts. One more call comes before them, because the first use may open something that stays. */
  times?: number
  /** Milliseconds. */
  limit?: number
}

type Counts = Map<string, number>

function add (counts: Counts, kind: string, count = 1): void {
  counts.set(kind, (counts.get(kind) ?? 0) + count)
}

/** The kinds of the open descriptors. None where the system does not show them. */
function listDescriptors (): string[] {
  if (process.platform !== 'linux') return []
  return readdirSync('/proc/self/fd').flatMap((name) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${name}`)
      return [/^(\w+):\[?(\w+)?/.exec(target)?.[1] ?? target.replace(/^.*\//, '')]
    } catch {
      // That of this very listing.
      return []
    }
  })
}

/** Composite signals and timeouts that nothing has released. One with a listener is never collected, unless it is aborted. */
class CompositeSignals {
  readonly #made: WeakRef<AbortSignal>[] = []
  readonly #any = AbortSignal.any

  watch (): void {
    AbortSignal.any = (signals) => {
      const signal = this.#any.call(AbortSignal, signals)
      this.#made.push(new WeakRef(signal))
      return signal
    }
  }

  restore (): void {
    AbortSignal.any = this.#any
  }

  countKept (): number {
    return this.#made.filter((one) => one.deref()?.aborted === false).length
  }
}

/** Long timers do not run while they are held: one that nobody clears would end by itself, and seem to be given back. */
class HeldTimers {
  readonly #set = globalThis.setTimeout
  readonly #held: NodeJS.Timeout[] = []

  hold (): void {
    const set = (run: (...args: unknown[]) => void, delay = 0, ...args: unknown[]): NodeJS.Timeout => {
      if (delay < LONG) return this.#set(run, delay, ...args)
      const timer = this.#set(run, NEVER, ...args)
      this.#held.push(timer)
      return timer
    }
    globalThis.setTimeout = Object.assign<typeof set, typeof setTimeout>(set, this.#set)
  }

  restore (): void {
    globalThis.setTimeout = this.#set
    // The process of a test that has found one must end too.
    for (const timer of this.#held) timer.unref()
  }
}

function count ({ signals = {}, sizes = {} }: Holders): Counts {
  const counts: Counts = new Map()
  for (const type of resources.values()) add(counts, type)
  for (const kind of listDescriptors()) add(counts, `descriptors of ${kind}`)
  for (const name of process.eventNames()) add(counts, `listeners of the process for ${String(name)}`, process.listenerCount(name))
  for (const [name, signal] of Object.entries(signals)) add(counts, `listeners of ${name}`, getEventListeners(signal, 'abort').length)
  for (const [name, held] of Object.entries(sizes)) {
    add(counts, `size of ${name}`, typeof held === 'function' ? held() : 'size' in held ? held.size : held.length)
  }
  return counts
}

/** Lets things close. The destruction of a resource is told a turn after it. */
async function rest (): Promise<void> {
  await sleep(PAUSE)
  await turn()
  await turn()
}

function findGrown (before: Counts, after: Counts): string[] {
  return [...after].flatMap(([kind, now]) => {
    const former = before.get(kind) ?? 0
    return now > former ? [`${kind}: from ${former} to ${now}`] : []
  }).sort()
}

/**
 * Runs a call several times, and waits until everything that it took is given back. A timer of half a second or more does not run meanwhile.
 * @returns what was kept: each kind with its former and its new count
 */
export async function findKept (call: (index: number) => Promise<unknown>, options: GivenBackOptions = {}): Promise<string[]> {
  const timers = new HeldTimers()
  timers.hold()
  try {
    return await findGrowth(call, options)
  } finally {
    timers.restore()
  }
}

async function findGrowth (call: (index: number) => Promise<unknown>, { times = 8, limit = LIMIT, ...holders }: GivenBackOptions): Promise<string[]> {
  await call(0)
  collectGarbage()
  await rest()
  const before = count(holders)
  const composites = new CompositeSignals()
  composites.watch()
  try {
    for (let index = 1; index <= times; index++) await call(index)
  } finally {
    composites.restore()
  }
  const end = performance.now() + limit
  for (;;) {
    await rest()
    const after = count(holders)
    // The last ones may still be on the stack.
    const kept = composites.countKept()
    if (kept >= times) after.set('composite signals', kept)
    const grown = findGrown(before, after)
    if (grown.length === 0 || performance.now() > end) return grown
    // In another turn: what a weak reference has returned is kept until the end of the turn.
    await turn()
    collectGarbage()
  }
}

/** A call that ends in one way, and what outlives it. */
export interface GivenBackRow extends GivenBackOptions {
  call: (index: number) => Promise<unknown>
  /** What each call comes to: its value, or the code or message of its failure. */
  outcome: unknown
}

/** Checks that each call has its outcome, and that everything is given back. */
export async function checkRow (t: Test, { call, outcome, ...options }: GivenBackRow): Promise<void> {
  const outcomes: unknown[] = []
  t.strictSame(await findKept(async (index) => {
    outcomes.push(await call(index).catch(({ code, message }: Error & { code?: string }) => code ?? message))
  }, options), [])
  for (const one of outcomes) t.match(one, outcome)
}

/** The line of code that makes something, from a stack: the first one outside of this file. */
function findMaker ({ stack = '' }: Error): string {
  const line = stack.split('\n').find((text) => /:\d+:\d+/.test(text) && !text.includes('given-back.ts'))
  return /([^/]+\/[^/]+:\d+):\d+\)?$/.exec(line ?? '')?.[1] ?? 'somewhere'
}

/**
 * Opens something, and notes the maps and sets that it makes meanwhile: also those that nothing outside can reach.
 * @returns them by the lines that make them, for `sizes`
 */
export async function watchSizes<T> (open: () => T | Promise<T>): Promise<{ opened: T, sizes: Record<string, { size: number }> }> {
  const originals = { Map, Set }
  const sizes: Record<string, { size: number }> = {}
  const note = (made: { size: number }) => {
    const name = findMaker(new Error())
    sizes[name in sizes ? `${name}, number ${Object.keys(sizes).length}` : name] = made
  }
  class NotedMap<K, V> extends originals.Map<K, V> {
    constructor (entries?: Iterable<readonly [K, V]> | null) {
      super(entries)
      note(this)
    }
  }
  class NotedSet<V> extends originals.Set<V> {
    constructor (values?: Iterable<V> | null) {
      super(values)
      note(this)
    }
  }
  try {
    Object.assign(globalThis, { Map: NotedMap, Set: NotedSet })
    return { opened: await open(), sizes }
  } finally {
    Object.assign(globalThis, originals)
  }
}
