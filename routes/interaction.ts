import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { INTERACTION } from '../lib/oidc/routes.ts'
import type { Decision, Engine, Waiting } from '../lib/oidc/provider.ts'
import { IdentityError } from '../lib/errors.ts'
import { pageHeaders } from '../lib/pages/headers.ts'
import type { Pages } from '../lib/pages/index.ts'
import type { OidcMount } from '../plugins/oidc.ts'
import { OVER, createPageError, describeLimit, sendPage } from '../plugins/pages.ts'
import { holdsRole } from '../lib/roles.ts'
import { LIMITS } from '../schemas/common.ts'

/** Bytes of a form: an account and a password, percent-encoded. */
const FORM_LIMIT = 16 * 1024

const WRONG = 'The account or the password is wrong.'

/** In the address of the sign-in page that a user comes to who is signed in, and wants to be somebody else. */
const OTHER = 'other'

type Uid = { Params: { uid: string }, Querystring: { account?: string } }

/** RFC 6454: a browser says where a form came from. Cookies are SameSite already; this holds where they are not. */
function checkOrigin (request: FastifyRequest, engine: Engine): void {
  const { origin, 'sec-fetch-site': site } = request.headers
  if (origin !== undefined ? origin !== engine.issuer.origin : site !== undefined && site !== 'same-origin') {
    throw new IdentityError('ErrPerm', 'The form was sent from another site.')
  }
}

/** A field of a form; the first, when there are several. */
function readField (request: FastifyRequest, name: string): string {
  return (request.body as URLSearchParams | undefined)?.get(name) ?? ''
}

/** The pages between an authorization request and its answer: signing in, and agreeing. */
export async function interactionRoutes (app: FastifyInstance, { getEngine, limits, name }: OidcMount): Promise<void> {
  const { users, roles } = app.identity
  const show = <Name extends keyof Pages> (reply: FastifyReply, page: Name, data: Pages[Name], redirectUri?: string) =>
    sendPage(reply, page, data, { service: name, redirectUri })
  app.setErrorHandler(createPageError(name))
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string', bodyLimit: FORM_LIMIT }, (_request, body, done) => {
    done(null, new URLSearchParams(body as string))
  })

  /** The authorization that this browser waits in: its cookie names it, and so does the path, which no other site knows. */
  async function findWaiting (request: FastifyRequest, reply: FastifyReply): Promise<{ engine: Engine, waiting: Waiting }> {
    const engine = await getEngine()
    if (request.method === 'POST') checkOrigin(request, engine)
    const waiting = await engine.findWaiting(request.raw, reply.raw)
    if (waiting.uid !== (request.params as Uid['Params']).uid) throw new IdentityError('ErrParam', OVER)
    return { engine, waiting }
  }

  const isSigningIn = (request: FastifyRequest, waiting: Waiting) =>
    waiting.prompt === 'login' || (request.query as Uid['Querystring']).account === OTHER

  async function showSignIn (reply: FastifyReply, waiting: Waiting, extra: { account?: string, error?: string } = {}): Promise<FastifyReply> {
    const other = waiting.prompt !== 'login'
    const account = extra.account ?? (other ? undefined : waiting.loginHint?.slice(0, LIMITS.account))
    return await show(reply, 'sign-in', {
      action: other ? `${waiting.action}?account=${OTHER}` : waiting.action,
      client: { name: waiting.clientName },
      ...extra,
      ...(account !== undefined && { account })
    }, waiting.redirectUri)
  }

  async function showConsent (reply: FastifyReply, waiting: Waiting): Promise<FastifyReply> {
    const user = await users.get(waiting.accountId ?? '')
    return await show(reply, 'consent', {
      action: waiting.action,
      client: { name: waiting.clientName },
      account: user?.account ?? '',
      scopes: waiting.scopes,
      ...(!waiting.firstParty && { acts: user !== null && holdsRole(user.roles, roles.admin) ? 'admin' as const : 'user' as const }),
      otherAccount: `${waiting.action}?account=${OTHER}`,
      ...(waiting.redirectUri !== undefined && { redirectUri: waiting.redirectUri })
    }, waiting.redirectUri)
  }

  async function goOn (request: FastifyRequest, reply: FastifyReply, engine: Engine, decision: Decision): Promise<FastifyReply> {
    const next = await engine.decide(request.raw, reply.raw, decision)
    return reply.headers(pageHeaders()).redirect(next, 303)
  }

  async function signIn (request: FastifyRequest, reply: FastifyReply, engine: Engine, waiting: Waiting): Promise<FastifyReply> {
    const account = readField(request, 'account').trim()
    const password = readField(request, 'password')
    const again = (status: number, error: string) => showSignIn(reply.code(status), waiting, { account: account.slice(0, LIMITS.account), error })
    try {
      await limits.guess(request, account)
    } catch (error) {
      if (!(error instanceof IdentityError) || error.code !== 'ErrLimit') throw error
      reply.headers(error.headers)
      return await again(429, describeLimit(error.headers['retry-after']))
    }
    const fits = account.length <= LIMITS.account && password.length <= LIMITS.password
    const found = fits ? await users.signIn(account, password) : null
    // The same words for an unknown account, a wrong password, and a user who may not sign in.
    if (found === null) return await again(400, WRONG)
    return await goOn(request, reply, engine, { login: { accountId: found.user_id, amr: ['pwd'], user_epoch: found.epoch } })
  }

  app.get<Uid>(`${INTERACTION}/:uid`, { schema: { hide: true } }, async (request, reply) => {
    const { waiting } = await findWaiting(request, reply)
    return isSigningIn(request, waiting) ? await showSignIn(reply, waiting) : await showConsent(reply, waiting)
  })

  app.post<Uid>(`${INTERACTION}/:uid`, { schema: { hide: true } }, async (request, reply) => {
    const { engine, waiting } = await findWaiting(request, reply)
    const refused: Decision = { error: 'access_denied', error_description: 'the user refused' }
    if (isSigningIn(request, waiting)) {
      if (readField(request, 'cancel') !== '') return await goOn(request, reply, engine, refused)
      return await signIn(request, reply, engine, waiting)
    }
    const agreed = readField(request, 'decision') === 'allow'
    return await goOn(request, reply, engine, agreed ? { consent: {} } : refused)
  })
}
