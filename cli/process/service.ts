/**
 * A process that serves: alone, or as a worker.
 * @module
 */
import { setTimeout as delay } from 'node:timers/promises'
import { buildApp, getUrl } from '../../app.ts'
import type { Config } from '../../config.ts'
import { findDataDir } from '../../lib/crypto/secret-key.ts'
import { readVersion } from '../../lib/version.ts'
import type { Setting } from '../../schemas/status.ts'
import { chooseTerminal, listPages, welcome } from '../welcome.ts'
import { checkStart } from './check-start.ts'
import { createIpcCounter, type Channel } from './ipc-counter.ts'
import { loadLogFormat } from './log-format.ts'
import { toggleLogLevel } from './log-level.ts'
import { explainListenError } from './listener.ts'
import { LogOutput } from './log-output.ts'
import { STORE_CLOSE, handleEndings } from './shutdown.ts'
import type { WorkerRole } from './worker-role.ts'

/**
 * Serves until a signal or an error ends the process.
 * @param role absent: this is the only process
 * @param listSettings what administrators see of the settings
 * @throws Error when it cannot start
 */
export async function runService (config: Config, role?: WorkerRole, listSettings?: () => Promise<Setting[]>): Promise<void> {
  checkStart(config)
  const format = await loadLogFormat(config, process.stdout, process.env)
  const output = new LogOutput(process.stdout.fd, { shared: role !== undefined, format })
  const ending = new AbortController()
  const app = await buildApp(config, {
    logStream: output,
    closing: ending.signal,
    ...(listSettings && { listSettings }),
    ...(role && { counter: createIpcCounter(process as Channel), processes: config.workers })
  })
  const { log } = app
  const listening = Promise.withResolvers<void>()

  async function exit (code: number): Promise<void> {
    await output.drained()
    // process.exit() would wait for a thread that hangs.
    if (output.stuck) process.kill(process.pid, 'SIGKILL')
    process.exit(code)
  }
  /** Ends the process when a thread may hang. */
  async function killProcess (reason: string): Promise<void> {
    log.fatal(reason)
    await output.drained()
    process.kill(process.pid, 'SIGKILL')
  }
  let closing = false
  async function close (code: number): Promise<void> {
    closing = true
    ending.abort()
    // A failed process must not keep serving, and no balancer sends requests to one that does not listen yet.
    if (code === 0 && app.server.listening && config.shutdownDelay > 0) await delay(config.shutdownDelay)
    const limit = config.shutdownTimeout + STORE_CLOSE
    setTimeout(() => { void killProcess(`could not close within ${limit} ms: the process is killed`) }, limit)
    // Fastify cannot close while it starts to listen.
    await listening.promise
    await app.close()
    log.info('closed')
    await exit(code)
  }
  toggleLogLevel(log)
  // A worker leaves a second signal to the primary: its own may be the terminal's copy of the first.
  handleEndings({ log, close, kill: () => exit(1), isWorker: role !== undefined })
  if (role !== undefined) {
    // Replaces node:cluster's listener, which calls process.exit().
    process.removeAllListeners('disconnect')
    process.once('disconnect', () => { void killProcess('the primary process is gone') })
  }

  try {
    await app.listen({ host: config.host, port: config.port })
    const version = readVersion()
    log.info({ version, node: process.version, store: app.identity.store.engine }, `fastify-identity ${version}`)
  } catch (error) {
    throw explainListenError(error, config)
  } finally {
    listening.resolve()
  }
  if (role === 'other') return
  for (const warning of config.warnings) log.warn(warning)
  if (config.services.production && config.oidc !== false && config.oidc.issuer === undefined) {
    log.warn(`IDENTITY_ISSUER is not configured: the service names itself ${getUrl(app)}`)
  }
  if (config.oidc !== false && app.identity.accounts.outbox === undefined) {
    log.info('mail is not configured: nobody can recover an account by email')
  }
  const terminal = chooseTerminal()
  // A closed stream is no reason to exit.
  const stream = (terminal ?? process.stderr).on('error', () => {})
  // Without a terminal the secrets go to files, next to the database if it is a file.
  const secretsDir = terminal === null ? findDataDir(config.services) ?? 'data' : undefined
  try {
    const url = getUrl(app)
    stream.write(await welcome(app.identity, { url, pages: listPages(config, url), production: config.services.production, secretsDir }))
  } catch (error) {
    // The service works without it. During a shutdown it fails because the store is closed, which is no error.
    if (!closing) log.error({ err: error }, 'first-run setup failed')
  }
}
