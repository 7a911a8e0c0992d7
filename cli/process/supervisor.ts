import { hideCredentials } from '../../lib/failure.ts'
import type { Log } from './plain-log.ts'

/** A process that serves. */
export interface Worker {
  readonly id: number
  readonly pid: number | undefined
  kill (signal: NodeJS.Signals): void
}

export interface SupervisorParts {
  /** How many are to serve. */
  count: number
  /** Starts one, and tells of it by `listening` and `exited`. */
  fork: () => Worker
  log: Log
  /** Milliseconds that workers have to close. */
  limit: number
  /** Called once: no worker is left. */
  end: (code: number) => void
  /** Milliseconds of a clock that nobody sets, and timers of it. */
  now?: () => number
  later?: (milliseconds: number, run: () => void) => void
}

/** Milliseconds after which a worker counts as one that serves. */
const STEADY = 10_000
/** So many workers that end before, one after the other, are given up. */
const DEATHS = 6
/** Milliseconds before the first of them is replaced; twice as many for each that follows. */
const DELAY = 100
/** Milliseconds before a start that the system refused is tried again, while others serve. */
const RETRY = 5000
/** Milliseconds that a worker which was killed has to be gone. */
const GONE = 1000

interface Known { worker: Worker, since: number }

/**
 * Keeps so many workers serving. The first is alone until it listens: what keeps it from that would keep all of them, and
 * is told once. One that ends is replaced; when they keep ending at once, the service ends.
 */
export class Supervisor {
  readonly #parts: SupervisorParts
  readonly #now: () => number
  readonly #later: (milliseconds: number, run: () => void) => void
  readonly #workers = new Map<number, Known>()
  #listened = false
  #deaths = 0
  /** The code to end with; undefined while serving. */
  #code: number | undefined

  constructor (parts: SupervisorParts) {
    this.#parts = parts
    this.#now = parts.now ?? (() => performance.now())
    this.#later = parts.later ?? ((milliseconds, run) => { setTimeout(run, milliseconds) })
  }

  get closing (): boolean {
    return this.#code !== undefined
  }

  start (): void {
    this.#fork()
  }

  /** A worker listens. */
  listening (id: number): void {
    const known = this.#workers.get(id)
    if (known !== undefined) this.#parts.log.info('a worker listens', { worker: id, workerPid: known.worker.pid })
    if (this.#listened) return
    this.#listened = true
    for (let count = 1; count < this.#parts.count && !this.closing; count++) this.#fork()
  }

  /** A worker has ended, or could not be started: without code and signal. */
  exited (id: number, code: number | null, signal: string | null): void {
    const known = this.#workers.get(id)
    this.#workers.delete(id)
    if (known === undefined) return
    if (this.closing) {
      // One that has not come to its own way with signals yet ends of the signal.
      if (code !== 0 && signal !== 'SIGTERM') this.#code = 1
      if (this.#workers.size === 0) this.#parts.end(this.#code ?? 1)
      return
    }
    const how = { worker: id, workerPid: known.worker.pid, ...(signal === null ? { exitCode: code } : { signal }) }
    if (!this.#listened) {
      // It has said why, unless it was killed.
      if (signal !== null) this.#parts.log.fatal('the first worker was killed before it listened', how)
      return this.#giveUp()
    }
    this.#replace(known.since, how)
  }

  #replace (since: number, how: Record<string, unknown>): void {
    this.#deaths = this.#now() - since < STEADY ? this.#deaths + 1 : 1
    if (this.#deaths >= DEATHS) {
      this.#parts.log.fatal(`${DEATHS} workers in a row ended within ${STEADY / 1000} seconds of their start: the service ends`, how)
      return this.#giveUp()
    }
    const delay = DELAY * 2 ** (this.#deaths - 1)
    this.#parts.log.error(`a worker ended: another one is started in ${delay} ms`, how)
    this.#forkLater(delay)
  }

  /** Ends when what runs has finished; what takes longer than the limit is killed. */
  close (code = 0): void {
    if (this.closing) return
    this.#code = code
    if (this.#workers.size === 0) return this.#parts.end(code)
    this.#kill('SIGTERM')
    this.#later(this.#parts.limit, () => {
      if (this.#workers.size === 0) return
      this.#parts.log.fatal(`could not close within ${this.#parts.limit} ms: the workers are killed`)
      this.cut()
    })
  }

  /** Ends at once. */
  cut (): void {
    this.#code = 1
    this.#kill('SIGKILL')
    if (this.#workers.size === 0) this.#parts.end(1)
    else this.#later(GONE, () => this.#parts.end(1))
  }

  #giveUp (): void {
    this.close(1)
  }

  #fork (): void {
    try {
      const worker = this.#parts.fork()
      this.#workers.set(worker.id, { worker, since: this.#now() })
    } catch (error) {
      if (!this.#listened) throw error
      const how = { error: hideCredentials((error as Error).message) }
      if (this.#workers.size === 0) return this.#replace(this.#now(), how)
      // For want of memory as a rule, which is no reason to end those that serve.
      this.#parts.log.error(`a worker cannot be started: it is tried again in ${RETRY} ms`, how)
      this.#forkLater(RETRY)
    }
  }

  #forkLater (delay: number): void {
    this.#later(delay, () => { if (!this.closing) this.#fork() })
  }

  #kill (signal: NodeJS.Signals): void {
    for (const { worker } of this.#workers.values()) worker.kill(signal)
  }
}
