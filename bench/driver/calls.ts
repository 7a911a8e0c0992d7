import type { DownloadResult, Load, RunOptions, RunResult } from '../types.ts'
import { download, type DownloadOptions } from './download.ts'
import { learn } from './learn.ts'
import { PreparedLoad } from './load.ts'
import { Round } from './round.ts'
import { signInUntil, type SignInOptions } from './sign-in.ts'

interface Target {
  port: number
  load: PreparedLoad
}

const targets = new Map<number, Target>()
let stop: (() => void) | undefined
/** Counters of one target never meet those of another, and rounds go on in the rotation where the last one began. */
let begun = 0

/** What the driver does when it is asked to. */
export const calls = {
  /** Prepares a load for a server and sends it through once; resolves to the target's number. */
  async load ({ port, load, known = true }: { port: number, load: Load, known?: boolean }): Promise<number> {
    const prepared = new PreparedLoad(load, targets.size * 100_000_000)
    if (known) await learn(prepared, port)
    targets.set(targets.size, { port, load: prepared })
    return targets.size - 1
  },

  async run ({ target, ...options }: RunOptions & { target: number }): Promise<RunResult> {
    const { port, load } = targets.get(target)!
    const round = new Round(load, options, begun++ * 997)
    stop = () => round.stop()
    return await round.run(port)
  },

  download: (options: DownloadOptions): Promise<DownloadResult> => download(options),

  /** Downloads again and again until `stop`; resolves to the number that came to their end. */
  async downloads (options: DownloadOptions): Promise<number> {
    const abort = new AbortController()
    stop = () => abort.abort()
    for (let whole = 0; ; whole++) {
      try {
        await download(options, abort.signal)
      } catch (error) {
        if (abort.signal.aborted) return whole
        throw error
      }
    }
  },

  /** Signs users in until `stop`, or for so many seconds; resolves to the milliseconds each took. */
  async signIns ({ concurrency, seconds, ...options }: SignInOptions & { concurrency: number, seconds?: number }): Promise<number[]> {
    let over = false
    stop = () => { over = true }
    const until = performance.now() + (seconds ?? Infinity) * 1000
    return await signInUntil(options, concurrency, () => over || performance.now() >= until)
  },

  stop: async (_params: null): Promise<void> => stop?.()
}

export type DriverCalls = typeof calls
