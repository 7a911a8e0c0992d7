import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { INTERACTION, isInteractionId, toApiPath } from '../lib/issuer.ts'
import { Lazy } from '../lib/lazy.ts'
import type { AuthorizationServer, Decision, Interaction, Login } from '../lib/oidc/contract.ts'
import { pageHeaders } from '../lib/pages/headers.ts'
import { PAGE_PATHS } from '../lib/accounts/links.ts'
import type { PasswordPurpose } from '../lib/accounts/password.ts'
import type { Pages } from '../lib/pages/index.ts'
import type { Look } from '../lib/pages/look.ts'
import type { Proved } from '../lib/proofs.ts'
import { FINISHES, type PageOptions, createPageError, sendPage, signInOver } from '../plugins/pages.ts'
import { adoptCookies } from '../plugins/account.ts'
import { answerRepeats } from '../plugins/form-repeats.ts'
import { createBrowserCookies } from '../plugins/known-browsers.ts'
import { keepApp, readApp } from '../plugins/app-cookie.ts'
import { createUpstreamForms } from '../plugins/upstream-forms.ts'
import { type UpstreamSignIn, toChoice } from '../plugins/upstream-sign-in.ts'
import { type SignInForm, checkOrigin, createSignInForms, parseForms, readField, toLogin } from '../plugins/sign-in-forms.ts'
import { LIMITS } from '../schemas/common.ts'
import { type AskKind, type PasswordPage, type PeopleMount, createAskForm, createPasswordForm, isAskOn, toAsker } from './people-pages.ts'
import { type LinkSignIn, isSwitching } from '../plugins/link-sign-in.ts'
import { PASSWORD } from '../lib/way.ts'
import { readParameter } from '../plugins/parameters.ts'

/** The value of the query parameter `account` for a signed-in user who wants to use another account. */
const OTHER_ACCOUNT = 'other'

const DENIED: Decision = { error: 'access_denied', error_description: 'the user refused' }

const UNMET: Decision = { error: 'unmet_authentication_requirements', error_description: 'the user cannot sign in as acr_values asks' }

type InteractionRoute = { Params: { uid: string }, Querystring: { account?: string } }

/** @throws PageError for what can be no id: the URLs of forms are made of it */
function readUid ({ params }: FastifyRequest): string {
  const { uid } = params as InteractionRoute['Params']
  if (!isInteractionId(uid)) throw signInOver()
  return uid
}

/** Whether a person who is signed in wants to use another account. */
const wantsOther = (request: FastifyRequest): boolean => readParameter(request, 'account') === OTHER_ACCOUNT

/** Whether the person has signed in to the app already. A link that sets a password does not continue such an interaction. */
const isAfterSignIn = ({ prompt }: Interaction): boolean => prompt === 'consent' || prompt === 'code_used'

/** The pages that a person with a session gets have a link to sign in to another account, but for the one after a recovery code. */
const isSigningIn = (request: FastifyRequest, { prompt }: Interaction): boolean =>
  prompt !== 'code_used' && ((prompt !== 'consent' && prompt !== 'select_account') || wantsOther(request))

/** Whether the app has asked for a new account, and the person has not chosen to sign in with an existing one. */
const isCreating = (request: FastifyRequest, { prompt }: Interaction): boolean => prompt === 'create' && !wantsOther(request)

/** The page that asks for a link within the sign-in. From that of a sign-up, which the app may have asked for, people go on with an account. */
const toAsk = (kind: AskKind, { action }: Interaction): Pages['ask-link'] => (
  { kind, action: `${action}${PAGE_PATHS[kind]}`, signIn: kind === 'forgot' ? action : `${action}?account=${OTHER_ACCOUNT}` })

/** What a person has decided on the page of their account, or of the consent. Undefined: the document has changed since they saw it. */
function readDecision (request: FastifyRequest, { prompt, document }: Interaction): Decision | undefined {
  if (prompt === 'select_account') return readField(request, 'cancel') === '' ? { select_account: {} } : DENIED
  if (readField(request, 'decision') !== 'allow') return DENIED
  if (document === undefined) return { consent: {} }
  return readField(request, 'document') === document.print ? { consent: { document: document.print } } : undefined
}

