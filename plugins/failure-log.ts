import type { Server } from 'node:http'
import type { FastifyBaseLogger, FastifyInstance, FastifyRequest } from 'fastify'
import { ClosingError, IdentityError } from '../lib/errors.ts'
import type { Store } from '../lib/store/port.ts'
import { TIMERS, type Timers } from '../lib/timers.ts'
import { UpstreamError } from '../lib/upstreams/failure.ts'
import { nameFailure, quoteFailure } from '../lib/work/failure.ts'
import { type Ended, Outage, type OutageOf } from '../lib/work/outage.ts'

/** Milliseconds between two lines about refused requests, and between two looks whether the store is back. */
const INTERVAL = 1000

/** The longest chain of causes in which an error of the store is looked for. */
const MAX_CAUSES = 4

/** Logs refusals in one line per second: an overload refuses thousands of requests, and each would write a stack. */
export class BusyLog {
  readonly #timers: Timers
  #refused = 0
  #timer: NodeJS.Timeout | undefined

  constructor (timers: Timers = TIMERS) {
    this.#timers = timers
  }

  count (log: FastifyBaseLogger, error: IdentityError): void {
    this.#refused++
    if (this.#timer === undefined) this.#write(log, error)
  }

  #write (log: FastifyBaseLogger, error: IdentityError): void {
    log.error({ code: error.code, refused: this.#refused }, error.message)
    this.#refused = 0
    this.#timer = this.#timers.set(() => {
      this.#timer = undefined
      if (this.#refused > 0) this.#write(log, error)
    }, INTERVAL).unref()
  }
}

/**
 * Logs an outage of the store in two lines, whatever fails meanwhile: the first failure with its cause, and the end with the number of
 * failures. Each call and each kind of work in the background fails during an outage, and each would write a stack; with debug lines, it does.
 */
export class OutageLog {
  readonly #outage: Outage
  readonly #store: Pick<Store, 'ping'>
  readonly #timers: Timers
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor (log: FastifyBaseLogger, store: Pick<Store, 'ping'>, timers: Timers = TIMERS) {
    // Each is told: the looks bound their number, and every other call of the service fails meanwhile.
    this.#outage = new Outage({ onBegin: () => this.#schedule(), onEnd: (ended) => log.warn({ ...ended }, 'the store is available again'), quiet: 0, timers })
    this.#store = store
    this.#timers = timers
  }

  /** @param log of the request that failed, or of the app */
  count (log: FastifyBaseLogger, fields: { err: unknown, code: string, work?: string }, message: string): void {
    if (this.#closed) return
    if (this.#outage.fail(fields.err)) log.error(fields, message)
    else log.debug(fields, message)
  }

  close (): void {
    this.#closed = true
    this.#timers.clear(this.#timer)
  }

  #schedule (): void {
    if (!this.#closed) this.#timer = this.#timers.set(() => { void this.#look() }, INTERVAL).unref()
  }

  async #look (): Promise<void> {
    try {
      await this.#store.ping()
    } catch {
      this.#schedule()
      return
    }
    if (!this.#closed) this.#outage.succeed()
  }
}

/** How the outage of something that the service calls begins and ends. */
const OUTAGES: Record<OutageOf, { begins: string, ends: string, field?: string }> = {
  mail: { begins: 'the mail server accepts no mail', ends: 'the mail server accepts mails again' },
  upstream: { begins: 'an upstream cannot be used', ends: 'the upstream can be used again', field: 'upstream' },
  document: { begins: 'the documents of clients cannot be read', ends: 'the documents of clients can be read again', field: 'host' },
  logout: { begins: 'an app accepts no logout tokens', ends: 'the app accepts logout tokens again', field: 'client_id' },
  webhook: { begins: 'a receiver of a webhook accepts no events', ends: 'the receiver of the webhook accepts events again', field: 'webhook' }
}

/** Logs the begin of an outage with the other side's words, and its end. */
export function logOutage (log: FastifyBaseLogger, of: OutageOf, change: { error: unknown } | Ended, name?: string): void {
  const { begins, ends, field } = OUTAGES[of]
  const whose = field !== undefined && name !== undefined ? { [field]: name } : {}
  if ('error' in change) log.error({ ...whose, failure: nameFailure(change.error), answer: quoteFailure(change.error) }, begins)
  else log.warn({ ...whose, ...change }, ends)
}

const busyLogs = new WeakMap<Server, BusyLog>()
const outageLogs = new WeakMap<Store, OutageLog>()

/** Creates the log of outages of an app's store, for the life of the app. */
export function openOutageLog (app: FastifyInstance, store: Store): OutageLog {
  const outages = new OutageLog(app.log, store)
  outageLogs.set(store, outages)
  app.addHook('onClose', async () => outages.close())
  return outages
}

/** The error of the store that an error is, or that caused it. */
function findStoreError (error: unknown): IdentityError | undefined {
  let cause = error
  for (let depth = 0; cause instanceof Error && depth < MAX_CAUSES; depth++, cause = cause.cause) {
    if (cause instanceof IdentityError && cause.code === 'ErrDb') return cause
  }
  return undefined
}

/** Logs an error of the authorization server. One of the store goes through OutageLog, and one of an overload through BusyLog. */
export function logServerFailure (app: FastifyInstance, error: unknown, fields: object): void {
  const message = 'authorization server failed'
  const failed = findStoreError(error)
  const outages = outageLogs.get(app.identity.store)
  if (failed !== undefined && outages !== undefined) outages.count(app.log, { err: failed.cause ?? failed, code: failed.code, ...fields }, failed.message)
  else app.log.error({ err: error, ...fields }, message)
}

/** Logs a failure that no caller waits for. Without `outages`, the store is not open yet. */
export function logBackgroundFailure (
  log: FastifyBaseLogger, { error, work, outages }: { error: unknown, work: string, outages: OutageLog | undefined }
): void {
  const failed = findStoreError(error)
  if (failed !== undefined && outages !== undefined) outages.count(log, { err: failed.cause ?? failed, code: failed.code, work }, failed.message)
  else log.error({ err: error, work }, 'work in the background failed')
}

/** Logs a server error (5xx) with its cause. ErrBusy goes through BusyLog, and ErrDb through OutageLog. */
export function logFailure ({ log, server }: FastifyRequest, error: IdentityError): void {
  if (error.statusCode < 500) return
  // The outage is told once, and not to each visitor's line.
  if (error.cause instanceof UpstreamError) return log.debug({ err: error.cause }, error.message)
  if (error.code === 'ErrBusy') {
    let busyLog = busyLogs.get(server.server)
    if (busyLog === undefined) busyLogs.set(server.server, busyLog = new BusyLog())
    busyLog.count(server.log, error)
    return
  }
  const fields = { err: error.cause ?? error, code: error.code }
  const store = (server as Partial<FastifyInstance>).identity?.store
  const outages = error.code === 'ErrDb' && !(error instanceof ClosingError) && store !== undefined ? outageLogs.get(store) : undefined
  if (outages === undefined) log.error(fields, error.message)
  else outages.count(log, fields, error.message)
}
