/**
 * The service as a Fastify app. `server.ts` makes it listen; tests inject requests.
 * @module
 */
import type { AddressInfo } from 'node:net'
import Fastify, { type FastifyInstance } from 'fastify'
import type { Config } from './config.ts'
import identity, { type IdentityOptions } from './index.ts'
import { LIMITS } from './schemas/common.ts'
import { compressPages } from './plugins/compression.ts'
import { answerHalfClosed } from './plugins/connections.ts'
import { endConnectionsAtClose } from './plugins/draining.ts'
import { handleError } from './plugins/errors.ts'
import { RequestLog, SERIALIZERS, chooseRequestId } from './plugins/logging.ts'
import { handleMalformed, refuseExpectations, requireHost } from './plugins/malformed.ts'
import openapi from './plugins/openapi.ts'
import { root } from './routes/root.ts'

/** Milliseconds for a complete request. */
const REQUEST_TIMEOUT = 30_000
/** Milliseconds of silence, in addition to the stall timeout of lists, after which a connection is closed. */
const SILENCE = 60_000
/** Longer than a load balancer's idle timeout, so that the balancer closes first and no request meets a closed connection. */
const KEEP_ALIVE = 72_000

/** Seconds for which a browser uses https only, after an answer over https (RFC 6797): a year. */
const HSTS = 'max-age=31536000'

/** The parts that the environment cannot express. */
interface AppParts extends Pick<IdentityOptions, 'store' | 'now' | 'counter' | 'processes' | 'closing' | 'listSettings'> {
  /** The log's destination; absent: stdout. */
  logStream?: { write (line: string): void }
}

/** The URL of the app on this machine, for its own bridge and for people. */
export function getUrl (app: FastifyInstance): string {
  const { address, family, port } = app.server.address() as AddressInfo
  const host = address === '::' ? '[::1]' : address === '0.0.0.0' ? '127.0.0.1' : family === 'IPv6' ? `[${address}]` : address
  return `http://${host}:${port}`
}

/** The options of the plugin in a process with this configuration. */
export function toIdentityOptions (config: Config): IdentityOptions {
  return {
    ...config.services,
    ...config.people,
    rateLimit: config.rateLimit,
    writeLimit: config.writeLimit,
    stallTimeout: config.stallTimeout,
    oidc: config.oidc,
    console: config.console,
    openapi: false,
    forwardAuth: config.forwardAuth,
    ...(config.metrics !== undefined && { metrics: config.metrics })
  }
}

/**
 * Builds the app and opens its store.
 * @throws Error with the reason when the store cannot be opened
 */
export async function buildApp (config: Config, { logStream, ...parts }: AppParts = {}): Promise<FastifyInstance> {
  const app = Fastify({
    logger: { level: config.logLevel, serializers: SERIALIZERS, ...(logStream && { stream: logStream }) },
    logController: new RequestLog({ callers: config.logCallers }),
    genReqId: chooseRequestId,
    trustProxy: config.trustProxy,
    bodyLimit: LIMITS.body,
    // On MongoDB a migration first waits until no earlier process writes any more: longer than Fastify's 10 seconds.
    pluginTimeout: 0,
    requestTimeout: REQUEST_TIMEOUT,
    connectionTimeout: config.stallTimeout + SILENCE,
    keepAliveTimeout: KEEP_ALIVE,
    // While the app closes, a request on an open connection is still answered, with `connection: close`.
    return503OnClosing: false,
    routerOptions: { maxParamLength: LIMITS.encodedId },
    clientErrorHandler: handleMalformed,
    http: { requireHostHeader: false },
    frameworkErrors: handleError
  })
  app.setErrorHandler(handleError)
  answerHalfClosed(app)
  refuseExpectations(app)
  endConnectionsAtClose(app, { limit: config.shutdownTimeout })
  const isSecure = config.oidc !== false && config.oidc.issuer?.startsWith('https:') === true
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id)
    if (isSecure) reply.header('strict-transport-security', HSTS)
    done()
  })
  requireHost(app)
  compressPages(app)
  try {
    if (config.openapi) await app.register(openapi)
    await app.register(identity, { ...toIdentityOptions(config), ...parts })
    await app.register(root, { openapi: config.openapi, oidc: config.oidc })
    // For the routes outside the plugin: the bridge, and unknown routes.
    if (app.identity.metrics !== undefined) app.addHook('onResponse', app.identity.metrics.onResponse)
    if (config.bridge !== undefined) {
      const { bridge } = await import('./routes/bridge.ts')
      const { prefix, upstream = () => getUrl(app) } = config.bridge
      await app.register(bridge, { prefix, upstream, stallTimeout: config.stallTimeout })
    }
    await app.ready()
  } catch (error) {
    await app.close()
    throw error
  }
  return app
}
