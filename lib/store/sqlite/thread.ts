import { extname } from 'node:path'
import { type ResourceLimits, Worker } from 'node:worker_threads'
import type { CollectionSpec } from '../port.ts'
import type { Opener } from '../state.ts'
import type { FileId } from './database-file.ts'

/** The data that a thread receives at its start. */
export interface ThreadData {
  file: FileId
  collections: readonly CollectionSpec[]
  opener?: Opener | undefined
  /** Milliseconds to wait for another connection's lock. */
  busy: number
  /** The file was seen with content: a thread that starts later and finds none makes no new database. Set once the store is open. */
  hasContent?: boolean
}

/** Asks a thread to exit. */
export const END = 'end'

/** The module of a thread. Its extension is that of this module, because tsc rewrites imports and not URLs. */
export function threadFile (name: string): URL {
  return new URL(`./${name}${extname(import.meta.url)}`, import.meta.url)
}

export interface ThreadEvents {
  message: (message: unknown) => void
  /** The thread exited, and messages that it has not answered are lost. The next message starts another thread. */
  death: (error: Error) => void
}

/**
 * A worker thread that starts with the first message. It is unref'd, so it never keeps the process alive. The timer of a pending
 * request does.
 */
export class Thread {
  readonly #file: URL
  readonly #data: ThreadData
  readonly #events: ThreadEvents
  readonly #limits: ResourceLimits
  #worker: Worker | null = null

  constructor (file: URL, data: ThreadData, events: ThreadEvents, limits: ResourceLimits = {}) {
    this.#file = file
    this.#data = data
    this.#events = events
    this.#limits = limits
  }

  post (message: unknown): void {
    this.#worker ??= this.#start()
    this.#worker.postMessage(message)
  }

  /** Lets the thread finish the messages it was sent, and waits for its exit. Terminates it after the timeout. */
  async end (timeout: number): Promise<void> {
    const worker = this.#worker
    if (worker === null) return
    this.#worker = null
    const { promise, resolve } = Promise.withResolvers<void>()
    worker.once('exit', resolve)
    worker.ref()
    worker.postMessage(END)
    const timer = setTimeout(() => { void worker.terminate() }, timeout)
    await promise
    clearTimeout(timer)
  }

  #start (): Worker {
    // Without the process's flags: --import would load its module in the thread too.
    const worker = new Worker(this.#file, { workerData: this.#data, execArgv: [], resourceLimits: this.#limits })
    let cause = new Error('the thread ended')
    worker.on('message', this.#events.message)
    worker.on('error', (error: Error) => { cause = error })
    worker.on('exit', () => {
      if (this.#worker !== worker) return
      this.#worker = null
      this.#events.death(cause)
    })
    worker.unref()
    return worker
  }
}
