import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { OidcOptions } from '../schemas/oidc.ts'
import { OptionsSchema, type Options } from '../schemas/options.ts'
import type { GivenUpstream } from '../schemas/upstream.ts'
import type { FormerFunctions } from '../lib/former/call.ts'
import type { Migrate } from '../lib/former/index.ts'
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
export function readOptions ({ store, now, counter, readOutbound, processes, closing, mail, migrate: { verify, find, ...migrate } = {}, ...given }: IdentityOptions): ReadOptions {
  const handedIn = mail !== undefined && 'send' in mail ? mail : undefined
  const isMigrating = verify !== undefined || Object.keys(migrate).length > 0
  const read = readData({ ...given, ...(handedIn === undefined && { mail }), ...(isMigrating && { migrate }) })
  checkLinks(read.links)
  const sender = handedIn ?? (read.mail && openSmtp(read.mail))
  if (handedIn !== undefined && typeof handedIn.send !== 'function') throw new Error('option mail.send: must be a function')
  if (sender === undefined && read.signUp) throw new Error('option signUp: needs the option mail')
  const former = read.migrate && readMigrate(read.migrate, { verify, find })
  return { ...read, migrate: former, ...(sender && { sender }), ...(store && { store }), ...(now && { now }), ...(counter && { counter }), ...(readOutbound && { readOutbound }), ...(processes && { processes }), ...(closing && { closing }) }
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
  if ((url === undefined) !== (secret === undefined)) throw new Error(`option migrate.${url === undefined ? 'url: is required with secret' : 'secret: is required with url'}`)
  if (verify !== undefined && typeof verify !== 'function') throw new Error('option migrate.verify: must be a function')
  if (find !== undefined && (typeof find !== 'function' || verify === undefined)) throw new Error('option migrate.find: must be a function beside verify')
  if (until !== undefined && Number.isNaN(Date.parse(until))) throw new Error('option migrate.until: must be a date and time of RFC 3339')
  return verify === undefined ? migrate : { ...migrate, verify, ...(find !== undefined && { find }) }
}

function openSmtp ({ url, from, logo }: NonNullable<Options['mail']>): Mail {
  if (findSender(from) === null) throw new Error('option mail.from: must be an email address, or a name with the address in < >')
  try {
    return { ...createSmtp(url, from), ...(logo !== undefined && { logo }) }
  } catch (error) {
    throw new Error(`option mail.url: ${(error as Error).message}`)
  }
}

/** The facts about the authorization server that the services need. */
interface ServerParts extends Pick<ServiceOptions, 'refreshTtl' | 'issuer' | 'serviceName' | 'documentHosts'> {
  mailLook?: MailLook
  languages?: Languages
  getIssuer?: () => URL
  accountPath?: string | false
}

async function identityPlugin (app: FastifyInstance, { getIssuer, serviceName, accountPath, mailLook, languages, sender, ...options }: ReadOptions & ServerParts): Promise<void> {
  const { signUp, signUpDomains, links, undoFactors, selfDelete } = options
  if (sender !== undefined && getIssuer === undefined) throw new Error('option mail: needs the authorization server')
  if (sender !== undefined && sender.local !== true && options.issuer === undefined) throw new Error('option oidc.issuer: is required with the option mail, since its links lead there')
  // prom-client takes some MiB.
  const meter = options.metrics === undefined ? undefined : (await import('../lib/metrics/prometheus.ts')).createMeter(readVersion())
  // Opened below, with the store.
  const logs: { outages?: OutageLog } = {}
  const services = await openServices({
    ...options,
    meter,
    serviceName,
    ...(languages && { getLanguages: () => languages }),
    accounts: { mail: sender, getIssuer, signUp, signUpDomains, links, undoFactors, selfDelete, serviceName, ...(mailLook && { getMailLook: () => mailLook }), accountPath: accountPath || DEFAULT_ACCOUNT_PATH },
    sendsMail: sender?.local !== true,
    relaysEvents: true,
    deliversWebhooks: sender?.local !== true,
    onEvents: (events) => events.forEach(({ id, type, time, cursor, ...event }) => app.log.info({ event: type, event_id: id, event_time: time, ...event }, type)),
    onMailFailed: (delivery) => app.log.warn({ event: 'mail.failed', ...delivery }, 'mail.failed'),
    onLogoutFailed: (delivery) => app.log.warn({ event: 'logout.failed', ...delivery }, 'logout.failed'),
    onOutage: (of, change, name) => logOutage(app.log, of, change, name),
    onRefusedDocument: (refused) => app.log.info(refused, 'the document of a client was refused'),
    onWarning: (message) => app.log.warn(message),
    onError (error, work) {
      if (error instanceof StoreLostError) app.log.fatal({ err: error }, 'the store is lost: restart the service when its data is in place')
      else if (error instanceof ReconnectedError) app.log.warn({ err: error }, 'store reconnected')
      // A lost store is logged once, above. The errors that it causes are not logged.
      else if (!((error as Error | undefined)?.cause instanceof StoreLostError)) logBackgroundFailure(app.log, { error, work, outages: logs.outages })
    }
  })
  logs.outages = openOutageLog(app, services.store)
  if (getIssuer !== undefined && services.passkeys.why !== undefined) app.log.info(services.passkeys.why)
  const guards = createGuards(app, { tokens: services.tokens, roles: services.roles, now: options.now ?? Date.now, getIssuer: getIssuer && (() => toIssuer(getIssuer())) })
  const metrics = meter !== undefined && options.metrics !== undefined ? { metrics: serveMetrics(app, meter, options.metrics) } : {}
  app.decorate('identity', { ...services, ...metrics, ...guards })
  decorateRequests(app)
  app.addHook('onClose', services.close)
}

export default fp(identityPlugin, { fastify: '5.x', name: 'fastify-identity/services' })
