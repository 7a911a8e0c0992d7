import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AuthorizationServer, BrowserSession } from '../../lib/oidc/contract.ts'
import { endsWithCode } from '../../lib/proofs.ts'
import type { SignedIn } from '../../lib/sign-in/sign-ins.ts'
import { PAGE_PATHS } from '../../lib/accounts/links.ts'
import { type AccountMount, type Visits, createSignInCookie } from '../../plugins/account.ts'
import { FINISHES, PageError, sendPage } from '../../plugins/pages.ts'
import { createUpstreamForms } from '../../plugins/upstream-forms.ts'
import type { UpstreamSignIn } from '../../plugins/upstream-sign-in.ts'
import { type SignInForm, checkOrigin, createSignInForms, readField, toLogin } from '../../plugins/sign-in-forms.ts'

type Query = { Querystring: { next?: string } }

const schema = { hide: true }

/** The page after a sign-in with a recovery code. */
const CODE_USED = '/sign-in/code-used'

const toQuery = (next: string | undefined): string => next === undefined ? '' : `?${new URLSearchParams({ next })}`

/** The sign-in to the account pages, by the same steps as to an app, and the sign-out. */
export function signInPages (app: FastifyInstance, { getServer, getIssuer, getHome, limits, look }: AccountMount, visits: Visits): void {
  const { users, accounts, ownFactors } = app.identity
  const forms = createSignInForms(app, limits, getIssuer)
  const upstreamForms = createUpstreamForms(app, { getIssuer, limits }, forms)
  const page = { look }
  const toLinks = () => ({
    forgot: accounts.isForgotOn ? `${getHome()}${PAGE_PATHS.forgot}` : undefined,
    signUp: accounts.isSignUpOn ? `${getHome()}${PAGE_PATHS['sign-up']}` : undefined
  })

  /** The form of a browser. A person whose sign-in is too old for a page signs in again. */
  function toForm (next: string | undefined, proof: { secret: string, xsrf: string }, again: string | undefined, asked: SignInForm['asked']): SignInForm {
    return {
      secret: proof.secret,
      view: { action: `${getHome()}/sign-in${toQuery(next)}`, xsrf: proof.xsrf, again: again !== undefined, account: again, ...toLinks() },
      page,
      asked,
      onUnmet: async () => { throw new PageError('ErrPerm', 'the account cannot prove what the console asks for', ({ errors }) => errors.consoleUnmet) }
    }
  }

  /** The sign-in as one that another provider may take part in. */
  async function toSignIn (request: FastifyRequest, session: BrowserSession | null, ...given: Parameters<typeof toForm>): Promise<UpstreamSignIn> {
    const [next] = given
    const form = toForm(...given)
    const signIn = { form, place: next === undefined ? {} : { next }, back: form.view.action, current: session?.user_id, again: session?.user_id }
    return { ...signIn, form: await upstreamForms.extend(request, signIn) }
  }

  async function enter (
    request: FastifyRequest, reply: FastifyReply, server: AuthorizationServer, next: string | undefined, signedIn: SignedIn
  ): Promise<FastifyReply> {
    await visits.signIn(request, reply, server, toLogin(signedIn))
    // The page of a link reads the cookie once more, and ends it.
    if (`/${next}` !== PAGE_PATHS.change) createSignInCookie(server.issuer).end(reply)
    return reply.redirect(endsWithCode(signedIn.proofs) ? `${getHome()}${CODE_USED}${toQuery(next)}` : visits.toNext(request, next), 303)
  }

  if (upstreamForms.isOn) {
    for (const [method, goOn] of [['GET', upstreamForms.finish], ['POST', upstreamForms.choose]] as const) {
      app.route<Query>({
        method,
        url: '/sign-in/upstream',
        ...FINISHES,
        async handler (request, reply) {
          const { next } = request.query
          const server = await getServer()
          if (method === 'POST') checkOrigin(request, server.issuer)
          const proof = createSignInCookie(server.issuer).begin(request, reply)
          const session = await visits.findSession(request, reply, server)
          const onRenewed = async () => reply.redirect(visits.toNext(request, next), 303)
          const asked = await visits.findAsked(request, next, session)
          const signedIn = await goOn(request, reply, { ...await toSignIn(request, session, next, proof, undefined, asked), onRenewed })
          return signedIn === null ? reply : await enter(request, reply, server, next, signedIn)
        }
      })
    }
  }

  app.get<Query>('/sign-in', { schema }, async (request, reply) => {
    const { next } = request.query
    const server = await getServer()
    const session = await visits.findSession(request, reply, server)
    const asked = await visits.findAsked(request, next, session)
    const base = session === null ? undefined : await visits.findBase(session, asked)
    if (session !== null && visits.isFresh(session) && await visits.judge(session, asked) !== null) return reply.redirect(visits.toNext(request, next), 303)
    const renewal = session === null ? undefined : await visits.findRenewal(session)
    const place = next === undefined ? {} : { next }
    if (await upstreamForms.renew(request, reply, place, renewal, { back: `${getHome()}/sign-in${toQuery(next)}`, look }) !== null) return reply
    const again = session === null ? undefined : (await users.get(session.user_id))?.account
    const proof = createSignInCookie(server.issuer).begin(request, reply)
    return await forms.show(request, reply, (await toSignIn(request, session, next, proof, again, { ...asked, base })).form)
  })

  // It only says what has happened, so it takes no form: whoever opens it changes nothing.
  app.get<Query>(CODE_USED, { schema }, async (request, reply) => {
    const { next } = request.query
    const session = await visits.findJudged(request, reply, await getServer())
    if (session === null || !endsWithCode(session.proofs)) return reply.redirect(visits.toNext(request, next), 303)
    const { codes: left = 0 } = await ownFactors.list(session.user_id)
    return await sendPage(reply, 'code-used', { left, to: visits.toNext(request, next) }, page)
  })

  app.post<Query>('/sign-in', { schema }, async (request, reply) => {
    const { next } = request.query
    const server = await getServer()
    checkOrigin(request, server.issuer)
    const cookie = createSignInCookie(server.issuer)
    const proof = cookie.resume(request)
    if (readField(request, 'cancel') !== '') {
      await forms.cancel(proof.secret)
      cookie.end(reply)
      return reply.redirect(getHome(), 303)
    }
    const session = await visits.findSession(request, reply, server)
    const again = session === null ? undefined : (await users.get(session.user_id))?.account
    const asked = await visits.findAsked(request, next, session)
    const base = session === null ? undefined : await visits.findBase(session, asked)
    const signIn = await toSignIn(request, session, next, proof, again, { ...asked, base })
    if (await upstreamForms.prove(request, reply, signIn) !== null || await upstreamForms.lead(request, reply, signIn) !== null) return reply
    const signedIn = await forms.submit(request, reply, signIn.form)
    if (signedIn === null) return reply
    await upstreamForms.complete(request, signIn, signedIn)
    return await enter(request, reply, server, next, signedIn)
  })

  app.post('/sign-out', { schema }, async (request, reply) => {
    const visit = await visits.open(request, reply, { section: 'profile' })
    if (visit === null) return reply
    await visits.signOut(request, reply, visit.server)
    return await sendPage(reply, 'signed-out', {}, page)
  })
}
