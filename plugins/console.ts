import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Console, ConsoleSession } from '../lib/console-sessions/console-sessions.ts'
import { IdentityError } from '../lib/errors.ts'
import { nameCaller } from '../lib/events/origin.ts'
import type { BrowserSession } from '../lib/oidc/contract.ts'
import type { UserRecord } from '../lib/records/user.ts'
import type { AccessRule, ConsoleOptions } from '../schemas/options.ts'
import type { Operation } from './access-table.ts'
import { type AccountMount, adoptCookies, isFreshSignIn, isSame, pageExpired } from './account.ts'
import { CONSOLE_NEXT, type ConsoleDoor } from './console-door.ts'
import { readCookie } from './cookies.ts'
import { PageError } from './pages.ts'
import { checkOrigin, readField } from './sign-in-forms.ts'
import { createSignedOutCookie } from './signed-out.ts'

/** What the pages of the console are mounted with. */
export interface ConsoleMount extends AccountMount {
  options: ConsoleOptions
  /** Overrides of the access table. */
  access: Record<string, AccessRule>
  /** The path of the console as browsers see it. */
  getConsole: () => string
}

/** Somebody who may call at least one operation on what is not their own, at a page of the console. */
export interface ConsoleVisit {
  session: ConsoleSession
  /** Whether their roles admit them to an operation, by the access table. The operation may refuse nevertheless. */
  may: (name: Operation) => boolean
  /** Whether they have proved lately who they are. */
  isFresh: boolean
}

/** The page that a visit is for. */
interface Asked {
  /** Whether a form of it changes something, so that a fresh proof is needed. */
  isChange?: boolean
}

/** Finds who is signed in to the console, and leads everybody else to the sign-in page. */
export function createConsoleVisits (app: FastifyInstance, mount: ConsoleMount, door: ConsoleDoor) {
  const { getServer, getIssuer, getHome, getConsole, now, options: { acr } } = mount
  const { identity: { console: found, maySignIn, tokens, ways, upstreams } } = app
  if (found === undefined) throw new Error('the console is off')
  const sessions: Console = found
  const isSecure = () => getIssuer().protocol === 'https:'
  const toName = () => isSecure() ? '__Host-identity_console' : 'identity_console'
  const toCookie = (value: string, rest = '') => `${toName()}=${value}; Path=/; HttpOnly; SameSite=Lax${isSecure() ? '; Secure' : ''}${rest}`
  const isFresh = (session: Pick<ConsoleSession, 'signed_in_at'>) => isFreshSignIn(session, now())

  /** @throws ErrPerm */
  function requireOpen (user: UserRecord): void {
    if (!door.isOpenTo(user)) throw new IdentityError('ErrPerm', 'the console is for administrators and support staff')
  }

  /** The page that a request is for, below the path of the console. */
  function toPath ({ url }: FastifyRequest): string {
    const [path = ''] = url.split('?', 1)
    return path.startsWith(`${getConsole()}/`) ? path.slice(getConsole().length) : ''
  }

  /** The URL of the sign-in that leads back to the page of a request. */
  function toSignIn (request: FastifyRequest): string {
    const next = `console${toPath(request)}`
    return `${getHome()}/sign-in?${new URLSearchParams({ next: CONSOLE_NEXT.test(next) ? next : 'console' })}`
  }

  function redirectToSignIn (request: FastifyRequest, reply: FastifyReply): null {
    reply.redirect(toSignIn(request), 303)
    return null
  }

  /** The person who is signed in at the account pages of this browser, whether they may open the console or not. */
  async function findBrowser (request: FastifyRequest, reply: FastifyReply): Promise<{ browser: BrowserSession, user: UserRecord } | null> {
    const browser = await (await getServer()).browsers.find(request.raw, reply.raw, request.ip)
    adoptCookies(reply)
    if (browser === null) return null
    const { user_id, user_epoch: epoch, proofs } = browser
    const judged = await maySignIn({ user_id, epoch, proofs })
    return judged.may ? { browser, user: judged.user } : null
  }

  /** Enters with what was proved at the sign-in page, if it is enough and fresh. */
  async function enter (request: FastifyRequest, reply: FastifyReply): Promise<ConsoleSession | null> {
    const found = await findBrowser(request, reply)
    if (found === null) return null
    requireOpen(found.user)
    const { browser } = found
    if (request.method !== 'GET' || !isFresh(browser)) return null
    const judged = await maySignIn({ user_id: browser.user_id, epoch: browser.user_epoch, proofs: browser.proofs, acr })
    if (!judged.may) return null
    if (ways.isRestricted(judged.strength)) throw new PageError('ErrPerm', 'the sign-in is for some apps only', ({ account }) => account.restricted)
    nameCaller({ user_id: browser.user_id })
    const cookie = await sessions.enter(browser)
    reply.header('set-cookie', toCookie(cookie))
    return await sessions.find(cookie, acr)
  }

  return {
    toSignIn,

    /**
     * Finds who is signed in to the console in this browser. Null when it has redirected them to the sign-in page.
     * @throws ErrPerm for somebody who may not open it and for a form from another site, ErrParam for one from another browser
     */
    async open (request: FastifyRequest, reply: FastifyReply, { isChange = false }: Asked = {}): Promise<ConsoleVisit | null> {
      if (request.method === 'POST') checkOrigin(request, getIssuer())
      const sent = readCookie(request, toName())
      const known = sent === undefined ? null : await sessions.find(sent, acr)
      const session = known ?? await enter(request, reply)
      if (session === null) return redirectToSignIn(request, reply)
      requireOpen(session.user)
      if (request.method === 'POST' && !isSame(readField(request, 'xsrf'), session.xsrf)) throw pageExpired()
      if (isChange && !isFresh(session)) return redirectToSignIn(request, reply)
      if (known !== null && session.isRenewed) reply.header('set-cookie', toCookie(session.cookie))
      nameCaller({ user_id: session.user.id })
      return { session, isFresh: isFresh(session), may: (name) => door.may(session.user, name) }
    },

    /** Signs the person out of this browser. The console ends with it. */
    async signOut (request: FastifyRequest, reply: FastifyReply, { session }: ConsoleVisit): Promise<void> {
      await tokens.endSignIn(session.uid)
      await (await getServer()).browsers.signOut(request.raw, reply.raw, request.ip)
      adoptCookies(reply)
      reply.header('set-cookie', toCookie('', '; Max-Age=0'))
      if (upstreams !== undefined) createSignedOutCookie(getIssuer()).set(reply)
    }
  }
}

export type ConsoleVisits = ReturnType<typeof createConsoleVisits>
