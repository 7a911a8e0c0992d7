import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { INTERACTION } from '../lib/oidc/routes.ts'
import { PASSWORD_ACR } from '../lib/oidc/scopes.ts'
import type { AuthorizationServer, Decision, Interaction } from '../lib/oidc/contract.ts'
import { IdentityError } from '../lib/errors.ts'
import { pageHeaders } from '../lib/pages/headers.ts'
import type { Pages } from '../lib/pages/index.ts'
import type { Message } from '../lib/pages/texts/en.ts'
import { groupAddress } from '../lib/sign-in/addresses.ts'
import { watchConnection } from '../plugins/connections.ts'
import type { OidcMount } from '../plugins/oidc.ts'
import { PageError, createPageError, describeLimit, sendPage, signInOver } from '../plugins/pages.ts'
import { readForm } from '../plugins/utf8.ts'
import { LIMITS } from '../schemas/common.ts'

/** Bytes: enough for an account and a password, percent-encoded. */
const FORM_LIMIT = 16 * 1024

const WRONG: Message = ({ errors }) => errors.wrongPassword

/** The value of the query parameter `account` for a signed-in user who wants to use another account. */
const OTHER_ACCOUNT = 'other'

type InteractionRoute = { Params: { uid: string }, Querystring: { account?: string } }

/** Refuses forms from other sites by the Origin header (RFC 6454), for browsers that ignore SameSite on cookies. */
function checkOrigin (request: FastifyRequest, server: AuthorizationServer): void {
  const { origin, 'sec-fetch-site': site } = request.headers
  if (origin !== undefined ? origin !== server.issuer.origin : site !== undefined && site !== 'same-origin') {
    throw new PageError('ErrPerm', 'the form was sent from another site', ({ errors }) => errors.otherSite)
  }
}

/** A field of a form; the first one if the name repeats, and '' if it is missing. */
function readField (request: FastifyRequest, name: string): string {
  return (request.body as URLSearchParams | undefined)?.get(name) ?? ''
}

/** The pages between an authorization request and its response: sign-in and consent. */
export async function interactionRoutes (app: FastifyInstance, { getServer, limits, look }: OidcMount): Promise<void> {
  const { users } = app.identity
  const show = <Name extends keyof Pages> (reply: FastifyReply, page: Name, data: Pages[Name], { redirectUri, locales }: Pick<Interaction, 'redirectUri' | 'locales'>) =>
    sendPage(reply, page, data, { look, redirectUri, locales })
  app.setErrorHandler(createPageError(look))
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'buffer', bodyLimit: FORM_LIMIT }, async (_request: FastifyRequest, body: Buffer) => await readForm(body))

  /** The interaction of this browser. Both the cookie and the path must name it, since no other site knows the path. */
  async function findInteraction (request: FastifyRequest, reply: FastifyReply): Promise<{ server: AuthorizationServer, interaction: Interaction }> {
    const server = await getServer()
    if (request.method === 'POST') checkOrigin(request, server)
    const interaction = await server.findInteraction(request.raw, reply.raw)
    if (interaction.uid !== (request.params as InteractionRoute['Params']).uid) throw signInOver()
    return { server, interaction }
  }

  const isSigningIn = (request: FastifyRequest, interaction: Interaction) =>
    interaction.prompt === 'login' || (request.query as InteractionRoute['Querystring']).account === OTHER_ACCOUNT

  async function showSignIn (reply: FastifyReply, interaction: Interaction, extra: { account?: string, error?: Message } = {}): Promise<FastifyReply> {
    const isOther = interaction.prompt !== 'login'
    const account = extra.account ?? (isOther ? undefined : interaction.loginHint?.slice(0, LIMITS.account))
    return await show(reply, 'sign-in', {
      action: isOther ? `${interaction.action}?account=${OTHER_ACCOUNT}` : interaction.action,
      client: { name: interaction.clientName },
      ...extra,
      ...(account !== undefined && { account })
    }, interaction)
  }

  async function showConsent (reply: FastifyReply, interaction: Interaction): Promise<FastifyReply> {
    const { resource, vouched } = interaction
    const [user, owner] = await Promise.all([users.get(interaction.accountId ?? ''), users.get(interaction.owner)])
    return await show(reply, 'consent', {
      action: interaction.action,
      client: { name: interaction.clientName },
      account: user?.account ?? '',
      scopes: interaction.scopes,
      vouched,
      ...(owner !== null && { owner: owner.account }),
      ...(resource !== undefined && { resource: resource.name }),
      otherAccount: `${interaction.action}?account=${OTHER_ACCOUNT}`,
      ...(interaction.redirectUri !== undefined && { redirectUri: interaction.redirectUri })
    }, interaction)
  }

  async function decide (request: FastifyRequest, reply: FastifyReply, server: AuthorizationServer, decision: Decision): Promise<FastifyReply> {
    const next = await server.decide(request.raw, reply.raw, decision)
    return reply.headers(pageHeaders({ look })).redirect(next, 303)
  }

  async function signIn (request: FastifyRequest, reply: FastifyReply, server: AuthorizationServer, interaction: Interaction): Promise<FastifyReply> {
    const account = readField(request, 'account').trim()
    const password = readField(request, 'password')
    const retry = (status: number, error: Message) => showSignIn(reply.code(status), interaction, { account: account.slice(0, LIMITS.account), error })
    try {
      await limits.guess(request, account)
    } catch (error) {
      if (!(error instanceof IdentityError) || error.code !== 'ErrLimit') throw error
      reply.headers(error.headers)
      return await retry(429, describeLimit(error.headers['retry-after']))
    }
    const fits = account.length <= LIMITS.account && password.length <= LIMITS.password
    const turn = { key: `address ${groupAddress(request.ip)}`, signal: watchConnection(request) }
    const found = fits ? await users.signIn(account, password, turn) : null
    // The same text for an unknown account, a wrong password, and a user who may not sign in.
    if (found === null) return await retry(400, WRONG)
    return await decide(request, reply, server, { login: { accountId: found.user_id, acr: PASSWORD_ACR, amr: ['pwd'], user_epoch: found.epoch } })
  }

  app.get<InteractionRoute>(`${INTERACTION}/:uid`, { schema: { hide: true } }, async (request, reply) => {
    const { interaction } = await findInteraction(request, reply)
    return isSigningIn(request, interaction) ? await showSignIn(reply, interaction) : await showConsent(reply, interaction)
  })

  app.post<InteractionRoute>(`${INTERACTION}/:uid`, { schema: { hide: true } }, async (request, reply) => {
    const { server, interaction } = await findInteraction(request, reply)
    const denied: Decision = { error: 'access_denied', error_description: 'the user refused' }
    if (isSigningIn(request, interaction)) {
      if (readField(request, 'cancel') !== '') return await decide(request, reply, server, denied)
      return await signIn(request, reply, server, interaction)
    }
    const isAllowed = readField(request, 'decision') === 'allow'
    return await decide(request, reply, server, isAllowed ? { consent: {} } : denied)
  })
}
