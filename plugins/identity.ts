import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { OidcOptions } from '../schemas/oidc.ts'
import { OptionsSchema, type Options } from '../schemas/options.ts'
import type { Setting } from '../schemas/status.ts'
import type { GivenUpstream } from '../schemas/upstream.ts'
import type { FormerFunctions } from '../lib/lazy-migration/call.ts'
import type { Migrate } from '../lib/lazy-migration/index.ts'
import { defined } from '../lib/defined.ts'
import { toIssuer } from '../lib/issuer.ts'
import { openServices, type ServiceOptions, type Services } from '../lib/identity.ts'
import type { Clock } from '../lib/clock.ts'
import { DEFAULT_ACCOUNT_PATH, checkLinks } from '../lib/accounts/links.ts'
import type { MailLook } from '../lib/mail/look.ts'
import type { Mail } from '../lib/mail/port.ts'
import { createSmtp, findSender } from '../lib/mail/smtp.ts'
import type { Counter } from '../lib/throttling/counter.ts'
import { createOptionsReader } from '../lib/options.ts'
import type { Languages } from '../lib/pages/texts/language.ts'
import { readVersion } from '../lib/version.ts'
import { ReconnectedError, type Store, StoreLostError } from '../lib/store/port.ts'
import { decorateRequests } from './auth.ts'
import { type OutageLog, logBackgroundFailure, logOutage, openOutageLog } from './failure-log.ts'
import { type Metrics, serveMetrics } from './metrics.ts'
import { createGuards } from './guards.ts'
import { readMessage } from '../lib/failure.ts'

export { type Identity } from './auth.ts'

declare module './auth.ts' {
  interface Identity extends Services {
    /** With the option `metrics` only. */
    readonly metrics?: Metrics
  }
}

/** Options that are not plain data. */
interface HandedIn {
  /** An open store of the host's. The plugin does not close it. */
  store?: Store
  /** Milliseconds since the epoch; for tests. */
  now?: Clock
  /** Counts sign-ins and password changes across several processes. Absent: in memory. */
  counter?: Counter
  /** Replaces how the answers of other hosts are read; for tests. */
  readOutbound?: NonNullable<ServiceOptions['readOutbound']>
  /** The number of processes that serve on this machine, this one included. Hashing threads and queue places are divided among them. */
  processes?: number
  /** Aborted some time before the app closes: from then on `/health/ready` answers 503, so that a balancer sends no more requests. */
  closing?: AbortSignal
  /** The settings that administrators see. Absent: those of these options. */
  listSettings?: () => Promise<Setting[]>
}

/** The options of the identity plugin; all have defaults. */
export type IdentityOptions = Partial<Omit<Options, 'roles' | 'oidc' | 'mail' | 'upstreams' | 'migrate'>> & {
  /** A mail server and a sender address, or an object with a `send` function. Absent: no mail is sent. */
  mail?: Options['mail'] | Mail
  /** The former system that people move from. Absent: none. */
  migrate?: Partial<NonNullable<Options['migrate']>> & Partial<FormerFunctions>
  roles?: Partial<Options['roles']>
  upstreams?: readonly GivenUpstream[]
  oidc?: false | Partial<OidcOptions>
} & HandedIn

const readData = createOptionsReader(OptionsSchema)

/**
 * Checks options and fills in the defaults, in a copy.
 * @throws Error that names the option
 */
export function readOptions (
  { store, now, counter, readOutbound, processes, closing, listSettings, mail, migrate = {}, ...given }: IdentityOptions
): ReadOptions {
  const handedIn = mail !== undefined && 'send' in mail ? mail : undefined
  const { verify, find, ...plain } = migrate
  const isMigrating = verify !== undefined || Object.keys(plain).length > 0
  const read = readData({ ...given, mail: handedIn === undefined ? mail : undefined, migrate: isMigrating ? plain : undefined })
  checkLinks(read.links)
  const sender = handedIn ?? (read.mail && openSmtp(read.mail))
  if (handedIn !== undefined && typeof handedIn.send !== 'function') throw new Error('option mail.send: must be a function')
  if (sender === undefined && read.signUp) throw new Error('option signUp: needs the option mail')
  const former = read.migrate && readMigrate(read.migrate, { verify, find })
  return { ...read, migrate: former, ...defined({ sender, store, now, counter, readOutbound, processes, closing, listSettings }) }
}

/** The validated options. */
export type ReadOptions = Omit<Options, 'migrate'> & HandedIn & {
  migrate?: Migrate | undefined
  /** The mail transport. */
  sender?: Mail
}