const toPage = (look: Look, { redirectUri, locales }: Interaction): PageOptions => ({ look, redirectUri, locales })

/** What the pages of an interaction share. */
function createInteractions (app: FastifyInstance, mount: PeopleMount) {
  const { getServer, getIssuer, limits, look } = mount
  const { accounts } = app.identity
  const forms = createSignInForms(app, limits, getIssuer)
  const known = createBrowserCookies(app.identity, getIssuer)

  /** The interaction of this browser. Both the cookie and the path must name it, since no other site knows the path. */
  async function findInteraction (request: FastifyRequest, reply: FastifyReply): Promise<{ server: AuthorizationServer, interaction: Interaction }> {
    const server = await getServer()
    if (request.method === 'POST') checkOrigin(request, server.issuer)
    const interaction = await server.findInteraction(request.raw, reply.raw)
    if (interaction.uid !== readUid(request)) throw signInOver()
    if (request.method === 'GET') keepApp(reply, interaction, server.issuer)
    return { server, interaction }
  }

  function toForm (request: FastifyRequest, reply: FastifyReply, server: AuthorizationServer, interaction: Interaction): SignInForm {
    const isOther = interaction.prompt !== 'login'
    const { freshness } = interaction
    const account = isOther ? undefined : interaction.loginHint?.slice(0, LIMITS.account)
    return {
      secret: interaction.uid,
      view: {
        action: isOther ? `${interaction.action}?account=${OTHER_ACCOUNT}` : interaction.action,
        client: { name: interaction.document?.host ?? interaction.clientName, logo: interaction.logo },
        account,
        forgot: accounts.isForgotOn ? toAsk('forgot', interaction).action : undefined,
        signUp: accounts.isSignUpOn ? toAsk('sign-up', interaction).action : undefined
      },
      page: toPage(look, interaction),
      asked: { client_id: interaction.clientId, acr: interaction.acr, base: isOther ? undefined : interaction.stepUp, since: freshness?.since },
      onUnmet: async () => await decide(request, reply, server, UNMET)
    }
  }

  const leave = (reply: FastifyReply, to: string): FastifyReply => reply.headers(pageHeaders({ look })).redirect(to, 303)

  async function decide (request: FastifyRequest, reply: FastifyReply, server: AuthorizationServer, decision: Decision): Promise<FastifyReply> {
    const next = await server.decide(request.raw, reply.raw, decision)
    if ('login' in decision) await known.remember(request, reply, decision.login)
    return leave(reply, next)
  }

  return { forms, findInteraction, toForm, decide, leave }
}

type Interactions = ReturnType<typeof createInteractions>

