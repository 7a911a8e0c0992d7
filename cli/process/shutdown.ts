import type { FastifyBaseLogger } from 'fastify'
import type { Config } from '../../config.ts'

/** SIGQUIT too: without a listener it leaves a core dump, which contains our secrets. */
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'] as const

/** Milliseconds that the store has to close after the last request. */
export const STORE_CLOSE = 5000

/** Milliseconds for a worker to exit beyond the time it allows itself. */
const MARGIN = 1000

/** Milliseconds after a signal within which a worker exits by itself. */
export const toCloseTimeout = ({ shutdownDelay, shutdownTimeout }: Pick<Config, 'shutdownDelay' | 'shutdownTimeout'>): number =>
  shutdownDelay + shutdownTimeout + STORE_CLOSE + MARGIN

/** Milliseconds within which a second signal is the same Ctrl-C: both the terminal and npm send it. */
const ECHO = 500

interface Endings {
  log: Pick<FastifyBaseLogger, 'info' | 'error' | 'fatal'>
  /** Shuts down gracefully, then exits with this code. Called once. */
  close (code: number): void | Promise<void>
  /** Exits at once. */
  kill (): void | Promise<void>
  /** Whether to ignore a second signal, because the primary handles it. */
  isWorker?: boolean
}

/** Shuts down at the first signal or uncaught exception, and exits at once at a second one. */
export function handleEndings ({ log, close, kill, isWorker = false }: Endings): void {
  let closingSince: number | undefined
  const begin = (code: number) => {
    closingSince = performance.now()
    // Its rejection is an uncaught exception, which kills below.
    void close(code)
  }
  for (const signal of SIGNALS) {
    // From here on the process serves: no earlier listener may end it.
    process.removeAllListeners(signal)
    process.on(signal, () => {
      if (closingSince === undefined) {
        log.info(`${signal}: closing`)
        begin(0)
      } else if (!isWorker && performance.now() - closingSince > ECHO) {
        log.error(`${signal} again: requests in flight are aborted`)
        void kill()
      }
    })
  }
  // Without a listener Node opens its inspector, through which every user of this machine could read our secrets.
  process.on('SIGUSR1', () => log.info('SIGUSR1 is ignored'))
  // An unhandled rejection arrives here too.
  process.on('uncaughtException', (error) => {
    log.fatal({ err: error }, 'uncaught exception')
    if (closingSince === undefined) begin(1)
    else void kill()
  })
}
