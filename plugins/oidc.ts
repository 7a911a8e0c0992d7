import type { AddressInfo } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { OidcOptionsSchema, type OidcOptions } from '../schemas/oidc.ts'
import { PUSHED_BODY } from '../lib/oidc/parameter-limits.ts'
import { ROUTES } from '../lib/oidc/routes.ts'
import type { TokenLimitSettings } from '../lib/oidc/contract.ts'
import type { AuthorizationServer } from '../lib/oidc/index.ts'
import { compileOptions, optionError } from '../lib/options.ts'
import { formRequests } from './form-requests.ts'
import type { GetServer, OidcMount } from './oidc-mount.ts'
import { createRawRepeats } from './oidc-repeats.ts'
import type { Look } from '../lib/pages/look.ts'
import { createPageError } from './pages.ts'
import { checkOrigin } from './sign-in-forms.ts'
import { createSignedOutCookie } from './signed-out.ts'
import { allowOrigin } from './cors.ts'
import { IdentityError } from '../lib/errors.ts'
import { OAuthError } from '../lib/oidc/oauth-error.ts'
import { toIdentityError } from './errors.ts'
import { logFailure, logServerFailure } from './failure-log.ts'

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

/** The origin that the app listens on: the issuer of a service without a configured one. */
function findAddress ({ server }: FastifyInstance): string {
  const { address = '127.0.0.1', family, port = 80 } = server.address() as AddressInfo | null ?? {}
  const host = /^(0\.0\.0\.0|::)$/.test(address) ? '127.0.0.1' : family === 'IPv6' ? `[${address}]` : address
  return `${'setSecureContext' in server ? 'https' : 'http'}://${host}:${port}`
}

/** Creates a function that returns the issuer: the configured one, or the URL that the app listens on. The first call fixes it. */
export function createGetIssuer (app: FastifyInstance, prefix: string, { issuer: given }: Pick<OidcOptions, 'issuer'>): () => URL {
  let issuer: URL | undefined
  return () => (issuer ??= new URL(given ?? findAddress(app) + prefix))
}

/**
 * Prepares the authorization server, which is built at its first request, or when the first logout token is due.
 * @param options.delivers whether it polls for logout tokens that other processes have left
 * @throws Error when the issuer does not end with the prefix of this scope
 */
export function prepareServer (
  app: FastifyInstance,
  { delivers = true, ...options }: OidcOptions & TokenLimitSettings & { signUp?: boolean, delivers?: boolean },
  look: Look,
  getIssuer = createGetIssuer(app, app.prefix, options)
): Pick<OidcMount, 'getServer' | 'getIssuer' | 'introspect'> {
  const { issuer: given, ...settings } = options
  const prefix = app.prefix
  // Clients find the metadata under the issuer's path (RFC 8414, 3), so that path must be ours.
  if (given !== undefined && !new URL(given).pathname.replace(/\/$/, '').endsWith(prefix)) {
    throw new Error(`option oidc.issuer: must end with the prefix ${prefix}`)
  }
  let getCurrent: GetServer | undefined
  async function getServer (): Promise<AuthorizationServer> {
    getCurrent ??= app.identity.oidc.createSource({
      issuer: getIssuer(),
      prefix,
      settings,
      look,
      onError: (error, request) => {
        logServerFailure(app, error, { url: request.url?.split('?')[0] })
      },
      onRefusedUri: (refused) => app.log.info(refused, 'a redirect URI was refused: the client has not registered it')
    })
    return await getCurrent()
  }
  const { logouts } = app.identity
  logouts.attach(async (claims) => await (await getServer()).signLogout(claims))
  // Without a configured issuer, the issuer is unknown until the app listens.
  if (delivers) app.addHook(given === undefined ? 'onListen' : 'onReady', async () => logouts.start())
  const { refreshGrace } = options
  return { getServer, getIssuer, introspect: app.identity.oidc.createIntrospection({ refreshGrace }) }
}

/** oidc-provider's endpoints, with their methods. */
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

/** The endpoints that programs call. They show no page. */
const FOR_PROGRAMS = [
  ROUTES.token, ROUTES.revocation, ROUTES.introspection, ROUTES.userinfo, ROUTES.jwks, ROUTES.device_authorization, ROUTES.pushed_authorization_request
].map((path) => `/api/v1${path}`).concat('/backchannel-logout')

export function isForPrograms (url = ''): boolean {
  return FOR_PROGRAMS.some((path) => url.endsWith(path))
}

const DISCOVERY = ['/.well-known/openid-configuration', '/.well-known/oauth-authorization-server']

/** Sends an error as OAuth clients expect it (RFC 6749, 5.2), where oidc-provider does not. */
export function replyOAuthError (thrown: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const error = thrown instanceof OAuthError ? thrown : toIdentityError(thrown)
  if (error instanceof IdentityError) logFailure(request, error)
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
  return error.statusCode < 500 && error.statusCode !== 429 ? 'invalid_request' : 'temporarily_unavailable'
}

