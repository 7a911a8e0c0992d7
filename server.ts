/**
 * The process: environment -> app, listening until it is told to stop.
 * @module
 */
import closeWithGrace from 'close-with-grace'
import { buildApp, getUrl } from './app.ts'
import { readConfig } from './config.ts'
import { chooseTerminal, welcome } from './cli/welcome.ts'
import { explainFailure } from './lib/failure.ts'
import { LogOutput } from './lib/log-output.ts'
import { findDataDir } from './lib/secret-key.ts'

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

/** Milliseconds beyond the time that requests have, in which the store is closed. */
const STORE_CLOSE = 5000

/** Of a Ctrl-C both the terminal and npm tell this process: what follows within these milliseconds is the same signal. */
const ECHO = 500

async function start (): Promise<void> {
  const config = readConfig(process.env)
  const output = new LogOutput(process.stdout.fd)
  // An exit would wait for a thread that is stuck, however long that takes.
  const endHard = () => process.kill(process.pid, 'SIGKILL')
  process.on('exit', () => output.writeLast())
  const app = await buildApp(config, { logStream: output })

  const grace = closeWithGrace({
    delay: config.shutdownTimeout + STORE_CLOSE,
    logger: app.log,
    onTimeout: (delay) => {
      app.log.fatal(`could not close within ${delay} ms: the process is killed`)
      output.writeLast()
      endHard()
    },
    // Signals are handled below; the others end the process as they do by themselves.
    skip: ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGILL', 'SIGTRAP', 'SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGSEGV', 'SIGUSR2', 'SIGTERM']
  }, async ({ err }) => {
    if (err !== undefined) app.log.fatal({ err }, 'an error that nothing caught')
    await app.close()
    app.log.info('closed')
    await output.drained()
    if (output.stuck) endHard()
  })
  let since: number | undefined
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      if (since === undefined) {
        since = performance.now()
        app.log.info(`${signal}: closing`)
        grace.close()
      } else if (performance.now() - since > ECHO) {
        app.log.error(`${signal} again: what runs is cut`)
        process.exit(1)
      }
    })
  }

  await app.listen({ host: config.host, port: config.port })
  const terminal = chooseTerminal()
  // Whoever does not want to read it is not a reason to end.
  const stream = (terminal ?? process.stderr).on('error', () => {})
  // What is kept of a store in memory lies where that of a server would.
  const keepIn = terminal === null ? findDataDir(config.services) ?? 'data' : undefined
  try {
    stream.write(await welcome(app.identity, { url: getUrl(app), production: config.services.production, keepIn }))
  } catch (error) {
    // The service serves without it; and a signal that came in the meantime has closed the store.
    if (since === undefined) app.log.error({ err: error }, 'the first call cannot be told')
  }
}

start().catch((error: unknown) => {
  for (const line of explainFailure(error).split('\n')) process.stderr.write(`fastify-identity: ${line}\n`)
  process.exit(1)
})
