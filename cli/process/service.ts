/**
 * A process that serves: alone, or as one of several workers.
 * @module
 */
import closeWithGrace from 'close-with-grace'
import { buildApp, getUrl } from '../../app.ts'
import type { Config } from '../../config.ts'
import { createDistantCounter, type Channel } from './counter-channel.ts'
import { LogOutput } from './log-output.ts'
import { findDataDir } from '../../lib/crypto/secret-key.ts'
import { STORE_CLOSE, obeySignals } from './signals.ts'
import { chooseTerminal, welcome } from '../welcome.ts'

/** What a worker has of the process that started it. */
export interface Primary {
  channel: Channel
  /** Called at the first call's having been told; absent: another worker tells it. */
  welcomed?: (() => void) | undefined
}

/**
 * Serves until a signal or an error ends the process.
 * @param primary absent: this is the only process
 * @throws Error when it cannot begin
 */
export async function runService (config: Config, primary?: Primary): Promise<void> {
  const output = new LogOutput(process.stdout.fd, { shared: primary !== undefined })
  // An exit would wait for a thread that is stuck, however long that takes.
  const endHard = () => process.kill(process.pid, 'SIGKILL')
  process.on('exit', () => output.writeLast())
  const app = await buildApp(config, {
    logStream: output,
    ...(primary && { counter: createDistantCounter(primary.channel), processes: config.workers })
  })

  const listening = Promise.withResolvers<unknown>()
  const grace = closeWithGrace({
    delay: config.shutdownTimeout + STORE_CLOSE,
    logger: app.log,
    onTimeout: (delay) => {
      output.writeLast(() => app.log.fatal(`could not close within ${delay} ms: the process is killed`))
      endHard()
    },
    // Signals are handled below; the others end the process as they do by themselves.
    skip: ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGILL', 'SIGTRAP', 'SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGSEGV', 'SIGUSR2', 'SIGTERM']
  }, async ({ err }) => {
    if (err !== undefined) app.log.fatal({ err }, 'an error that nothing caught')
    // What is on its way to listen cannot be closed yet.
    await listening.promise
    await app.close()
    app.log.info('closed')
    await output.drained()
    if (output.stuck) endHard()
  })
  let closing = false
  obeySignals({
    close (signal) {
      closing = true
      app.log.info(`${signal}: closing`)
      grace.close()
    },
    cut (signal) {
      // A worker's second one may be the terminal's word beside the primary's, who is the one to decide.
      if (primary !== undefined) return
      app.log.error(`${signal} again: what runs is cut`)
      process.exit(1)
    }
  })
  if (primary !== undefined) {
    // Before node:cluster's own, which exits: that would wait for a thread that is stuck.
    process.prependOnceListener('disconnect', () => {
      output.writeLast(() => app.log.fatal('the process that started this one is gone'))
      endHard()
    })
  }

  try {
    await app.listen({ host: config.host, port: config.port })
  } catch (error) {
    // What a worker is told of it has no words.
    const taken = primary !== undefined && (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
    throw taken ? new Error(`listen EADDRINUSE: address already in use ${config.host}:${config.port}`) : error
  } finally {
    listening.resolve(undefined)
  }
  if (primary !== undefined && primary.welcomed === undefined) return
  if (config.services.production && config.oidc !== false && config.oidc.issuer === undefined) {
    app.log.warn(`IDENTITY_ISSUER is not configured: apps and browsers are told that the service is at ${getUrl(app)}`)
  }
  const terminal = chooseTerminal()
  // Whoever does not want to read it is not a reason to end.
  const stream = (terminal ?? process.stderr).on('error', () => {})
  // What is kept of a store in memory lies where that of a server would.
  const keepIn = terminal === null ? findDataDir(config.services) ?? 'data' : undefined
  try {
    stream.write(await welcome(app.identity, { url: getUrl(app), production: config.services.production, keepIn }))
    primary?.welcomed?.()
  } catch (error) {
    // The service serves without it; and a signal that came in the meantime has closed the store.
    if (!closing) app.log.error({ err: error }, 'the first call cannot be told')
  }
}
