import type { DownloadResult, Load, RunOptions, RunResult } from '../types.ts'
import { download, type DownloadOptions } from './download.ts'
import { learnAnswers } from './learn.ts'
import { PreparedLoad } from './load.ts'
import { type Receiver, startReceiver, stopReceiver } from './receiver.ts'
import { Round } from './round.ts'
import { signInUntil, type SignInOptions } from './sign-in.ts'

interface Target {
  port: number
  load: PreparedLoad
}

const targets = new Map<number, Target>()
let stop: (() => void) | undefined
/** Number of rounds so far. Each starts at another place of its rotation. */
let rounds = 0

/** The driver's calls. */
export const calls = {
  /** Prepares a load for a server and, with `learn`, makes each request once. Resolves to the target's number. */
  async load ({ port, load, learn = true }: { port: number, load: Load, learn?: boolean }): Promise<number> {
    // The counters of two targets never overlap.
    const prepared = new PreparedLoad(load, targets.size * 100_000_000)
    if (learn) await learnAnswers(prepared, port)
    targets.set(targets.size, { port, load: prepared })
    return targets.size - 1
  },

  async run ({ target, ...options }: RunOptions & { target: number }): Promise<RunResult> {
    const { port, load } = targets.get(target)!
    const round = new Round(load, options, rounds++ * 997)
    stop = () => round.stop()
    return await round.run(port)
  },

  download: (options: DownloadOptions): Promise<DownloadResult> => download(options),

  /** Repeats a download until `stop`; resolves to the number of complete downloads. */
  async downloads (options: DownloadOptions): Promise<number> {
    const abort = new AbortController()
    stop = () => abort.abort()
    for (let complete = 0; ; complete++) {
      try {
        await download(options, abort.signal)
      } catch (error) {
        if (abort.signal.aborted) return complete
        throw error
      }
    }
  },

  /** Signs users in until `stop`, or for a number of seconds. Resolves to the duration of each sign-in in milliseconds. */
  async signIns ({ concurrency, seconds, ...options }: SignInOptions & { concurrency: number, seconds?: number }): Promise<number[]> {
    let stopped = false
    stop = () => { stopped = true }
    const until = performance.now() + (seconds ?? Infinity) * 1000
    return await signInUntil(options, concurrency, () => stopped || performance.now() >= until)
  },

  /** Starts a receiver of webhooks and logout tokens; resolves to its port. */
  receive: async ({ receiver }: { receiver: Receiver }): Promise<number> => await startReceiver(receiver),

  stopReceiver: async (_params: null): Promise<void> => stopReceiver(),

  stop: async (_params: null): Promise<void> => stop?.()
}

export type DriverCalls = typeof calls