/** The pages for a person who is signed in: whether the app may act for them, as whom they go on, and that they used a recovery code. */
function createQuestions ({ identity: { users, ownFactors } }: FastifyInstance, { look }: PeopleMount) {
  async function showConsent (reply: FastifyReply, interaction: Interaction): Promise<FastifyReply> {
    const { resource, vouched, document, redirectUri, device } = interaction
    const getOwner = async () => interaction.owner === undefined ? null : await users.get(interaction.owner)
    const [user, owner] = await Promise.all([users.get(interaction.accountId ?? ''), getOwner()])
    // Not the account or the address: anybody can open this page.
    const ownerDomain = owner?.email_verified_at === undefined ? undefined : owner.email?.replace(/^.*@/, '')
    return await sendPage(reply, 'consent', {
      action: interaction.action,
      client: { name: interaction.clientName, logo: interaction.logo },
      account: user?.account ?? '',
      scopes: interaction.scopes,
      vouched,
      document,
      ownerDomain,
      resource: resource?.name,
      otherAccount: `${interaction.action}?account=${OTHER_ACCOUNT}`,
      redirectUri,
      device
    }, toPage(look, interaction))
  }

  async function showAccount (reply: FastifyReply, interaction: Interaction): Promise<FastifyReply> {
    return await sendPage(reply, 'select-account', {
      action: interaction.action,
      client: { name: interaction.document?.host ?? interaction.clientName },
      account: (await users.get(interaction.accountId ?? ''))?.account ?? '',
      otherAccount: `${interaction.action}?account=${OTHER_ACCOUNT}`
    }, toPage(look, interaction))
  }

  async function showCodeUsed (reply: FastifyReply, interaction: Interaction): Promise<FastifyReply> {
    const { accountId = '', action, clientName, document } = interaction
    const { codes: left = 0 } = await ownFactors.list(accountId)
    return await sendPage(reply, 'code-used', { left, action, client: { name: document?.host ?? clientName } }, toPage(look, interaction))
  }

  const pages: { [Prompt in Interaction['prompt']]?: typeof showConsent } = { consent: showConsent, code_used: showCodeUsed }

  return {
    showConsent,
    /** The page of a prompt that comes with a session. */
    show: async (reply: FastifyReply, interaction: Interaction) => await (pages[interaction.prompt] ?? showAccount)(reply, interaction)
  }
}

