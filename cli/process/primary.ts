/**
 * The primary process: it owns the port and supervises the workers. It never opens the store.
 * @module
 */
import cluster from 'node:cluster'
import { extname, join } from 'node:path'
import { pino } from 'pino'
import type { Config } from '../../config.ts'
import { describeError } from '../../lib/failure.ts'
import { createCounter } from '../../lib/throttling/counter.ts'
import { answerCounts } from './ipc-counter.ts'
import { loadLogFormat } from './log-format.ts'
import { toggleLogLevel } from './log-level.ts'
import { LogOutput } from './log-output.ts'
import { toWorkerAddress } from './metrics-ports.ts'
import { handleEndings, toCloseTimeout } from './shutdown.ts'
import { Supervisor } from './supervisor.ts'
import { type Given, toEnvironment, type WorkerRole } from './worker-role.ts'

/**
 * Serves with several workers until a signal ends the process, or no worker can be kept running.
 * @param given what the operator has given to this process
 */
export async function runPrimary (config: Config, given: Given): Promise<void> {
  const format = await loadLogFormat(config, process.stdout, process.env)
  const output = new LogOutput(process.stdout.fd, { shared: true, format })
  const log = pino({ level: config.logLevel, serializers: { err: describeError } }, output)
  const counter = createCounter()
  let role: WorkerRole = 'first'
  const slots = new Map<number, number>()
  cluster.setupPrimary({ exec: join(import.meta.dirname, `../../server${extname(import.meta.filename)}`), args: [] })

  const supervisor = new Supervisor({
    count: config.workers,
    log,
    closeTimeout: toCloseTimeout(config),
    fork () {
      const { createDatabase = !config.services.production } = config.services
      const taken = new Set(slots.values())
      const slot = Array.from({ length: config.workers }, (_, index) => index).find((index) => !taken.has(index)) ?? config.workers
      const { id, process: child } = cluster.fork({
        ...toEnvironment(role, given),
        ...(config.metrics !== undefined && { IDENTITY_METRICS: toWorkerAddress(config.metrics, slot) }),
        IDENTITY_WORKERS: String(config.workers),
        // A worker that starts later must not replace a deleted database with an empty one.
        IDENTITY_CREATE_DATABASE: role === 'first' && createDatabase ? 'on' : 'off'
      })
      slots.set(id, slot)
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
  cluster.on('exit', ({ id }, code, signal) => {
    slots.delete(id)
    supervisor.onExit(id, code, signal)
  })
  toggleLogLevel(log)
  process.on('SIGUSR2', () => { for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill('SIGUSR2') })
  handleEndings({ log, close: (code) => supervisor.close(code), kill: () => supervisor.kill() })
  supervisor.start()
}
