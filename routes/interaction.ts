import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { INTERACTION, toApiPath } from '../lib/issuer.ts'
import type { AuthorizationServer, Decision, Interaction } from '../lib/oidc/contract.ts'
import { pageHeaders } from '../lib/pages/headers.ts'
import { PAGE_PATHS } from '../lib/accounts/links.ts'
import type { Proved } from '../lib/sign-in/sign-ins.ts'
import { FINISHES, createPageError, sendPage, signInOver } from '../plugins/pages.ts'
import { answerRepeats } from '../plugins/form-repeats.ts'
import { createBrowserCookies } from '../plugins/known-browsers.ts'
import { keepApp, readApp } from '../plugins/app-cookie.ts'
import { type UpstreamSignIn, createUpstreamForms, toChoice } from '../plugins/upstream-forms.ts'
import { type SignInForm, checkOrigin, createSignInForms, parseForms, readField, toLogin } from '../plugins/sign-in-forms.ts'
import { LIMITS } from '../schemas/common.ts'
import { type PasswordPage, type PeopleMount, createAskForm, createPasswordForm, toAsker } from './people-pages.ts'

/** The value of the query parameter `account` for a signed-in user who wants to use another account. */
const OTHER_ACCOUNT = 'other'

const DENIED: Decision = { error: 'access_denied', error_description: 'the user refused' }

const UNMET: Decision = { error: 'unmet_authentication_requirements', error_description: 'the user cannot sign in as acr_values asks' }

type InteractionRoute = { Params: { uid: string }, Querystring: { account?: string } }

