import type { FastifyInstance, FastifyRequest } from 'fastify'
import Negotiator from 'negotiator'
import { DEFAULT_ACCOUNT_PATH } from '../lib/accounts/links.ts'
import { defined } from '../lib/defined.ts'
import { createLook } from '../lib/pages/look.ts'
import { handleError, handleNotFound } from '../plugins/errors.ts'
import { keepChoice } from '../plugins/language.ts'
import { createPageError, sendPage } from '../plugins/pages.ts'
import type { IdentityOptions } from '../plugins/identity.ts'

const schema = { hide: true }

/** JSON first: it is for clients that accept anything. */
const TYPES = ['application/json', 'text/html']

/** Whether somebody opens the path in a browser. */
function asksForPage ({ method, headers: { accept } }: FastifyRequest): boolean {
  return (method === 'GET' || method === 'HEAD') && new Negotiator({ headers: { accept } }).mediaType(TYPES) === 'text/html'
}

/**
 * The address of the service itself: a page for people who open it in a browser, and JSON for programs. Only the service has it; in
 * another app these paths are the app's own.
 */
export async function root (app: FastifyInstance, { openapi, oidc }: { openapi: boolean, oidc: Exclude<IdentityOptions['oidc'], undefined> }): Promise<void> {
  const paths = defined({
    service: 'fastify-identity',
    docs: openapi ? '/docs' : undefined,
    openapi: openapi ? '/openapi.json' : undefined,
    metadata: oidc === false ? undefined : '/.well-known/openid-configuration',
    health: '/health/ready'
  })
  if (oidc === false) {
    app.setNotFoundHandler(handleNotFound)
    app.get('/', { schema }, () => paths)
    return
  }
  const { issuer, accountPath } = oidc
  // The path that a proxy takes away before requests reach the service.
  const base = issuer === undefined ? '' : new URL(issuer).pathname.replace(/\/$/, '')
  const getHome = accountPath === false ? undefined : () => `${base}${accountPath ?? DEFAULT_ACCOUNT_PATH}`
  const look = createLook({ ...oidc, languages: app.identity.languages, getHome })
  const answerWithPage = createPageError(look)
  app.setErrorHandler(async (error, request, reply) => {
    // An unknown path may have a body that cannot be read.
    if (request.is404 && !asksForPage(request)) return handleError(error, request, reply)
    return await answerWithPage(error, request, reply)
  })
  keepChoice(app, () => issuer?.startsWith('https:') === true)

  if (getHome !== undefined) {
    const { passkeys } = app.identity
    // The page of the account that changes the password (W3C, A Well-Known URL for Changing Passwords).
    app.get('/.well-known/change-password', { schema }, async (_request, reply) => await reply.redirect(`${getHome()}/password`, 302))
    if (passkeys.party !== undefined) {
      const { origin } = passkeys.party
      // Where password managers add and list passkeys (W3C, A Well-Known URL for Relying Party Passkey Endpoints).
      app.get('/.well-known/passkey-endpoints', { schema }, () => (
        { enroll: `${origin}${getHome()}/factors/passkeys`, manage: `${origin}${getHome()}/methods` }))
    }
  }

  // Every unknown path of the service.
  app.setNotFoundHandler(async (request, reply) => {
    reply.header('vary', 'Accept')
    if (!asksForPage(request)) return handleNotFound(request, reply)
    return await sendPage(reply.code(404), 'error', { message: ({ errors }) => errors.notFound }, { look })
  })

  app.get('/', { schema }, async (request, reply) => {
    reply.header('vary', 'Accept')
    if (!asksForPage(request)) return paths
    return await sendPage(reply, 'home', { account: getHome?.(), docs: openapi ? `${base}/docs` : undefined }, { look })
  })

  const [, type = '', icon = ''] = /^data:([^;]+);base64,(.*)$/.exec(look.icon) ?? []
  const image = Buffer.from(icon, 'base64')
  // A logo is the operator's file: shown as an image it runs no script, and opened as a page it must not either.
  const headers = {
    'cache-control': 'public, max-age=3600',
    'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    'x-content-type-options': 'nosniff'
  }
  app.get('/favicon.ico', { schema }, async (_request, reply) => await reply.headers(headers).type(type).send(image))
}
