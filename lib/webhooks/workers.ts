import type { Timers } from '../timers.ts'
import { CutOffError } from '../work/failure.ts'
import type { FailedEvent, WebhookRecord } from './record.ts'
import { type Worker, type WorkerParts, createWorker } from './worker.ts'

/** Milliseconds to the next look for work after a failure. */
export const AFTER_FAILURE = 1_000

interface WorkersParts {
  timers: Timers
  stopped: AbortSignal
  onError: (error: unknown) => void
  /** Called when a worker has ended, and its webhook may be leased again. */
  onEnded: () => void
}

/** A worker at its webhook. `ended` resolves to whether it had work. */
interface Running extends Pick<Worker, 'mayBegin' | 'perform'> {
  abort: AbortController
  ended: Promise<boolean>
}

/** The workers of this process: one for each webhook that it has leased. */
export function createWorkers ({ timers, stopped, onError, onEnded }: WorkersParts) {
  const workers = new Map<string, Running>()

  return {
    has: (webhook_id: string): boolean => workers.has(webhook_id),

    isEmpty: (): boolean => workers.size === 0,

    /** Begins to deliver the events of a webhook that was leased. */
    begin (record: WebhookRecord, parts: WorkerParts): void {
      const abort = new AbortController()
      const { run, ...worker } = createWorker(record, parts, { stop: stopped, abort: abort.signal })
      const running = Promise.withResolvers<boolean>()
      const ended = running.promise.finally(() => workers.delete(record.id)).then((hasWorked) => {
        onEnded()
        return hasWorked
      }, (error: unknown) => {
        if (!stopped.aborted) onError(error)
        timers.set(onEnded, AFTER_FAILURE).unref?.()
        return false
      })
      workers.set(record.id, { ...worker, abort, ended })
      running.resolve(run())
    },

    /** Whether the worker of a webhook may begin an attempt now. */
    mayBegin: (webhook_id: string): boolean => workers.get(webhook_id)?.mayBegin() === true,

    /** Makes an attempt at a failed event. @throws CutOffError without a worker */
    async perform (record: FailedEvent): Promise<void> {
      const worker = workers.get(record.webhook_id)
      if (worker === undefined) throw new CutOffError()
      await worker.perform(record)
    },

    abort (webhook_id: string): void {
      workers.get(webhook_id)?.abort.abort()
    },

    abortAll (): void {
      for (const { abort } of workers.values()) abort.abort()
    },

    /** Waits for the workers. @returns whether any had work */
    async settle (): Promise<boolean> {
      const results = await Promise.all([...workers.values()].map(({ ended }) => ended))
      return results.includes(true)
    }
  }
}
