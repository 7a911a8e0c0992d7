import type { Server } from 'node:http'
import type { FastifyBaseLogger, FastifyRequest } from 'fastify'
import type { IdentityError } from '../lib/errors.ts'
import { TIMERS, type Timers } from '../lib/timers.ts'

/** Milliseconds between two lines about refused requests. */
const INTERVAL = 1000

/** Logs refusals in one line per second: an overload refuses thousands of requests, and each would write a stack. */
export class BusyLog {
  readonly #timers: Timers
  #refused = 0
  #timer: NodeJS.Timeout | undefined

  constructor (timers: Timers = TIMERS) {
    this.#timers = timers
  }

  count (log: FastifyBaseLogger, error: IdentityError): void {
    this.#refused++
    if (this.#timer === undefined) this.#write(log, error)
  }

  #write (log: FastifyBaseLogger, error: IdentityError): void {
    log.error({ code: error.code, refused: this.#refused }, error.message)
    this.#refused = 0
    this.#timer = this.#timers.set(() => {
      this.#timer = undefined
      if (this.#refused > 0) this.#write(log, error)
    }, INTERVAL).unref()
  }
}

const busyLogs = new WeakMap<Server, BusyLog>()

/** Logs a server error (5xx) with its cause. ErrBusy goes through BusyLog. */
export function logFailure ({ log, server: { server, log: serverLog } }: FastifyRequest, error: IdentityError): void {
  if (error.statusCode < 500) return
  if (error.code !== 'ErrBusy') {
    log.error({ err: error.cause ?? error, code: error.code }, error.message)
    return
  }
  let busyLog = busyLogs.get(server)
  if (busyLog === undefined) busyLogs.set(server, busyLog = new BusyLog())
  busyLog.count(serverLog, error)
}
