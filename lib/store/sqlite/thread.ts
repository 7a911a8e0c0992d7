import { extname } from 'node:path'
import { type ResourceLimits, Worker } from 'node:worker_threads'
import type { CollectionSpec } from '../port.ts'
import type { FileId } from './database-file.ts'

/** What a thread of ours is told when it starts. */
export interface ThreadData {
  file: FileId
  collections: readonly CollectionSpec[]
  /** Milliseconds to wait for another connection's lock. */
  busy: number
}

/** Sent to a thread that shall end. */
export const END = 'end'

/**
 * The file of a thread beside this one: `.ts` when run from the sources, `.js` when built, since the text of such a
 * reference is not rewritten.
 */
export function threadFile (name: string): URL {
  return new URL(`./${name}${extname(import.meta.url)}`, import.meta.url)
}

export interface ThreadEvents {
  message: (message: unknown) => void
  /** The thread is gone: what it owed will not come. The next message starts another. */
  death: (error: Error) => void
}

/** A worker thread that starts when it is first needed. It never keeps the process: what waits for an answer has a timer that does. */
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

  /** Lets the thread finish what it was sent, and waits for its end, but not for ever. */
  async end (timeout: number): Promise<void> {
    const worker = this.#worker
    if (worker === null) return
    this.#worker = null
    const { promise, resolve } = Promise.withResolvers<void>()
    worker.once('exit', resolve)
    worker.ref()
    worker.postMessage(END)
    const timer = setTimeout(() => worker.terminate(), timeout)
    await promise
    clearTimeout(timer)
  }

  #start (): Worker {
    // The process's own flags are not for this thread: a preloaded module would start with it.
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
