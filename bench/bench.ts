import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Child } from './child.ts'
import type { DriverCalls } from './driver/calls.ts'
import { CORES } from './machine.ts'
import type { Settings } from './settings.ts'
import { toQuantile } from './stats.ts'
import type { Column, Load, Ready, RunOptions, RunResult, Sample, ServerCalls, ServerSpec, Subject, Usage } from './types.ts'
import { Wrk, findWrk } from './wrk.ts'

export interface Case {
  /** The name for --only. */
  name: string
  title: string
  notes?: string[]
  /** A column for which no row has a value is left out. */
  columns: Column[]
  /** Metrics for which rows are compared with the baseline. */
  compared: string[]
  /** The label of the row that others are compared with. */
  baseline: string
  /** The server processes of the case. All run at the same time; an idle one costs nothing. */
  servers: (bench: Bench) => ServerSpec[] | Promise<ServerSpec[]>
  /** The rows, measured in turn in every round. */
  scenario: (bench: Bench, servers: Map<string, Server>) => Subject[] | Promise<Subject[]>
  /** What the report has below the table, called after the rounds. */
  listDetails?: (bench: Bench) => Promise<string[][]>
}

/** A server under test. */
export class Server {
  readonly label: string
  readonly child: Child<ServerCalls, Ready>

  constructor ({ label, file, options, cores = 1, ...rest }: ServerSpec) {
    this.label = label
    this.child = new Child(`servers/${file}`, options === undefined ? [] : [JSON.stringify(options)], cores === 1 ? CORES.one : CORES.two, rest)
  }

  usage (): Promise<Usage> {
    return this.child.call('usage', null)
  }
}

/** A load on a server. */
export interface Target {
  server: Server
  port: number
  load: Load
  /** The driver's number for it. */
  id: number
}

/** The tools of a case: settings, drivers, and a directory that is removed at the end. */
export class Bench {
  readonly settings: Settings
  readonly directory = mkdtempSync(join(tmpdir(), 'bench-'))
  readonly driver = new Child<DriverCalls>('driver.ts', [], CORES.driver)
  /** A second process of the driver, for load during a measurement. */
  readonly disturber = new Child<DriverCalls>('driver.ts', [], CORES.driver)
  readonly wrkVersion = findWrk()

  readonly #wrk = new Wrk(this.directory)
  readonly #cleanups: (() => Promise<void>)[] = []

  constructor (settings: Settings) {
    this.settings = settings
  }

  /** Reports progress. */
  log = (text: string): void => {
    process.stderr.write(`${text}\n`)
  }

  atEnd (cleanup: () => Promise<void>): void {
    this.#cleanups.push(cleanup)
  }

  /**
   * Prepares a load for a server.
   * @param load absent: the server's own
   * @param learn make each request once, and check every later answer against the first
   */
  async aim (server: Server, load?: Load, learn = true): Promise<Target> {
    const { port, load: own } = await server.child.ready
    const chosen = (load ?? own)!
    return { server, port, load: chosen, id: await this.driver.call('load', { port, load: chosen, learn }) }
  }

  /** Runs our driver once, and measures the server's use of resources. */
  async measure ({ server, id }: Target, options: Partial<RunOptions> = {}): Promise<Sample> {
    return await this.#meter(server, (settings) => this.driver.call('run', { target: id, ...settings, ...options }))
  }

  /** A run of our driver and, where wrk is installed, one of wrk: its metrics begin with `wrk`. */
  async measureByBoth (target: Target): Promise<Sample> {
    const own = await this.measure(target)
    if (this.wrkVersion === null) return own
    const { rate, p50, p99, cpu, main, driver } = await this.#meter(target.server, (settings) => this.#wrk.run(target.port, target.load, settings)) as Record<string, number>
    return { ...own, wrkRate: rate!, wrkP50: p50!, wrkP99: p99!, wrkCpu: cpu!, wrkMain: main!, wrkDriver: driver! }
  }

