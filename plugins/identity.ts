import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { OidcOptions } from '../schemas/oidc.ts'
import { OptionsSchema, type Options } from '../schemas/options.ts'
import { toIssuer } from '../lib/issuer.ts'
import { openServices, type ServiceOptions, type Services } from '../lib/identity.ts'
import type { Clock } from '../lib/clock.ts'
import type { Counter } from '../lib/sign-in/counter.ts'
import { createOptionsReader } from '../lib/options.ts'
import { readVersion } from '../lib/version.ts'
import { ReconnectedError, type Store, StoreLostError } from '../lib/store/port.ts'
import { createAdmission, type GuardOptions } from './admission.ts'
import { createGuard, decorateRequests } from './auth.ts'
import { type Metrics, serveMetrics } from './metrics.ts'
import { createProtect } from './protect.ts'

export { type Identity } from './auth.ts'

declare module './auth.ts' {
  interface Identity extends Services {
    /** With the option `metrics` only. */
    readonly metrics?: Metrics
  }
}

/** Options that are not plain data. */
export interface HandedIn {
  /** An open store of the host's. The plugin does not close it. */
  store?: Store
  /** Milliseconds since the epoch; for tests. */
  now?: Clock
  /** Counts sign-ins and password changes across several processes. Absent: in memory. */
  counter?: Counter
  /** The number of processes that serve on this machine, this one included. Hashing threads and queue places are divided among them. */
  processes?: number
  /** Aborted some time before the app closes: from then on `/health/ready` answers 503, so that a balancer sends no more requests. */
  closing?: AbortSignal
}

/** The options of the identity plugin; all have defaults. */
export type IdentityOptions = Partial<Omit<Options, 'roles' | 'oidc'>> & {
  roles?: Partial<Options['roles']>
  oidc?: false | Partial<OidcOptions>
} & HandedIn

const readData = createOptionsReader(OptionsSchema)

/**
 * Checks options and fills in the defaults, in a copy.
 * @throws Error that names the option
 */
export function readOptions ({ store, now, counter, processes, closing, ...given }: IdentityOptions): Options & HandedIn {
  return { ...readData(given), ...(store && { store }), ...(now && { now }), ...(counter && { counter }), ...(processes && { processes }), ...(closing && { closing }) }
}

/** What the rest of the plugin knows of the authorization server. */
interface ServerParts extends Pick<ServiceOptions, 'refreshTtl' | 'issuer' | 'serviceName'> {
  getIssuer?: () => URL
}

async function identityPlugin (app: FastifyInstance, { getIssuer, ...options }: Options & HandedIn & ServerParts): Promise<void> {
  // prom-client takes some MiB.
  const meter = options.metrics === undefined ? undefined : (await import('../lib/metrics/prometheus.ts')).createMeter(readVersion())
  const services = await openServices({
    ...options,
    meter,
    onWarning: (message) => app.log.warn(message),
    onError (error) {
      if (error instanceof StoreLostError) app.log.fatal({ err: error }, 'the store is lost: restart the service when its data is in place')
      else if (error instanceof ReconnectedError) app.log.warn({ err: error }, 'store reconnected')
      else app.log.error({ err: error }, 'cleanup failed; revoked tokens stay revoked, their records are removed later')
    }
  })
  const guard = (rule: GuardOptions = {}) => createGuard(services.tokens, createAdmission(services.roles, rule))
  const metrics = meter !== undefined && options.metrics !== undefined ? { metrics: serveMetrics(app, meter, options.metrics) } : {}
  app.decorate('identity', { ...services, ...metrics, guard, protect: createProtect(app, guard, getIssuer && (() => toIssuer(getIssuer()))) })
  decorateRequests(app)
  app.addHook('onClose', services.close)
}

export default fp(identityPlugin, { fastify: '5.x', name: 'fastify-identity/services' })
