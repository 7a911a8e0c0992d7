import type { FastifyBaseLogger } from 'fastify'

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

/** Milliseconds that the store has to close after the last request. */
export const STORE_CLOSE = 5000

/** Milliseconds within which a second signal is the same Ctrl-C: both the terminal and npm send it. */
const ECHO = 500

export interface Endings {
  log: Pick<FastifyBaseLogger, 'info' | 'error' | 'fatal'>
  /** Shuts down gracefully, then exits with this code. */
  close (code: number): void
  /** Exits at once. Absent: another process decides. */
  kill?: () => void
}

/** Shuts down at the first signal or uncaught exception, and exits at once at a second one. */
export function handleEndings ({ log, close, kill }: Endings): void {
  let closingSince: number | undefined
  for (const signal of SIGNALS) {
    // From here on the process serves: no listener from before may end it.
    process.removeAllListeners(signal)
    process.on(signal, () => {
      if (closingSince === undefined) {
        closingSince = performance.now()
        log.info(`${signal}: closing`)
        close(0)
      } else if (kill !== undefined && performance.now() - closingSince > ECHO) {
        log.error(`${signal} again: requests in flight are aborted`)
        kill()
      }
    })
  }
  // An unhandled rejection arrives here too.
  let failed = false
  process.on('uncaughtException', (error) => {
    log.fatal({ err: error }, 'uncaught exception')
    if (failed) return kill?.()
    failed = true
    closingSince ??= performance.now()
    close(1)
  })
}