/** A URL with a secret, or functions. @throws Error */
function readMigrate (migrate: NonNullable<Options['migrate']>, { verify, find }: Partial<FormerFunctions>): Migrate {
  const { url, secret, until } = migrate
  if ((url === undefined) === (verify === undefined)) throw new Error('option migrate: needs url or verify, and not both')
  if (url === undefined && secret !== undefined) throw new Error('option migrate.url: is required with secret')
  if (url !== undefined && secret === undefined) throw new Error('option migrate.secret: is required with url')
  if (verify !== undefined && typeof verify !== 'function') throw new Error('option migrate.verify: must be a function')
  if (find !== undefined && (typeof find !== 'function' || verify === undefined)) throw new Error('option migrate.find: must be a function beside verify')
  if (until !== undefined && Number.isNaN(Date.parse(until))) throw new Error('option migrate.until: must be a date and time of RFC 3339')
  return verify === undefined ? migrate : defined({ ...migrate, verify, find })
}

function openSmtp ({ url, from, logo }: NonNullable<Options['mail']>): Mail {
  if (findSender(from) === null) throw new Error('option mail.from: must be an email address, or a name with the address in < >')
  try {
    return { ...createSmtp(url, from), logo }
  } catch (error) {
    throw new Error(`option mail.url: ${readMessage(error)}`)
  }
}

/** The facts about the authorization server that the services need. */
interface ServerParts extends Pick<ServiceOptions, 'refreshTtl' | 'issuer' | 'serviceName' | 'documentHosts'> {
  mailLook?: MailLook
  languages?: Languages
  getIssuer?: () => URL
  accountPath?: string | false
}

/** Whom links of mails lead to must be known before anybody asks. @throws Error */
function checkSender ({ sender, issuer, getIssuer }: Pick<ReadOptions & ServerParts, 'sender' | 'issuer' | 'getIssuer'>): void {
  if (sender === undefined) return
  if (getIssuer === undefined) throw new Error('option mail: needs the authorization server')
  if (sender.local !== true && issuer === undefined) {
    throw new Error('option oidc.issuer: is required with the option mail, since its links lead there')
  }
}

/** What the services tell the log. */
function createLogging (
  { log }: FastifyInstance, logs: { outages?: OutageLog }
): Required<Pick<ServiceOptions, 'onEvents' | 'onMailFailed' | 'onLogoutFailed' | 'onOutage' | 'onRefusedDocument' | 'onWarning' | 'onInfo' | 'onError'>> {
  return {
    onEvents (events) {
      for (const { id, type, time, cursor: _cursor, ...event } of events) log.info({ event: type, event_id: id, event_time: time, ...event }, type)
    },
    onMailFailed: (delivery) => log.warn({ event: 'mail.failed', ...delivery }, 'mail.failed'),
    onLogoutFailed: (delivery) => log.warn({ event: 'logout.failed', ...delivery }, 'logout.failed'),
    onOutage: (of, change, name) => logOutage(log, of, change, name),
    onRefusedDocument: (refused) => log.info(refused, 'the document of a client was refused'),
    onWarning: (message) => log.warn(message),
    onInfo: (message) => log.info(message),
    onError (error, work) {
      if (error instanceof StoreLostError) log.fatal({ err: error }, 'the store is lost: restart the service when its data is in place')
      else if (error instanceof ReconnectedError) log.warn({ err: error }, 'store reconnected')
      // A lost store is logged once, above. The errors that it causes are not logged.
      else if (!(error instanceof Error && error.cause instanceof StoreLostError)) logBackgroundFailure(log, { error, work, outages: logs.outages })
    }
  }
}

async function identityPlugin (app: FastifyInstance, given: ReadOptions & ServerParts): Promise<void> {
  checkSender(given)
  const { getIssuer, serviceName, accountPath, mailLook, languages, sender, ...options } = given
  const { signUp, signUpDomains, links, undoFactors, selfDelete } = options
  // prom-client takes some MiB.
  const meter = options.metrics === undefined ? undefined : (await import('../lib/metrics/prometheus.ts')).createMeter(readVersion())
  // Opened below, with the store.
  const logs: { outages?: OutageLog } = {}
  const services = await openServices({
    ...options,
    meter,
    serviceName,
    getLanguages: languages && (() => languages),
    accounts: {
      mail: sender,
      getIssuer,
      signUp,
      signUpDomains,
      links,
      undoFactors,
      selfDelete,
      serviceName,
      getMailLook: mailLook && (() => mailLook),
      accountPath: accountPath || DEFAULT_ACCOUNT_PATH
    },
    sendsMail: sender?.local !== true,
    relaysEvents: true,
    deliversWebhooks: sender?.local !== true,
    ...createLogging(app, logs)
  })
  logs.outages = openOutageLog(app, services.store)
  if (getIssuer !== undefined && services.passkeys.why !== undefined) app.log.info(services.passkeys.why)
  const { tokens, roles } = services
  const guards = createGuards(app, { tokens, roles, now: options.now ?? Date.now, getIssuer: getIssuer && (() => toIssuer(getIssuer())) })
  const metrics = meter !== undefined && options.metrics !== undefined ? { metrics: serveMetrics(app, meter, options.metrics) } : {}
  app.decorate('identity', { ...services, ...metrics, ...guards })
  decorateRequests(app)
  app.addHook('onClose', services.close)
}

export default fp(identityPlugin, { fastify: '5.x', name: 'fastify-identity/services' })