  /**
   * Measures the server's use of resources while the same is done again and again.
   * @param run resolves to the duration of each in milliseconds
   */
  async measureTimes (server: Server, run: () => Promise<number[]>): Promise<Sample> {
    return await this.#meter(server, async () => {
      const start = performance.now()
      const times = await run()
      const elapsed = performance.now() - start
      const [p50, p99, max] = [0.5, 0.99, 1].map((share) => toQuantile(times, share)) as [number, number, number]
      return { rate: times.length / elapsed * 1000, p50, p99, max, answers: times.length, elapsed, driverCpu: NaN }
    })
  }

  /**
   * Starts load from the disturber, at a rate.
   * @returns a function that stops it, and resolves to the number of answers
   */
  async disturb (server: Server, load: Load, rate: number): Promise<() => Promise<number>> {
    const { port } = await server.child.ready
    const target = await this.disturber.call('load', { port, load, learn: false })
    const run = this.disturber.call('run', { target, seconds: 3600, connections: 10, rate })
    return async () => {
      await this.disturber.call('stop', null)
      return (await run).answers
    }
  }

  async #meter (server: Server, run: (settings: RunOptions) => Promise<RunResult>): Promise<Sample> {
    const { seconds, connections } = this.settings
    const before = await server.usage()
    const { answers, elapsed, driverCpu, ...result } = await run({ seconds, connections })
    const after = await server.usage()
    const active = after.active - before.active
    return {
      ...result,
      cpu: (after.cpu - before.cpu) / answers,
      main: (after.main - before.main) / answers,
      cores: (after.cpu - before.cpu) / 1000 / elapsed,
      loop: active / (active + after.idle - before.idle),
      driver: driverCpu,
      rss: after.rss / 2 ** 20
    }
  }

  async close (): Promise<void> {
    await Promise.all([this.driver.stop(), this.disturber.stop()])
    for (const cleanup of this.#cleanups) await cleanup()
    rmSync(this.directory, { recursive: true, force: true })
  }
}

export const RATE: Column = { metric: 'rate', title: 'answers/s', digits: 0 }
export const P50: Column = { metric: 'p50', title: 'p50 ms', digits: 2 }
export const P99: Column = { metric: 'p99', title: 'p99 ms', digits: 2 }
export const COST: Column = { metric: 'cpu', title: 'server CPU us/answer', digits: 1, isCost: true }
export const MAIN_COST: Column = { metric: 'main', title: 'its main thread', digits: 1, isCost: true }
/** Near 1: the server was the limit. */
export const CORES_USED: Column = { metric: 'cores', title: 'server cores used', digits: 2 }
export const LOOP: Column = { metric: 'loop', title: 'server loop busy', digits: 2 }
export const DRIVER: Column = { metric: 'driver', title: 'driver core used', digits: 2 }
export const RSS: Column = { metric: 'rss', title: 'server MiB', digits: 0 }
export const RATES: Column[] = [RATE, P50, P99, COST, MAIN_COST, CORES_USED, DRIVER, RSS]

/** For cases that run both drivers. */
export const BOTH: { columns: Column[], compared: string[] } = {
  columns: [
    { metric: 'wrkRate', title: 'answers/s by wrk', digits: 0 },
    { metric: 'wrkP99', title: 'p99 ms by wrk', digits: 2 },
    { metric: 'wrkCpu', title: 'server CPU us/answer by wrk', digits: 1, isCost: true },
    { metric: 'wrkMain', title: 'its main thread', digits: 1, isCost: true },
    { metric: 'wrkDriver', title: 'core used by wrk', digits: 2 },
    { ...RATE, title: 'answers/s by our driver' },
    { ...P99, title: 'p99 ms by our driver' },
    { ...COST, title: 'server CPU us/answer by our driver' },
    { ...DRIVER, title: 'core used by our driver' },
    RSS
  ],
  compared: ['wrkRate', 'wrkCpu', 'rate']
}