/** The pages between an authorization request and its response: sign-in and consent. */
export async function interactionRoutes (app: FastifyInstance, mount: PeopleMount): Promise<void> {
  const { getServer, getIssuer, getPath, limits, look } = mount
  const { users, accounts } = app.identity
  const passwordForm = createPasswordForm(app, mount)
  const askForm = createAskForm(app, mount)
  const forms = createSignInForms(app, limits, getIssuer)
  const upstreamForms = createUpstreamForms(app, mount, forms)
  const known = createBrowserCookies(app.identity, getIssuer)
  app.setErrorHandler(createPageError(look, async (request) => {
    const client_id = readApp(request)
    return client_id === undefined ? undefined : await (await getServer()).findWay(client_id)
  }))
  parseForms(app)
  answerRepeats(app, mount)

  /** The interaction of this browser. Both the cookie and the path must name it, since no other site knows the path. */
  async function findInteraction (request: FastifyRequest, reply: FastifyReply): Promise<{ server: AuthorizationServer, interaction: Interaction }> {
    const server = await getServer()
    if (request.method === 'POST') checkOrigin(request, server.issuer)
    const interaction = await server.findInteraction(request.raw, reply.raw)
    if (interaction.uid !== (request.params as InteractionRoute['Params']).uid) throw signInOver()
    if (request.method === 'GET') keepApp(reply, interaction, server.issuer)
    return { server, interaction }
  }

  /** The pages that a person with a session gets have a link to sign in to another account. */
  const isSigningIn = (request: FastifyRequest, { prompt }: Interaction) =>
    (prompt !== 'consent' && prompt !== 'select_account') || (request.query as InteractionRoute['Querystring']).account === OTHER_ACCOUNT

  /** Whether the app has asked for a new account, and the person has not chosen to sign in with an existing one. */
  const isCreating = (request: FastifyRequest, interaction: Interaction) =>
    interaction.prompt === 'create' && (request.query as InteractionRoute['Querystring']).account !== OTHER_ACCOUNT

  const toSignUp = ({ action }: Interaction) => ({ kind: 'sign-up' as const, action: `${action}/sign-up`, signIn: `${action}?account=${OTHER_ACCOUNT}` })

  const toLocalesQuery = ({ locales }: Interaction) => locales === undefined ? '' : `?${new URLSearchParams({ ui_locales: locales })}`

  const toPage = ({ redirectUri, locales }: Interaction) => ({ look, redirectUri, locales })

  function toForm (request: FastifyRequest, reply: FastifyReply, server: AuthorizationServer, interaction: Interaction): SignInForm {
    const isOther = interaction.prompt !== 'login'
    const { freshness } = interaction
    const signUp = `${interaction.action}/sign-up`
    const account = isOther ? undefined : interaction.loginHint?.slice(0, LIMITS.account)
    return {
      secret: interaction.uid,
      view: {
        action: isOther ? `${interaction.action}?account=${OTHER_ACCOUNT}` : interaction.action,
        client: { name: interaction.document?.host ?? interaction.clientName },
        ...(account !== undefined && { account }),
        ...(accounts.isForgotOn && { forgot: `${getPath()}${PAGE_PATHS.forgot}${toLocalesQuery(interaction)}` }),
        ...(accounts.isSignUpOn && { signUp })
      },
      page: toPage(interaction),
      aim: { client_id: interaction.clientId, acr: interaction.acr, base: isOther ? undefined : interaction.stepUp, since: freshness?.since },
      onUnmet: async () => await decide(request, reply, server, UNMET)
    }
  }

  /** The sign-in as one that another provider may take part in. */
  async function toSignIn (request: FastifyRequest, reply: FastifyReply, server: AuthorizationServer, interaction: Interaction): Promise<UpstreamSignIn> {
    const form = toForm(request, reply, server, interaction)
    const again = interaction.prompt === 'login' && interaction.stepUp === undefined ? interaction.accountId : undefined
    const onRenewed = async () => await decide(request, reply, server, { renewed: {} })
    const signIn = { form, place: { uid: interaction.uid }, back: form.view.action, current: interaction.accountId, again, onRenewed, maxAge: interaction.freshness?.maxAge }
    return { ...signIn, form: await upstreamForms.extend(request, signIn) }
  }

  async function showConsent (reply: FastifyReply, interaction: Interaction): Promise<FastifyReply> {
    const { resource, vouched, document } = interaction
    const [user, owner] = await Promise.all([users.get(interaction.accountId ?? ''), interaction.owner === undefined ? null : users.get(interaction.owner)])
    // Not the account or the address: anybody can open this page.
    const domain = owner?.email_verified_at === undefined ? undefined : owner.email?.replace(/^.*@/, '')
    return await sendPage(reply, 'consent', {
      action: interaction.action,
      client: { name: interaction.clientName },
      account: user?.account ?? '',
      scopes: interaction.scopes,
      vouched,
      ...(document !== undefined && { document }),
      ...(domain !== undefined && { ownerDomain: domain }),
      ...(resource !== undefined && { resource: resource.name }),
      otherAccount: `${interaction.action}?account=${OTHER_ACCOUNT}`,
      ...(interaction.redirectUri !== undefined && { redirectUri: interaction.redirectUri })
    }, toPage(interaction))
  }

  async function showAccount (reply: FastifyReply, interaction: Interaction): Promise<FastifyReply> {
    return await sendPage(reply, 'select-account', {
      action: interaction.action,
      client: { name: interaction.document?.host ?? interaction.clientName },
      account: (await users.get(interaction.accountId ?? ''))?.account ?? '',
      otherAccount: `${interaction.action}?account=${OTHER_ACCOUNT}`
    }, toPage(interaction))
  }

  async function decide (request: FastifyRequest, reply: FastifyReply, server: AuthorizationServer, decision: Decision): Promise<FastifyReply> {
    const next = await server.decide(request.raw, reply.raw, decision)
    if ('login' in decision) await known.remember(request, reply, decision.login)
    return reply.headers(pageHeaders({ look })).redirect(next, 303)
  }

  app.get<InteractionRoute>(`${INTERACTION}/:uid`, { schema: { hide: true } }, async (request, reply) => {
    const { server, interaction } = await findInteraction(request, reply)
    if (isCreating(request, interaction)) return await askForm.show(reply, toSignUp(interaction), toPage(interaction))
    if (!isSigningIn(request, interaction)) return await (interaction.prompt === 'consent' ? showConsent : showAccount)(reply, interaction)
    const asked = upstreamForms.findAsked(request, interaction)
    if (asked !== undefined) return reply.headers(pageHeaders({ look })).redirect(asked, 303)
    if (await upstreamForms.renew(request, reply, { uid: interaction.uid }, interaction.renewal, { back: toChoice(interaction.action), look }) !== null) return reply
    return await forms.show(request, reply, (await toSignIn(request, reply, server, interaction)).form)
  })

  app.post<InteractionRoute>(`${INTERACTION}/:uid`, { schema: { hide: true } }, async (request, reply) => {
    const { server, interaction } = await findInteraction(request, reply)
    if (!isSigningIn(request, interaction) && interaction.prompt === 'select_account') {
      return await decide(request, reply, server, readField(request, 'cancel') === '' ? { select_account: {} } : DENIED)
    }
    if (!isSigningIn(request, interaction)) {
      const isAllowed = readField(request, 'decision') === 'allow'
      if (!isAllowed) return await decide(request, reply, server, DENIED)
      const { document } = interaction
      if (document === undefined) return await decide(request, reply, server, { consent: {} })
      // The document has changed since the person saw it.
      if (readField(request, 'document') !== document.print) return await showConsent(reply, interaction)
      return await decide(request, reply, server, { consent: { document: document.print } })
    }
    if (readField(request, 'cancel') !== '') {
      await forms.cancel(interaction.uid)
      return await decide(request, reply, server, DENIED)
    }
    const signIn = await toSignIn(request, reply, server, interaction)
    if (await upstreamForms.prove(request, reply, signIn) !== null) return reply
    const signedIn = await forms.submit(request, reply, signIn.form)
    if (signedIn === null) return reply
    await upstreamForms.complete(request, signIn, signedIn)
    return await decide(request, reply, server, { login: toLogin(signedIn) })
  })

  if (upstreamForms.isOn) {
    for (const [method, goOn] of [['GET', upstreamForms.finish], ['POST', upstreamForms.choose]] as const) {
      app.route<InteractionRoute>({
        method,
        url: `${INTERACTION}/:uid/upstream`,
        ...FINISHES,
        async handler (request, reply) {
          const { server, interaction } = await findInteraction(request, reply)
          const signedIn = await goOn(request, reply, await toSignIn(request, reply, server, interaction))
          return signedIn === null ? reply : await decide(request, reply, server, { login: toLogin(signedIn) })
        }
      })
    }
  }

  /** The page of a link. Another link is asked for in the same sign-in, while it lasts. */
  function toPasswordPage (request: FastifyRequest, reply: FastifyReply) {
    const { uid } = request.params as InteractionRoute['Params']
    const action = `${toApiPath(getIssuer())}${INTERACTION}/${uid}/sign-up`
    return {
      action,
      purpose: 'sign-up',
      place: { link: 'sign-up', interaction: uid },
      findClient: async () => await findInteraction(request, reply).then(({ interaction: { clientId } }) => clientId, () => undefined),
      findAsk: async () => await findInteraction(request, reply).then(() => action, () => undefined)
    } satisfies PasswordPage
  }

  /** Goes on with the sign-in after a link, whose user has proved this. The other steps remain. */
  async function continueWith (request: FastifyRequest, reply: FastifyReply, proved: Proved): Promise<FastifyReply | null> {
    // In another browser, or too late: the account exists, and the person signs in from the app.
    const found = await findInteraction(request, reply).catch(() => null)
    if (found === null || found.interaction.prompt === 'consent') return null
    const signedIn = await forms.proceed(reply, toForm(request, reply, found.server, found.interaction), proved)
    return signedIn === null ? reply : await decide(request, reply, found.server, { login: toLogin(signedIn) })
  }

  app.get<InteractionRoute & { Querystring: { token?: string } }>(`${INTERACTION}/:uid/sign-up`, { schema: { hide: true } }, async (request, reply) => {
    if (request.query.token !== undefined) return await passwordForm.show(request, reply, toPasswordPage(request, reply))
    const { interaction } = await findInteraction(request, reply)
    if (!accounts.isSignUpOn || interaction.prompt === 'consent') throw signInOver()
    return await askForm.show(reply, toSignUp(interaction), toPage(interaction))
  })

  app.post<InteractionRoute>(`${INTERACTION}/:uid/sign-up`, { schema: { hide: true } }, async (request, reply) => {
    if (readField(request, 'token') === '') {
      const { interaction } = await findInteraction(request, reply)
      return await askForm.submit(request, reply, toSignUp(interaction), async (typed) => await accounts.signUp(typed, toAsker(request, interaction.locales), { uid: interaction.uid }), toPage(interaction))
    }
    return await passwordForm.submit(request, reply, toPasswordPage(request, reply), continueWith)
  })

  if (passwordForm.isByUpstream) {
    app.get<InteractionRoute>(`${INTERACTION}/:uid/sign-up/upstream`, FINISHES, async (request, reply) => await passwordForm.finish(request, reply, toPasswordPage(request, reply), continueWith))
  }
}
