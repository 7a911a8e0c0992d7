import type { AddressInfo } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { OidcOptionsSchema, type OidcOptions } from '../schemas/oidc.ts'
import { ROUTES } from '../lib/oidc/routes.ts'
import type { Engine, Oidc } from '../lib/oidc/index.ts'
import { compileOptions, optionError } from '../lib/options.ts'
import { createPageError } from './pages.ts'
import { allowOrigin } from './cors.ts'
import type { IdentityError } from '../lib/errors.ts'
import { OAuthError } from '../lib/oidc/oauth-error.ts'
import { toIdentityError } from './errors.ts'
import type { SignInLimits } from './sign-in-limit.ts'

/** Gives the engine that counts now. */
export type GetEngine = () => Promise<Engine>

const validate = compileOptions(OidcOptionsSchema)

/**
 * Checks the authorization server's options and fills in the defaults, in a copy.
 * @throws Error that names the option
 */
export function readOidcOptions (given: object): OidcOptions {
  const data = structuredClone(given)
  if (validate(data)) return data
  throw optionError(validate, 'oidc')
}

/** The address the server listens on, for a service that was not told what it is called. */
function findAddress ({ server }: FastifyInstance): string {
  const { address = '127.0.0.1', family, port = 80 } = server.address() as AddressInfo | null ?? {}
  const host = /^(0\.0\.0\.0|::)$/.test(address) ? '127.0.0.1' : family === 'IPv6' ? `[${address}]` : address
  return `${'setSecureContext' in server ? 'https' : 'http'}://${host}:${port}`
}

/**
 * Prepares the engine, which is built at the first request for it.
 * @throws Error when the issuer and the path of this scope do not go together
 */
export function prepareEngine (app: FastifyInstance, options: OidcOptions): Pick<OidcMount, 'getEngine' | 'getIssuer' | 'introspect'> {
  const { issuer: given, signInLimit: _, ...settings } = options
  const prefix = app.prefix
  // A client finds everything under its issuer's path (RFC 8414, 3), so that path has to be ours.
  if (given !== undefined && !new URL(given).pathname.replace(/\/$/, '').endsWith(prefix)) {
    throw new Error(`option oidc.issuer: must end with the prefix ${prefix}`)
  }
  let issuer: URL | undefined
  const getIssuer = () => (issuer ??= new URL(given ?? findAddress(app) + prefix))
  let getEngine: GetEngine | undefined
  async function engine (): Promise<Engine> {
    getEngine ??= app.identity.oidc.createSource({
      issuer: getIssuer(),
      prefix,
      settings,
      onError: (error, request) => {
        app.log.error({ err: error, url: request.url?.split('?')[0] }, 'the authorization server failed')
      }
    })
    return await getEngine()
  }
  const { refreshGrace } = options
  return { getEngine: engine, getIssuer, introspect: app.identity.oidc.createIntrospection({ refreshGrace }) }
}

export interface OidcMount {
  getEngine: GetEngine
  getIssuer: () => URL
  introspect: ReturnType<Oidc['createIntrospection']>
  limits: SignInLimits
  /** What the operator calls the service. */
  name: string | undefined
}

/** The endpoints and the methods each answers, see oidc-provider's routes. */
const ENDPOINTS: [path: string, ...methods: string[]][] = [
  [ROUTES.authorization, 'GET'],
  [`${ROUTES.authorization}/:uid`, 'GET'],
  [ROUTES.token, 'POST', 'OPTIONS'],
  [ROUTES.revocation, 'POST', 'OPTIONS'],
  [ROUTES.introspection, 'OPTIONS'],
  [ROUTES.userinfo, 'GET', 'POST', 'OPTIONS'],
  [ROUTES.jwks, 'GET', 'OPTIONS'],
  [ROUTES.end_session, 'GET'],
  [`${ROUTES.end_session}/confirm`, 'POST'],
  [`${ROUTES.end_session}/success`, 'GET'],
  [ROUTES.device_authorization, 'POST', 'OPTIONS'],
  [ROUTES.code_verification, 'GET', 'POST'],
  [`${ROUTES.code_verification}/:uid`, 'GET'],
  [ROUTES.pushed_authorization_request, 'POST', 'OPTIONS']
]

const DISCOVERY = ['/.well-known/openid-configuration', '/.well-known/oauth-authorization-server']

/** Sends an error as OAuth clients read it (RFC 6749, 5.2), where oidc-provider does not. */
export function sendOAuthError (thrown: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const isOAuth = thrown instanceof OAuthError
  const error = isOAuth ? thrown : toIdentityError(thrown)
  if (!isOAuth && error.statusCode >= 500) request.log.error({ err: error.cause ?? error }, error.message)
  allowOrigin(request, reply)
  return reply
    .code(error.statusCode)
    .headers({ ...error.headers, 'cache-control': 'no-store' })
    .type('application/json; charset=utf-8')
    .serializer(JSON.stringify)
    .send({ error: toOAuthCode(error), error_description: error.message })
}

function toOAuthCode (error: OAuthError | IdentityError): string {
  if (error instanceof OAuthError) return error.error
  if (error.statusCode === 500) return 'server_error'
  return error.statusCode === 413 ? 'invalid_request' : 'temporarily_unavailable'
}

/** Hands a request over to oidc-provider with its body unread. What hooks of the host set on the reply is sent. */
export async function handOver (getEngine: GetEngine, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const engine = await getEngine()
  reply.hijack()
  for (const [name, value] of Object.entries(reply.getHeaders())) if (value !== undefined) reply.raw.setHeader(name, value)
  await engine.handle(request.raw, reply.raw, request.ip)
}

/**
 * Hands the authorization server's requests over to oidc-provider, which has a body parser of its own.
 */
export async function oidc (app: FastifyInstance, { getEngine, limits, name }: OidcMount): Promise<void> {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _body, done) => done(null))

  const add = (url: string, methods: string[], rest: Partial<RouteOptions> = {}) =>
    app.route({ method: methods, url, schema: { hide: true }, handler: (request, reply) => handOver(getEngine, request, reply), ...rest })

  const errorHandler = createPageError(name)
  const holds: Record<string, Partial<RouteOptions>> = {
    // User codes are short, so guessing them is bounded (RFC 8628, 5.1).
    [ROUTES.code_verification]: { errorHandler, preHandler: async (request) => { if (request.method === 'POST') await limits.guess(request) } },
    // Whatever is asked here is kept, and nobody has proved anything yet.
    [ROUTES.authorization]: { errorHandler, preHandler: limits.begin },
    [ROUTES.device_authorization]: { errorHandler: sendOAuthError, preHandler: beginByPost },
    [ROUTES.pushed_authorization_request]: { errorHandler: sendOAuthError, preHandler: beginByPost }
  }
  async function beginByPost (request: FastifyRequest): Promise<void> {
    if (request.method === 'POST') await limits.begin(request)
  }

  for (const [path, ...methods] of ENDPOINTS) add(`/api/v1${path}`, methods, holds[path])
  for (const path of DISCOVERY) {
    add(path, ['GET', 'OPTIONS'], {
      // The engine knows them without a prefix.
      preHandler: (request, _reply, done) => {
        request.raw.url = path
        done()
      }
    })
  }
}
