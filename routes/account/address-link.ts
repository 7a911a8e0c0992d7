import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AddressLink } from '../../lib/accounts/address.ts'
import { PAGE_PATHS } from '../../lib/accounts/links.ts'
import type { Link } from '../../lib/tickets/tickets.ts'
import { nameCaller } from '../../lib/events/origin.ts'
import type { AuthorizationServer, BrowserSession } from '../../lib/oidc/contract.ts'
import { type AccountMount, type Visits, createSignInCookie, isSame, pageExpired } from '../../plugins/account.ts'
import { sendPage } from '../../plugins/pages.ts'
import { checkOrigin, readField } from '../../plugins/sign-in-forms.ts'
import { createUsedLinks } from '../../plugins/used-links.ts'
import { LIMITS } from '../../schemas/common.ts'
import { readToken } from '../people-pages.ts'

const schema = { hide: true }
const PATH = PAGE_PATHS.verify

type ChangeLink = Extract<AddressLink, { purpose: 'change' }>

/** A link as a request names it: by its token, or by what the browser has carried through a sign-in. */
interface OpenedLink {
  link: Link
  /** Absent for a carried link. */
  token: string | undefined
  found: AddressLink
}

/**
 * The page of links that verify an address. The account's own address needs no sign-in. A new address needs a sign-in of the account
 * that asked for it: a browser without one carries the link through the sign-in.
 */
export function addressLinkPages (app: FastifyInstance, { getServer, getIssuer, getHome, limits, look }: AccountMount, visits: Visits): void {
  const { accounts, signIns, users } = app.identity
  const page = { look }
  const toGone = createUsedLinks(app, { getPath: getHome, look })
  const gone = (error: unknown) => toGone(error, 'verify')
  const getAction = () => `${getHome()}${PATH}`

  /** @throws ErrTicket */
  async function openLink (request: FastifyRequest, server: AuthorizationServer, token: string): Promise<OpenedLink> {
    const secret = token === '' ? createSignInCookie(server.issuer).find(request) : undefined
    const ticket = secret === undefined ? undefined : await signIns.findLink(secret)
    const link = ticket === undefined ? token : { ticket }
    const found = await accounts.inspectAddressLink(link).catch((error) => { throw gone(error) })
    return { link, found, token: ticket === undefined ? token : undefined }
  }

  async function showChange (
    reply: FastifyReply, { account, address }: ChangeLink, token: string | undefined, session: BrowserSession | null
  ): Promise<FastifyReply> {
    const signedIn = session === null ? null : await users.get(session.user_id)
    const own = session === null || signedIn === null ? {} : { signedInAs: signedIn.account, xsrf: session.xsrf }
    return await sendPage(reply, 'confirm-change', { action: getAction(), account, address, token, ...own }, page)
  }

  /** Sends the browser to the sign-in, which leads back to this page. */
  async function carry (request: FastifyRequest, reply: FastifyReply, server: AuthorizationServer, { ticket }: ChangeLink): Promise<FastifyReply> {
    await limits.begin(request)
    await signIns.carryLink(createSignInCookie(server.issuer).begin(request, reply).secret, ticket)
    return reply.redirect(`${getHome()}/sign-in?${new URLSearchParams({ next: PATH.slice(1) })}`, 303)
  }

  app.get(PATH, { schema }, async (request, reply) => {
    const server = await getServer()
    const { found, token } = await openLink(request, server, readToken(request))
    if (found.purpose === 'change') return await showChange(reply, found, token, await visits.findJudged(request, reply, server))
    return await sendPage(reply, 'confirm-link', { action: getAction(), token: token ?? '', purpose: 'verify', address: found.address }, page)
  })

  app.post(PATH, { schema }, async (request, reply) => {
    checkOrigin(request, getIssuer())
    await limits.guess(request)
    const server = await getServer()
    const { link, found, token } = await openLink(request, server, readField(request, 'token').slice(0, LIMITS.token))
    if (found.purpose === 'change') {
      const session = await visits.findJudged(request, reply, server)
      if (session === null) return await carry(request, reply, server, found)
      const isOther = session.user_id !== found.user_id
      if (isOther && readField(request, 'sign-out') === '') return await showChange(reply, found, token, session)
      if (!isSame(readField(request, 'xsrf'), session.xsrf)) throw pageExpired()
      if (isOther) {
        await visits.signOut(request, reply, server)
        return await carry(request, reply, server, found)
      }
      nameCaller({ user_id: session.user_id })
      await accounts.verifyAddress(link, session.user_id).catch((error) => { throw gone(error) })
      const cookie = createSignInCookie(server.issuer)
      const secret = cookie.find(request)
      if (secret !== undefined) await signIns.dropLink(secret)
      if (secret !== undefined) cookie.end(reply)
    } else await accounts.verifyAddress(link).catch((error) => { throw gone(error) })
    return await sendPage(reply, 'link-done', { what: 'verified' }, page)
  })
}
