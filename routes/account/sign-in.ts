import type { FastifyInstance } from 'fastify'
import type { Progress } from '../../lib/sign-in/steps/step.ts'
import { PAGE_PATHS } from '../../lib/accounts/links.ts'
import { type AccountMount, type Visits, createSignInCookie } from '../../plugins/account.ts'
import { sendPage } from '../../plugins/pages.ts'
import { type SignInForm, checkOrigin, createSignInForms, readField, toLogin } from '../../plugins/sign-in-forms.ts'

type Query = { Querystring: { next?: string } }

const schema = { hide: true }

/** The sign-in to the account pages, by the same steps as to an app, and the sign-out. */
export function signInPages (app: FastifyInstance, { getServer, getIssuer, getHome, limits, look }: AccountMount, visits: Visits): void {
  const { users, accounts } = app.identity
  const forms = createSignInForms(app, limits, getIssuer)
  const page = { look }
  const toLinks = () => ({
    ...(accounts.isForgotOn && { forgot: `${getHome()}${PAGE_PATHS.forgot}` }),
    ...(accounts.isSignUpOn && { signUp: `${getHome()}${PAGE_PATHS['sign-up']}` })
  })

  /** The form of a browser. A person whose sign-in is too old for a page signs in again. */
  function toForm (next: string | undefined, proof: { secret: string, xsrf: string }, again: string | undefined, base: Progress | undefined): SignInForm {
    const query = next === undefined ? '' : `?${new URLSearchParams({ next })}`
    return {
      secret: proof.secret,
      view: { action: `${getHome()}/sign-in${query}`, xsrf: proof.xsrf, ...(again !== undefined && { again: true, account: again }), ...toLinks() },
      page,
      aim: { base }
    }
  }

  app.get<Query>('/sign-in', { schema }, async (request, reply) => {
    const { next } = request.query
    const server = await getServer()
    const session = await visits.findSession(request, reply, server)
    const base = session === null ? undefined : await visits.findBase(session)
    if (session !== null && visits.isFresh(session) && await visits.judge(session) !== null) return reply.redirect(visits.toNext(next), 303)
    const again = session === null ? undefined : (await users.get(session.user_id))?.account
    return await forms.show(request, reply, toForm(next, createSignInCookie(server.issuer).begin(request, reply), again, base))
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
    const base = session === null ? undefined : await visits.findBase(session)
    const signedIn = await forms.submit(request, reply, toForm(next, proof, again, base))
    if (signedIn === null) return reply
    await visits.signIn(request, reply, server, toLogin(signedIn))
    // The page of a link reads the cookie once more, and ends it.
    if (`/${next}` !== PAGE_PATHS.change) cookie.end(reply)
    return reply.redirect(visits.toNext(next), 303)
  })

  app.post('/sign-out', { schema }, async (request, reply) => {
    const visit = await visits.open(request, reply, { section: 'profile' })
    if (visit === null) return reply
    await visits.signOut(request, reply, visit.server)
    return await sendPage(reply, 'signed-out', {}, page)
  })
}
