import type { FastifyBaseLogger } from 'fastify'

interface Worker {
  readonly id: number
  readonly pid: number | undefined
  kill (signal: NodeJS.Signals): void
}

interface SupervisorParts {
  /** Workers to keep running. */
  count: number
  /** Starts a worker. Its events go to `onListening` and `onExit`. */
  fork: () => Worker
  log: Pick<FastifyBaseLogger, 'info' | 'error' | 'fatal'>
  /** Milliseconds that workers have to close. */
  closeTimeout: number
  /** Called when no worker is left. */
  end: (code: number) => void | Promise<void>
  /** Clock and timers, in milliseconds; for tests. */
  now?: () => number
  later?: (milliseconds: number, run: () => void) => void
}

/** Milliseconds after which a worker counts as stable. */
const STABLE = 10_000
/** Unstable workers in a row after which the service ends, unless a worker still serves. */
const MAX_FAILURES = 6
/** Milliseconds before an exited worker is replaced; doubled at each failure in a row, up to the maximum. */
const MIN_DELAY = 100
const MAX_DELAY = 5000
/** Milliseconds for a killed worker to exit. */
const KILL_WAIT = 1000

/** The signals that end the service gracefully. */
const CLEAN: ReadonlySet<string | null> = new Set(['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'])

interface Entry { worker: Worker, startedAt: number, listening: boolean }

/** What a signal that kills a worker usually means. */
const CAUSES: Record<string, string> = {
  SIGBUS: ': the disk is full, or the database file was truncated',
  SIGKILL: ': often too little memory'
}

/** Keeps the workers running. The first one starts alone, so that first-run setup and a start-up error happen once. */
export class Supervisor {
  readonly #parts: SupervisorParts
  readonly #now: () => number
  readonly #later: (milliseconds: number, run: () => void) => void
  readonly #workers = new Map<number, Entry>()
  #served = false
  #failures = 0
  /** Set once the service shuts down. */
  #exitCode: number | undefined

  constructor (parts: SupervisorParts) {
    this.#parts = parts
    this.#now = parts.now ?? (() => performance.now())
    this.#later = parts.later ?? ((milliseconds, run) => { setTimeout(run, milliseconds) })
  }

  start (): void {
    this.#fork()
  }

  onListening (id: number): void {
    const entry = this.#workers.get(id)
    if (entry === undefined) return
    entry.listening = true
    this.#parts.log.info({ worker: id, workerPid: entry.worker.pid }, 'worker listening')
    // The first worker may listen after the signal that closes it: a worker forked now would not get that signal.
    if (this.#served || this.#exitCode !== undefined) return
    this.#served = true
    for (let count = 1; count < this.#parts.count; count++) this.#fork()
  }

  /** A worker that could not be started has neither code nor signal. */
  onExit (id: number, code: number | null, signal: string | null): void {
    const entry = this.#workers.get(id)
    if (entry === undefined) return
    this.#workers.delete(id)
    const how = { worker: id, workerPid: entry.worker.pid, ...(signal === null ? { exitCode: code } : { signal }) }
    if (this.#exitCode !== undefined) {
      // A worker that has no signal handlers yet dies of the signal, ours or the terminal's: that is a clean exit.
      if (code !== 0 && !CLEAN.has(signal)) this.#exitCode = 1
      if (this.#workers.size === 0) void this.#parts.end(this.#exitCode)
    } else if (this.#served) {
      this.#replace(entry.startedAt, how)
    } else {
      // The worker has printed why it cannot start, unless it was killed.
      if (signal !== null) this.#parts.log.fatal(how, `the first worker was killed before it listened${CAUSES[signal] ?? ''}`)
      this.close(1)
    }
  }

  /** Shuts down gracefully; workers that take too long are killed. */
  close (code: number): void {
    if (this.#exitCode !== undefined) return
    this.#exitCode = code
    if (this.#workers.size === 0) {
      void this.#parts.end(code)
      return
    }
    this.#signal('SIGTERM')
    const { closeTimeout, log } = this.#parts
    this.#later(closeTimeout, () => {
      log.fatal(`could not close within ${closeTimeout} ms: the workers are killed`)
      this.kill()
    })
  }

  kill (): void {
    this.#exitCode = 1
    this.#signal('SIGKILL')
    this.#later(KILL_WAIT, () => { void this.#parts.end(1) })
  }

  #replace (startedAt: number, how: object): void {
    const { log } = this.#parts
    this.#failures = this.#now() - startedAt < STABLE ? this.#failures + 1 : 1
    if (this.#failures >= MAX_FAILURES && ![...this.#workers.values()].some(({ listening }) => listening)) {
      log.fatal(how, `${MAX_FAILURES} workers in a row exited within ${STABLE / 1000} s of their start`)
      return this.close(1)
    }
    const delay = Math.min(MIN_DELAY * 2 ** (this.#failures - 1), MAX_DELAY)
    log.error(how, `worker exited, a new one starts in ${delay} ms`)
    this.#later(delay, () => { if (this.#exitCode === undefined) this.#fork() })
  }

  #fork (): void {
    try {
      const worker = this.#parts.fork()
      this.#workers.set(worker.id, { worker, startedAt: this.#now(), listening: false })
    } catch (error) {
      if (!this.#served) throw error
      this.#replace(this.#now(), { err: error })
    }
  }

  #signal (signal: NodeJS.Signals): void {
    for (const { worker } of this.#workers.values()) worker.kill(signal)
  }
}
