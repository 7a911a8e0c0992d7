import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Turn } from '../lib/fair-queue.ts'
import type { Login } from '../lib/oidc/contract.ts'
import { toTurn } from '../lib/roles.ts'
import { type KnownBrowser, KNOWN_FOR } from '../lib/throttling/known-browsers.ts'
import { readCookie } from './cookies.ts'
import { toAnonymousTurn } from './turns.ts'

/** The cookie of a browser in which a user has signed in. Failed attempts elsewhere cannot lock the user out of it. */
interface BrowserCookies {
  /** The entry for an account in the request's cookie. */
  find (request: FastifyRequest, account: string): KnownBrowser | undefined
  /** The turn of a request without a sign-in, which may be of any account: that of the browser's latest one, or of its network. */
  toTurn (request: FastifyRequest): Turn
  /** Sets the cookie. Every sign-in of a browser passes here, by whatever way it was made. */
  remember (request: FastifyRequest, reply: FastifyReply, login: Login): Promise<void>
}

type BrowserServices = Pick<FastifyInstance['identity'], 'knownBrowsers'> & { users: Pick<FastifyInstance['identity']['users'], 'listNames'> }

/** @param getIssuer decides whether browsers reach the service over https only */
export function createBrowserCookies ({ knownBrowsers, users }: BrowserServices, getIssuer: () => URL): BrowserCookies {
  const isSecure = () => getIssuer().protocol === 'https:'
  // A browser accepts a cookie with this prefix over https only, and from this host only (RFC 6265bis, 4.1.3).
  const getName = () => isSecure() ? '__Host-identity_known' : 'identity_known'
  return {
    find: (request, account) => knownBrowsers.find(readCookie(request, getName()), account),
    toTurn (request) {
      const latest = knownBrowsers.findLatest(readCookie(request, getName()))
      const turn = toAnonymousTurn(request)
      return latest === undefined ? turn : toTurn({ user_id: latest.user_id, signal: turn.signal })
    },
    async remember (request, reply, { accountId: user_id, user_epoch: epoch }) {
      const names = await users.listNames(user_id)
      if (names.length === 0) return
      const name = getName()
      const value = knownBrowsers.add(readCookie(request, name), names, { user_id, epoch })
      reply.header('set-cookie', `${name}=${value}; Path=/; Max-Age=${KNOWN_FOR}; HttpOnly; SameSite=Lax${isSecure() ? '; Secure' : ''}`)
    }
  }
}
