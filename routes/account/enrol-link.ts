import type { FastifyInstance, FastifyRequest } from 'fastify'
import { PAGE_PATHS } from '../../lib/accounts/links.ts'
import { type AccountMount, type Visits, createSignInCookie } from '../../plugins/account.ts'
import { sendPage } from '../../plugins/pages.ts'
import { checkOrigin, readField } from '../../plugins/sign-in-forms.ts'
import { createUsedLinks } from '../../plugins/used-links.ts'
import { LIMITS } from '../../schemas/common.ts'
import { readToken } from '../people-pages.ts'

const schema = { hide: true }
const PATH = PAGE_PATHS.enrol

/**
 * The page of the link with which a person adds a factor after an administrator's reset. The browser carries the link through the sign-in,
 * which needs the password too, adds the factor, and leads back to this page.
 */
export function enrolLinkPages (app: FastifyInstance, { getServer, getIssuer, getHome, limits, look }: AccountMount, visits: Visits): void {
  const { accounts, signIns, ways } = app.identity
  const page = { look }
  const toGone = createUsedLinks(app, { getPath: getHome, look })
  const inspect = async (token: string) => await accounts.inspectEnrolLink(token).catch((error) => { throw toGone(error, 'enrol') })

  app.get(PATH, { schema }, async (request: FastifyRequest, reply) => {
    const token = readToken(request)
    const session = token === '' ? await visits.findJudged(request, reply, await getServer()) : null
    if (session !== null && await ways.hasFactorOf(session.user_id)) return await sendPage(reply, 'link-done', { what: 'enrolled' }, page)
    await inspect(token)
    return await sendPage(reply, 'confirm-link', { action: `${getHome()}${PATH}`, token, purpose: 'enrol' }, page)
  })

  app.post(PATH, { schema }, async (request, reply) => {
    checkOrigin(request, getIssuer())
    await limits.guess(request)
    const { enrolment, user_id } = await inspect(readField(request, 'token').slice(0, LIMITS.token))
    const server = await getServer()
    // Somebody else's session in this browser would pass for the sign-in.
    const session = await visits.findSession(request, reply, server)
    if (session !== null && session.user_id !== user_id) await visits.signOut(request, reply, server)
    await signIns.carryLink(createSignInCookie(server.issuer).begin(request, reply).secret, enrolment)
    return reply.redirect(`${getHome()}/sign-in?${new URLSearchParams({ next: PATH.slice(1) })}`, 303)
  })
}
