import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { CORES, pin, readCpu } from './machine.ts'
import type { Load, RunOptions, RunResult } from './types.ts'

const SCRIPT = fileURLToPath(new URL('driver/wrk.lua', import.meta.url))
/** Seconds after which an unanswered request counts as an error. wrk's default of 2 is reached by a slow peer on a busy machine. */
const TIMEOUT = 30
/** Milliseconds between two readings of wrk's processor time, which is lost when wrk exits. */
const INTERVAL = 100

/** The output of driver/wrk.lua. Times are in microseconds; the names after `max` are wrk's kinds of errors. */
interface Output {
  requests: number
  duration: number
  p50: number
  p99: number
  max: number
  status: number
  connect: number
  read: number
  write: number
  timeout: number
}

/** The version of wrk, or null where it is not installed. */
export function findWrk (): string | null {
  const { error, stdout } = spawnSync('wrk', ['--version'], { encoding: 'utf8' })
  return error === undefined ? stdout.split(' ')[1] ?? 'unknown' : null
}

/** wrk as a driver. It costs less per answer than a Node process, so it does not limit a fast server. It checks only the status. */
export class Wrk {
  readonly #directory: string
  readonly #files = new Map<Load, string>()
  #runs = 0

  /** @param directory for the files of requests */
  constructor (directory: string) {
    this.#directory = directory
  }

  /** @throws Error when any request failed */
  async run (port: number, load: Load, { seconds, connections }: RunOptions): Promise<RunResult> {
    // wrk takes whole seconds. Each run starts at another place of the rotation.
    const duration = Math.max(1, Math.round(seconds))
    const args = ['--threads', '1', '--connections', String(connections), '--duration', `${duration}s`, '--timeout', `${TIMEOUT}s`, '--script', SCRIPT]
    const [command, ...rest] = pin(['wrk', ...args, `http://127.0.0.1:${port}`, '--', this.#write(load), String(this.#runs++ * 997)], CORES.driver)
    const child = spawn(command!, rest, { stdio: ['ignore', 'pipe', 'inherit'] })
    let cpu = NaN
    const timer = setInterval(() => { cpu = readCpu(child.pid!) }, INTERVAL)
    try {
      const [printed] = await Promise.all([text(child.stdout), once(child, 'exit')])
      const output = JSON.parse(printed.trimEnd().split('\n').at(-1)!) as Output
      const errors = (['status', 'connect', 'read', 'write', 'timeout'] as const).filter((kind) => output[kind] > 0)
      if (errors.length > 0) throw new Error(`wrk counted errors: ${errors.map((kind) => `${kind} ${output[kind]}`).join(', ')}`)
      return {
        rate: output.requests / output.duration * 1e6,
        p50: output.p50 / 1000,
        p99: output.p99 / 1000,
        max: output.max / 1000,
        answers: output.requests,
        elapsed: output.duration / 1000,
        driverCpu: cpu / output.duration
      }
    } finally {
      clearInterval(timer)
    }
  }

  #write (load: Load): string {
    let file = this.#files.get(load)
    if (file === undefined) {
      file = join(this.#directory, `requests-${this.#files.size}`)
      writeFileSync(file, load.requests.map((request) => `${Buffer.byteLength(request)}\n${request}`).join(''))
      this.#files.set(load, file)
    }
    return file
  }
}
