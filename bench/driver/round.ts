import type { RunOptions, RunResult } from '../types.ts'
import { Connection } from './connection.ts'
import { Histogram } from './histogram.ts'
import type { PreparedLoad } from './load.ts'

/** Milliseconds at the start that are not counted: connections are new and caches cold. */
const RAMP = 200

/** One load on one server for a time. */
export class Round {
  readonly load: PreparedLoad
  readonly #options: RunOptions
  readonly #histogram = new Histogram()
  readonly #connections: Connection[]
  readonly #idle: Connection[] = []
  readonly #end = Promise.withResolvers<void>()
  #next: number
  /** Requests that may still be sent. */
  #left: number
  #answers = 0
  #inFlight = 0
  /** Start and end of the counted time, by performance.now(). */
  #from = Infinity
  #until = Infinity
  #stopped = false
  #pacer: NodeJS.Timeout | undefined
  /** Due times of requests for which no connection was free. */
  readonly #overdue: number[] = []

  /** @param next the index of the first request */
  constructor (load: PreparedLoad, options: RunOptions, next: number) {
    this.load = load
    this.#options = options
    this.#next = load.once ? 0 : next % load.size
    this.#left = load.once ? load.size : Infinity
    this.#connections = Array.from({ length: Math.min(options.connections, this.#left) }, () => new Connection(this))
  }

  async run (port: number): Promise<RunResult> {
    try {
      await Promise.all(this.#connections.map((connection) => connection.open(port)))
      const cpu = process.cpuUsage()
      const start = performance.now()
      this.#from = start + RAMP
      this.#until = this.#from + this.#options.seconds * 1000
      if (this.#options.rate === undefined) for (const connection of this.#connections) this.#send(connection, start)
      else this.#pace(this.#options.rate, start)
      await this.#end.promise
      const elapsed = performance.now() - start
      const { user, system } = process.cpuUsage(cpu)
      const histogram = this.#histogram
      return {
        rate: histogram.count / (Math.min(this.#until, start + elapsed) - this.#from) * 1000,
        p50: histogram.percentile(0.5),
        p99: histogram.percentile(0.99),
        max: histogram.max,
        answers: this.#answers,
        elapsed,
        driverCpu: (user + system) / 1000 / elapsed
      }
    } finally {
      clearInterval(this.#pacer)
      for (const connection of this.#connections) connection.close()
    }
  }

  /** Ends the round once the requests in flight are answered. */
  stop (): void {
    this.#stopped = true
    if (this.#inFlight === 0) this.#end.resolve()
  }

  fail (error: Error): void {
    this.#stopped = true
    this.#end.reject(error)
  }

  answered (connection: Connection, since: number): void {
    const now = performance.now()
    this.#inFlight--
    this.#answers++
    if (now >= this.#from && now < this.#until) this.#histogram.record(now - since)
    if (now >= this.#until || this.#stopped || this.#left === 0) {
      if (this.#inFlight === 0) this.#end.resolve()
    } else if (this.#options.rate === undefined) this.#send(connection, now)
    else if (this.#overdue.length > 0) this.#send(connection, this.#overdue.shift()!)
    else this.#idle.push(connection)
  }

  #send (connection: Connection, since: number): void {
    const index = this.#next
    this.#next = index + 1 === this.load.size ? 0 : index + 1
    this.#inFlight++
    this.#left--
    connection.send(index, since)
  }

  /** Sends the requests that are due, about every millisecond. A request without a free connection waits, and its wait counts as latency. */
  #pace (rate: number, start: number): void {
    this.#idle.push(...this.#connections)
    let sent = 0
    this.#pacer = setInterval(() => {
      const now = performance.now()
      if (now >= this.#until) {
        clearInterval(this.#pacer)
        if (this.#inFlight === 0) this.#end.resolve()
        return
      }
      for (const due = (now - start) * rate / 1000; sent < due && this.#left > this.#overdue.length; sent++) {
        const connection = this.#idle.pop()
        if (connection === undefined) this.#overdue.push(now)
        else this.#send(connection, now)
      }
    }, 1)
  }
}
