/**
 * The primary process: it owns the port and supervises the workers. It never opens the store.
 * @module
 */
import cluster from 'node:cluster'
import { extname, join } from 'node:path'
import { pino } from 'pino'
import type { Config } from '../../config.ts'
import { describeError } from '../../lib/failure.ts'
import { createCounter } from '../../lib/sign-in/counter.ts'
import { answerCounts } from './ipc-counter.ts'
import { LogOutput } from './log-output.ts'
import { STORE_CLOSE, handleEndings } from './shutdown.ts'
import { Supervisor } from './supervisor.ts'
import { toEnvironment, type WorkerRole } from './worker-role.ts'

/** Milliseconds for workers to exit beyond the time they allow themselves. */
const MARGIN = 1000

/** Serves with several workers until a signal ends the process, or no worker can be kept running. */
export function runPrimary (config: Config): void {
  const output = new LogOutput(process.stdout.fd, { shared: true })
  const log = pino({ level: config.logLevel, serializers: { err: describeError } }, output)
  const counter = createCounter()
  let role: WorkerRole = 'first'
  cluster.setupPrimary({ exec: join(import.meta.dirname, `../../server${extname(import.meta.filename)}`), args: [] })

  const supervisor = new Supervisor({
    count: config.workers,
    log,
    closeTimeout: config.shutdownDelay + config.shutdownTimeout + STORE_CLOSE + MARGIN,
    fork () {
      const { createDatabase = !config.services.production } = config.services
      const { id, process: child } = cluster.fork({
        ...toEnvironment(role),
        IDENTITY_WORKERS: String(config.workers),
        // A worker that starts later must not replace a database that is gone by an empty one.
        IDENTITY_CREATE_DATABASE: role === 'first' && createDatabase ? 'on' : 'off'
      })
      role = 'other'
      answerCounts(child, counter)
      child.on('error', (error) => {
        log.error({ worker: id, err: error }, 'worker process error')
        // No exit event follows when the process could not be started.
        if (child.pid === undefined) supervisor.onExit(id, null, null)
      })
      return { id, pid: child.pid, kill: (signal) => { child.kill(signal) } }
    },
    async end (code) {
      if (code === 0) log.info('closed')
      await output.drained()
      process.exit(code)
    }
  })
  cluster.on('listening', ({ id }) => supervisor.onListening(id))
  cluster.on('exit', ({ id }, code, signal) => supervisor.onExit(id, code, signal))
  handleEndings({ log, close: (code) => supervisor.close(code), kill: () => supervisor.kill() })
  supervisor.start()
}
