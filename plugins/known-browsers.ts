import type { FastifyReply, FastifyRequest } from 'fastify'
import { type KnownBrowser, type KnownBrowsers, KNOWN_FOR } from '../lib/throttling/known-browsers.ts'
import { readCookie } from './cookies.ts'

/** The cookie of a browser in which a user has signed in with a password. Failed attempts elsewhere cannot lock the user out of it. */
interface BrowserCookies {
  /** The entry for an account in the request's cookie. */
  find (request: FastifyRequest, account: string): KnownBrowser | undefined
  /** Sets the cookie after a sign-in. */
  remember (request: FastifyRequest, reply: FastifyReply, account: string, user: { user_id: string, epoch: number }): void
}

/** @param getIssuer decides whether browsers reach the service over https only */
export function createBrowserCookies (browsers: KnownBrowsers, getIssuer: () => URL): BrowserCookies {
  const isSecure = () => getIssuer().protocol === 'https:'
  // A browser accepts a cookie with this prefix over https only, and from this host only (RFC 6265bis, 4.1.3).
  const getName = () => isSecure() ? '__Host-identity_known' : 'identity_known'
  return {
    find: (request, account) => browsers.find(readCookie(request, getName()), account),
    remember (request, reply, account, user) {
      const name = getName()
      const value = browsers.add(readCookie(request, name), account, user)
      reply.header('set-cookie', `${name}=${value}; Path=/; Max-Age=${KNOWN_FOR}; HttpOnly; SameSite=Lax${isSecure() ? '; Secure' : ''}`)
    }
  }
}
