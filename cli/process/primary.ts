/**
 * The process that holds the listener and keeps the workers. It opens no store.
 * @module
 */
import cluster, { type Worker } from 'node:cluster'
import { extname, join } from 'node:path'
import type { Config } from '../../config.ts'
import { answerCounts } from './counter-channel.ts'
import { createCounter } from '../../lib/sign-in/counter.ts'
import { hideCredentials } from '../../lib/failure.ts'
import { LogOutput } from './log-output.ts'
import { createLog } from './plain-log.ts'
import { STORE_CLOSE, obeySignals } from './signals.ts'
import { Supervisor } from './supervisor.ts'
import { isWelcomed, workerEnv } from './worker.ts'

/** Milliseconds that workers have for their end beyond those they give themselves. */
const MARGIN = 1000

/** Serves with so many workers until a signal ends the process, or they keep ending. */
export function runPrimary (config: Config): void {
  const output = new LogOutput(process.stdout.fd, { shared: true })
  const log = createLog(output, config.logLevel)
  const counter = createCounter()
  let welcomed = false
  /** The one that is to tell the first call; another one, should it end before. */
  let welcoming: Worker | undefined
  process.on('exit', () => output.writeLast())
  cluster.setupPrimary({ exec: join(import.meta.dirname, `../../server${extname(import.meta.filename)}`), args: [] })

  function fork () {
    const welcomes = !welcomed && welcoming?.isDead() !== false
    const worker: Worker = cluster.fork(workerEnv(config.workers, { welcomes }))
    if (welcomes) welcoming = worker
    const { process: child } = worker
    answerCounts(child, counter)
    worker.on('message', (message: unknown) => { welcomed ||= isWelcomed(message) })
    child.on('error', (error) => {
      log.error('a worker fails', { worker: worker.id, error: hideCredentials(error.message) })
      // Of one that could not be started no end is told.
      if (child.pid === undefined) supervisor.exited(worker.id, null, null)
    })
    return { id: worker.id, pid: child.pid, kill: (signal: NodeJS.Signals) => { child.kill(signal) } }
  }

  const supervisor = new Supervisor({
    count: config.workers,
    fork,
    log,
    limit: config.shutdownTimeout + STORE_CLOSE + MARGIN,
    end (code) {
      if (code === 0) log.info('closed')
      process.exit(code)
    }
  })
  cluster.on('listening', ({ id }) => supervisor.listening(id))
  cluster.on('exit', ({ id }, code, signal) => supervisor.exited(id, code, signal))
  obeySignals({
    close (signal) {
      log.info(`${signal}: closing`)
      supervisor.close()
    },
    cut (signal) {
      log.error(`${signal} again: what runs is cut`)
      supervisor.cut()
    }
  })
  process.on('uncaughtException', (error) => {
    log.fatal('an error that nothing caught', { err: { message: hideCredentials(error.message), stack: hideCredentials(error.stack ?? '') } })
    supervisor.cut()
  })
  supervisor.start()
}
