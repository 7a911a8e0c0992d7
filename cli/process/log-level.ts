import type { FastifyBaseLogger } from 'fastify'

const VERBOSE = 'debug'

/**
 * SIGUSR2 changes the log level to `debug`, and the next one back, without a restart. Requests in flight keep their level.
 * Windows has no such signal.
 */
export function toggleLogLevel (log: Pick<FastifyBaseLogger, 'level' | 'warn'>): void {
  if (process.platform === 'win32') return
  const configured = log.level
  process.on('SIGUSR2', () => {
    log.level = log.level === configured ? VERBOSE : configured
    log.warn(`SIGUSR2: the log level is ${log.level}`)
  })
}
