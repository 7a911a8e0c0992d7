import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Child } from './child.ts'
import type { DriverCalls } from './driver/calls.ts'
import { CORES } from './machine.ts'
import type { Settings } from './settings.ts'
import type { Column, Load, Ready, RunOptions, Sample, ServerCalls, ServerSpec, Subject, Usage } from './types.ts'

export interface Case {
  /** What --only names. */
  name: string
  title: string
  notes?: string[]
  columns: Column[]
  /** What rows are compared by. */
  metric: string
  /** The row that others are compared with. */
  baseline: string
  /** The processes it needs, all up at the same time; an idle one costs nothing. */
  servers: (bench: Bench) => ServerSpec[] | Promise<ServerSpec[]>
  /** What is measured on them, round by round. */
  scenario: (bench: Bench, servers: Map<string, Server>) => Subject[] | Promise<Subject[]>
}

/** A server under test. */
export class Server {
  readonly label: string
  readonly child: Child<ServerCalls, Ready>

  constructor ({ label, file, options = {}, cores = 1, ...how }: ServerSpec) {
    this.label = label
    this.child = new Child(`servers/${file}`, [JSON.stringify(options)], cores === 1 ? CORES.one : CORES.two, how)
  }

  usage (): Promise<Usage> {
    return this.child.call('usage', null)
  }
}

/** A load on a server, known to the driver. */
export interface Target {
  server: Server
  id: number
}

/** What cases work with: settings, the driver, and a directory that goes away. */
export class Bench {
  readonly settings: Settings
  readonly directory = mkdtempSync(join(tmpdir(), 'bench-'))
  readonly driver = new Child<DriverCalls>('driver.ts', [], CORES.driver)
  /** Makes what goes on beside the measurement. */
  readonly disturber = new Child<DriverCalls>('driver.ts', [], CORES.driver)

  readonly #cleaning: (() => Promise<void>)[] = []

  constructor (settings: Settings) {
    this.settings = settings
  }

  /** Tells the person who waits what is going on. */
  log = (text: string): void => {
    process.stderr.write(`${text}\n`)
  }

  /** Something to be done when all is over. */
  atEnd (clean: () => Promise<void>): void {
    this.#cleaning.push(clean)
  }

  /** Makes a load known to the driver: each request is made once, and its answer checked. */
  async aim (server: Server, load?: Load, known = true): Promise<Target> {
    const { port, load: own } = await server.child.ready
    return { server, id: await this.driver.call('load', { port, load: (load ?? own)!, known }) }
  }

  /** One counted run, and what it cost the server. */
  async measure ({ server, id }: Target, options: Partial<RunOptions> = {}): Promise<Sample> {
    const { seconds, connections } = this.settings
    const before = await server.usage()
    const { answers, elapsed, driverCpu, ...result } = await this.driver.call('run', { target: id, seconds, connections, ...options })
    const after = await server.usage()
    const active = after.active - before.active
    return {
      ...result,
      cpu: (after.cpu - before.cpu) / answers,
      cores: (after.cpu - before.cpu) / 1000 / elapsed,
      loop: active / (active + after.idle - before.idle),
      driver: driverCpu,
      rss: after.rss / 2 ** 20
    }
  }

  async close (): Promise<void> {
    await Promise.all([this.driver.stop(), this.disturber.stop()])
    for (const clean of this.#cleaning) await clean()
    rmSync(this.directory, { recursive: true, force: true })
  }
}

export const RATE: Column = { metric: 'rate', title: 'answers/s', digits: 0 }
export const P50: Column = { metric: 'p50', title: 'p50 ms', digits: 2 }
export const P99: Column = { metric: 'p99', title: 'p99 ms', digits: 2 }
export const COST: Column = { metric: 'cpu', title: 'server CPU us/answer', digits: 1 }
/** Near 1: the server was the limit. */
export const CORES_USED: Column = { metric: 'cores', title: 'server cores used', digits: 2 }
export const LOOP: Column = { metric: 'loop', title: 'server loop busy', digits: 2 }
export const DRIVER: Column = { metric: 'driver', title: 'driver core used', digits: 2 }
export const RSS: Column = { metric: 'rss', title: 'server MiB', digits: 0 }
export const RATES: Column[] = [RATE, P50, P99, COST, CORES_USED, DRIVER, RSS]