/** The same, with an answer that pages of any origin may read. */
function sendOAuthError (thrown: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  allowOrigin(request, reply)
  return replyOAuthError(thrown, request, reply)
}

/** Passes a request to oidc-provider with its body unread. Headers that the host's hooks set on the reply are sent. */
async function passOn (getServer: GetServer, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const server = await getServer()
  reply.hijack()
  for (const [name, value] of Object.entries(reply.getHeaders())) if (value !== undefined) reply.raw.setHeader(name, value)
  await server.handle(request.raw, reply.raw, request.ip)
}

/** The last step of a sign-in. A browser that has sent the form before it twice comes here twice. */
const LAST_STEPS = [`${ROUTES.authorization}/:uid`, `${ROUTES.code_verification}/:uid`]

/** Pages with forms. */
const WITH_FORMS = [ROUTES.code_verification, ROUTES.end_session, `${ROUTES.end_session}/confirm`]

/** Paths whose GET finishes something. HEAD must not (RFC 9110, 9.3.2). */
const FINISHING = [ROUTES.authorization, ...LAST_STEPS, `${ROUTES.end_session}/success`]

/** OPTIONS is only for CORS preflights. */
function isUnknown ({ method, headers }: FastifyRequest): boolean {
  return method === 'OPTIONS' && (headers.origin === undefined || headers['access-control-request-method'] === undefined)
}

/** Fastify waits for the error handler of a route, but its type names no promise. */
type OwnRoute = Omit<Partial<RouteOptions>, 'errorHandler'> & {
  errorHandler?: (error: unknown, request: FastifyRequest, reply: FastifyReply) => FastifyReply | Promise<FastifyReply>
}

/** The endpoints of oidc-provider, which has its own body parser. */
export async function oidc (app: FastifyInstance, mount: OidcMount): Promise<void> {
  const { getServer, limits, look } = mount
  await app.register(formRequests, mount)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _body, done) => done(null))

  const beginRaw = createRawRepeats(app, mount)
  /** Passes the request of a page on, unless it repeats one. */
  async function passPage (request: FastifyRequest, reply: FastifyReply, isLast: boolean): Promise<FastifyReply> {
    if (!await beginRaw(request, reply, isLast)) await passOn(getServer, request, reply)
    return reply
  }

  const add = (url: string, methods: string[], rest: OwnRoute = {}) => app.route({
    method: methods,
    url,
    schema: { hide: true },
    handler: (request, reply) => isUnknown(request) ? reply.callNotFound() : passOn(getServer, request, reply),
    ...rest
  })

  const errorHandler = createPageError(look)
  const limited: Record<string, OwnRoute> = {
    [`${ROUTES.end_session}/confirm`]: { preHandler: rememberSignOut },
    [ROUTES.code_verification]: { errorHandler, preHandler: limitCodes },
    // These requests are stored before authentication. So is a session for the form of the page above.
    [ROUTES.authorization]: { errorHandler, preHandler: limits.begin },
    [ROUTES.end_session]: { errorHandler, preHandler: limits.begin },
    [ROUTES.device_authorization]: { errorHandler: sendOAuthError, preHandler: beginByPost },
    [ROUTES.pushed_authorization_request]: { errorHandler: sendOAuthError, onRequest: limitPushed, preHandler: beginByPost }
  }
  async function rememberSignOut (_request: FastifyRequest, reply: FastifyReply): Promise<void> {
    if (app.identity.upstreams !== undefined) createSignedOutCookie(mount.getIssuer()).set(reply)
  }
  /** User codes are short, so guesses are limited (RFC 8628, 5.1), also those in forms of other sites. */
  async function limitCodes (request: FastifyRequest): Promise<void> {
    if (request.method !== 'POST') return await limits.begin(request)
    await limits.guess(request)
    checkOrigin(request, mount.getIssuer())
  }
  /** A body without a length is bounded by its parameters (lib/oidc/parameter-limits.ts). */
  async function limitPushed ({ headers }: FastifyRequest): Promise<void> {
    if (Number(headers['content-length'] ?? 0) <= PUSHED_BODY) return
    throw new OAuthError(413, 'invalid_request', `the body must have at most ${PUSHED_BODY} bytes`)
  }
  async function beginByPost (request: FastifyRequest): Promise<void> {
    if (request.method === 'POST') await limits.begin(request)
  }

  for (const [path, ...methods] of ENDPOINTS) {
    const isLast = LAST_STEPS.includes(path)
    const isPage = isLast || WITH_FORMS.includes(path)
    const page: OwnRoute = isPage ? { handler: async (request, reply) => await passPage(request, reply, isLast), errorHandler } : {}
    if (FINISHING.includes(path)) page.exposeHeadRoute = false
    add(`/api/v1${path}`, methods, { ...page, ...limited[path] })
  }
  for (const path of DISCOVERY) {
    add(path, ['GET', 'OPTIONS'], {
      // oidc-provider serves them without a prefix.
      preHandler: (request, _reply, done) => {
        request.raw.url = path
        done()
      }
    })
  }
}