/** The sign-in, and the question for the account or the consent. */
function addSignIn (app: FastifyInstance, mount: PeopleMount, { forms, findInteraction, toForm, decide, leave }: Interactions): void {
  const { look } = mount
  const askForm = createAskForm(app, mount)
  const { showConsent, show } = createQuestions(app, mount)
  const upstreamForms = createUpstreamForms(app, mount, forms)

  /** The sign-in as one that another provider may take part in. */
  async function toSignIn (
    request: FastifyRequest, reply: FastifyReply, server: AuthorizationServer, interaction: Interaction
  ): Promise<UpstreamSignIn> {
    const { uid, prompt, stepUp, accountId: current, freshness } = interaction
    const form = toForm(request, reply, server, interaction)
    const again = prompt === 'login' && stepUp === undefined ? current : undefined
    const onRenewed = async () => await decide(request, reply, server, { renewed: {} })
    const signIn = { form, place: { uid }, back: form.view.action, current, again, onRenewed, maxAge: freshness?.maxAge }
    return { ...signIn, form: await upstreamForms.extend(request, signIn) }
  }

  /**
   * What the session of this browser says by now of the person who has signed in: they may have changed how they sign in meanwhile.
   * @throws PageError where they are signed out, or somebody else is signed in
   */
  async function requireLogin (
    request: FastifyRequest, reply: FastifyReply, server: AuthorizationServer, { accountId }: Interaction
  ): Promise<{ login: Login, session: string }> {
    const session = await server.browsers.find(request.raw, reply.raw, request.ip)
    adoptCookies(reply)
    if (session === null || session.user_id !== accountId) throw signInOver()
    return { login: toLogin(session), session: session.uid }
  }

  app.get<InteractionRoute>(`${INTERACTION}/:uid`, { schema: { hide: true } }, async (request, reply) => {
    const { server, interaction } = await findInteraction(request, reply)
    if (interaction.over !== undefined) return leave(reply, interaction.over)
    if (isCreating(request, interaction)) return await askForm.show(reply, toAsk('sign-up', interaction), toPage(look, interaction))
    // Of somebody who is signed out the page says nothing, although their sign-in to the app could go on in another session.
    if (interaction.prompt === 'code_used') await requireLogin(request, reply, server, interaction)
    if (!isSigningIn(request, interaction)) return await show(reply, interaction)
    const asked = upstreamForms.findAsked(request, interaction)
    if (asked !== undefined) return leave(reply, asked)
    const { uid, renewal, action } = interaction
    if (await upstreamForms.renew(request, reply, { uid }, renewal, { back: toChoice(action), look }) !== null) return reply
    return await forms.show(request, reply, (await toSignIn(request, reply, server, interaction)).form)
  })

  app.post<InteractionRoute>(`${INTERACTION}/:uid`, { schema: { hide: true } }, async (request, reply) => {
    const { server, interaction } = await findInteraction(request, reply)
    if (interaction.over !== undefined) return leave(reply, interaction.over)
    if (interaction.prompt === 'code_used') return await decide(request, reply, server, { code_used: await requireLogin(request, reply, server, interaction) })
    if (!isSigningIn(request, interaction)) {
      const decision = readDecision(request, interaction)
      return decision === undefined ? await showConsent(reply, interaction) : await decide(request, reply, server, decision)
    }
    if (readField(request, 'cancel') !== '') {
      await forms.cancel(interaction.uid)
      return await decide(request, reply, server, DENIED)
    }
    const signIn = await toSignIn(request, reply, server, interaction)
    if (await upstreamForms.prove(request, reply, signIn) !== null || await upstreamForms.lead(request, reply, signIn) !== null) return reply
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
}

/** The purposes of links that continue a sign-in, and the pages on which they are asked for. */
const LINKS = { 'sign-up': 'sign-up', reset: 'forgot' } as const satisfies Partial<Record<PasswordPurpose, keyof typeof PAGE_PATHS>>

/** The pages of a sign-up and of a forgotten password within the sign-in: the request of a link, and its use. */
function addLinks (app: FastifyInstance, mount: PeopleMount, { forms, findInteraction, toForm, decide }: Interactions): void {
  const { getIssuer, look } = mount
  const { accounts, users } = app.identity
  const passwordForm = createPasswordForm(app, mount)
  const askForm = createAskForm(app, mount)
  const upstreamForms = createUpstreamForms(app, mount, forms)

  const tryFind = async (request: FastifyRequest, reply: FastifyReply) => await findInteraction(request, reply).catch(() => undefined)

  /** Goes on with the sign-in to the app after a link, whose user has proved this. The other steps remain. Null where it is over. */
  async function continueWith (request: FastifyRequest, reply: FastifyReply, proved: Proved): Promise<FastifyReply | null> {
    const found = await tryFind(request, reply)
    if (found === undefined || isAfterSignIn(found.interaction)) return null
    const { server, interaction } = found
    const form = toForm(request, reply, server, interaction)
    const signedIn = await forms.proceed(reply, form, proved)
    if (signedIn === null) return reply
    await upstreamForms.complete(request, { form, place: { uid: interaction.uid }, back: interaction.action }, signedIn)
    return await decide(request, reply, server, { login: toLogin(signedIn) })
  }

  /** The account that the browser is signed in to, where the app has asked for another sign-in. */
  const findCurrent = async ({ accountId }: Interaction) => accountId === undefined ? undefined : (await users.get(accountId))?.account

  /** In another browser than that of the sign-in, or too late, the password is set, and the person signs in from the app. */
  const createSignIn = (found: Lazy<Awaited<ReturnType<typeof tryFind>>>): LinkSignIn => ({
    async begin (_request, _reply, account) {
      const { interaction } = await found.get() ?? {}
      const current = interaction && await findCurrent(interaction)
      return current === undefined || current === account ? {} : { signedInAs: current }
    },

    async prepare (request, reply) {
      const { server, interaction } = await found.get() ?? {}
      return async ({ user_id, epoch }) => {
        if (server === undefined || interaction === undefined) return { isElsewhere: true }
        const { uid, accountId } = interaction
        const current = accountId === user_id ? undefined : await findCurrent(interaction)
        if (current !== undefined && !isSwitching(request)) return { signIn: { is: 'other', account: current } }
        if (accountId === user_id) await server.detach(uid)
        const answered = await continueWith(request, reply, { user_id, user_epoch: epoch, way: PASSWORD, kind: 'password' })
        return answered === null ? { isElsewhere: true } : {}
      }
    }
  })

  /** The page of a link. Another link is asked for in the same sign-in, while it lasts. */
  function toPasswordPage (request: FastifyRequest, reply: FastifyReply, purpose: keyof typeof LINKS) {
    const path = `${toApiPath(getIssuer())}${INTERACTION}/${readUid(request)}`
    // The page and its sign-in need it, and so does the page of an error.
    const found = new Lazy(async () => await tryFind(request, reply))
    return {
      action: `${path}${PAGE_PATHS[purpose]}`,
      purpose,
      signIn: createSignIn(found),
      async find () {
        const { interaction } = await found.get() ?? {}
        return interaction && { client_id: interaction.clientId, ask: `${path}${PAGE_PATHS[LINKS[purpose]]}`, page: toPage(look, interaction) }
      }
    } satisfies PasswordPage
  }

  const toSignUpPage = (request: FastifyRequest, reply: FastifyReply) => (
    { ...toPasswordPage(request, reply, 'sign-up'), place: { link: 'sign-up', interaction: readUid(request) } } satisfies PasswordPage)

  async function showAsk (request: FastifyRequest, reply: FastifyReply, kind: AskKind): Promise<FastifyReply> {
    const { interaction } = await findInteraction(request, reply)
    if (!isAskOn(accounts, kind) || isAfterSignIn(interaction)) throw signInOver()
    return await askForm.show(reply, toAsk(kind, interaction), toPage(look, interaction))
  }

  async function ask (request: FastifyRequest, reply: FastifyReply, kind: AskKind): Promise<FastifyReply> {
    const { interaction } = await findInteraction(request, reply)
    const send = kind === 'forgot' ? accounts.forgotPassword : accounts.signUp
    return await askForm.submit(request, reply, toAsk(kind, interaction), async (typed) => (
      await send(typed, toAsker(request, interaction.locales), { uid: interaction.uid })), toPage(look, interaction))
  }

  const path = (kind: keyof typeof PAGE_PATHS) => `${INTERACTION}/:uid${PAGE_PATHS[kind]}`
  type LinkRoute = InteractionRoute & { Querystring: { token?: string } }

  app.get<LinkRoute>(path('sign-up'), { schema: { hide: true } }, async (request, reply) => request.query.token === undefined
    ? await showAsk(request, reply, 'sign-up')
    : await passwordForm.show(request, reply, toSignUpPage(request, reply)))
  app.post<InteractionRoute>(path('sign-up'), { schema: { hide: true } }, async (request, reply) => readField(request, 'token') === ''
    ? await ask(request, reply, 'sign-up')
    : await passwordForm.submit(request, reply, toSignUpPage(request, reply)))

  app.get<InteractionRoute>(path('forgot'), { schema: { hide: true } }, async (request, reply) => await showAsk(request, reply, 'forgot'))
  app.post<InteractionRoute>(path('forgot'), { schema: { hide: true } }, async (request, reply) => await ask(request, reply, 'forgot'))
  app.get<LinkRoute>(path('reset'), { schema: { hide: true } }, async (request, reply) => (
    await passwordForm.show(request, reply, toPasswordPage(request, reply, 'reset'))))
  app.post<InteractionRoute>(path('reset'), { schema: { hide: true } }, async (request, reply) => (
    await passwordForm.submit(request, reply, toPasswordPage(request, reply, 'reset'))))

  if (passwordForm.isByUpstream) {
    app.get<InteractionRoute>(`${path('sign-up')}/upstream`, FINISHES, async (request, reply) => (
      await passwordForm.finish(request, reply, toSignUpPage(request, reply), continueWith)))
  }
}

/** The pages between an authorization request and its response: sign-in and consent. */
export async function interactionRoutes (app: FastifyInstance, mount: PeopleMount): Promise<void> {
  app.setErrorHandler(createPageError(mount.look, async (request) => {
    const client_id = readApp(request)
    return client_id === undefined ? undefined : await (await mount.getServer()).findWay(client_id)
  }))
  parseForms(app)
  answerRepeats(app, mount)
  const interactions = createInteractions(app, mount)
  addSignIn(app, mount, interactions)
  addLinks(app, mount, interactions)
}
