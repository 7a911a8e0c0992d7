import { TIMERS, type Timers } from '../timers.ts'

/** Milliseconds after the end of an outage in which the next failure is not told yet: a server that answers every other call writes two lines a minute. */
const QUIET = 60_000

/** What an outage was, when it has ended. */
export interface Ended {
  /** The calls that failed. */
  failures: number
  seconds: number
}

/** The kinds of receivers whose outages are reported. */
export type OutageOf = 'mail' | 'upstream' | 'document' | 'logout' | 'webhook'

/** Notes how the calls of one receiver end. */
export type OutageNotes = Pick<Outage, 'fail' | 'succeed'>

interface OutageParts {
  /** Called once for each outage, with its first failure. */
  onBegin: (error: unknown) => void
  /** Called once for each outage that was told, when a call succeeds again. */
  onEnd: (ended: Ended) => void
  quiet?: number
  timers?: Pick<Timers, 'now'>
}

/** Reports an outage of something that the service calls twice: when it begins and when it ends. */
export class Outage {
  readonly #parts: OutageParts
  readonly #quiet: number
  readonly #timers: Pick<Timers, 'now'>
  #failures = 0
  #isTold = false
  #since = 0
  #endedAt = Number.NEGATIVE_INFINITY

  constructor ({ quiet = QUIET, timers = TIMERS, ...parts }: OutageParts) {
    this.#parts = { ...parts }
    this.#quiet = quiet
    this.#timers = timers
  }

  /** Whether the last call failed. */
  get isOn (): boolean { return this.#failures > 0 }

  /** Notes a call that failed. @returns whether it was told */
  fail (error: unknown): boolean {
    const time = this.#timers.now()
    if (this.#failures++ === 0) this.#since = time
    if (this.#isTold || time - this.#endedAt < this.#quiet) return false
    this.#isTold = true
    this.#parts.onBegin(error)
    return true
  }

  /** Notes a call that succeeded. */
  succeed (): void {
    if (this.#failures === 0) return
    const time = this.#timers.now()
    const ended = { failures: this.#failures, seconds: Math.round((time - this.#since) / 1000) }
    this.#failures = 0
    if (!this.#isTold) return
    this.#isTold = false
    this.#endedAt = time
    this.#parts.onEnd(ended)
  }
}

/** The receivers of one kind whose outages are told apart. All others share one, so that nobody's own receivers flood the log. */
const MOST = 100

interface OutagesParts {
  /** Receives the begin and the end of an outage. `name` tells the receivers of one kind apart; it is absent for those that share one. */
  onChange: (of: OutageOf, change: { error: unknown } | Ended, name: string | undefined) => void
  timers?: Pick<Timers, 'now'>
}

/** The outages of all that the service calls. */
export class Outages {
  readonly #parts: OutagesParts
  readonly #kinds = new Map<OutageOf, Map<string, Outage>>()

  constructor (parts: OutagesParts) {
    this.#parts = parts
  }

  /** The notes of one receiver. Only a failure makes an entry of it. */
  of (kind: OutageOf, name = ''): OutageNotes {
    return {
      fail: (error) => this.#open(kind, name).fail(error),
      succeed: () => this.#kinds.get(kind)?.get(name)?.succeed()
    }
  }

  /** The receivers of each kind that do not answer now. */
  count (): Record<OutageOf, number> {
    const count = (kind: OutageOf) => [...this.#kinds.get(kind)?.values() ?? []].filter(({ isOn }) => isOn).length
    return { mail: count('mail'), upstream: count('upstream'), document: count('document'), logout: count('logout'), webhook: count('webhook') }
  }

  #open (kind: OutageOf, name: string): Outage {
    let outages = this.#kinds.get(kind)
    if (outages === undefined) this.#kinds.set(kind, outages = new Map())
    const found = outages.get(name)
    if (found !== undefined) return found
    if (name !== '' && outages.size >= MOST) {
      // One that has ended gives its place to another.
      const over = [...outages].find(([other, { isOn }]) => other !== '' && !isOn)
      if (over === undefined) return this.#open(kind, '')
      outages.delete(over[0])
    }
    const told = name === '' ? undefined : name
    const { onChange, timers } = this.#parts
    const outage = new Outage({
      onBegin: (error) => onChange(kind, { error }, told), onEnd: (ended) => onChange(kind, ended, told), timers
    })
    outages.set(name, outage)
    return outage
  }
}
