import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Clock } from '../lib/clock.ts'
import type { AuthorizationServer, BrowserSession, BrowserSessions } from '../lib/oidc/contract.ts'
import type { AccountSection, AccountView } from '../lib/pages/contract.ts'
import { nameCaller } from '../lib/events/origin.ts'
import type { UserRecord } from '../lib/records/user.ts'
import type { SignInRequest } from '../lib/sign-in/sign-ins.ts'
import type { Progress } from '../lib/sign-in/steps/step.ts'
import type { Strength } from '../lib/proofs.ts'
import { toBase } from '../lib/sign-in/step-up.ts'
import { showUser } from '../lib/users/show-user.ts'
import type { Actor } from '../lib/roles.ts'
import type { Renewal } from '../lib/upstreams/index.ts'
import { hashToken } from '../lib/crypto/random-token.ts'
import type { Profile } from '../schemas/user.ts'
import { IdentityError } from '../lib/errors.ts'
import { watchConnection } from './connections.ts'
import { readConsoleNext } from './console-door.ts'
import type { OidcMount } from './oidc-mount.ts'
import { createBrowserCookies } from './known-browsers.ts'
import { isChoosing } from './language.ts'
import { rememberLanguage } from './mail-language.ts'
import { PageError } from './pages.ts'
import { checkOrigin, readField } from './sign-in-forms.ts'
import { createSignedOutCookie } from './signed-out.ts'
import type { UserLimit } from './user-limit.ts'
import { canAddTo } from '../lib/sign-in/may-sign-in.ts'

export interface AccountMount extends OidcMount {
  /** The path of the account pages as browsers see it. */
  getHome: () => string
  now: Clock
  /** Characters that a new password must have. */
  passwordMin: number
  limitWrites: UserLimit
  limitPasswords: UserLimit
  /** Milliseconds: a browser that reads nothing of a download for this long is disconnected. */
  stallTimeout: number
  /** The console, to which a sign-in may lead. Absent: there is none. */
  console?: {
    getPath: () => string
    isNear: (address: string) => boolean
    toAsked: (user: Pick<UserRecord, 'roles'>) => Pick<SignInRequest, 'acr' | 'enrols'>
  } | undefined
}

/** Milliseconds for which a sign-in counts as fresh. Sensitive pages require a fresh one. */
const FRESH = 10 * 60 * 1000

/** Whether a sign-in at this time, ISO 8601, counts as fresh. @param now milliseconds since 1970 */
export const isFreshSignIn = ({ signed_in_at }: Pick<BrowserSession, 'signed_in_at'>, now: number): boolean => Date.parse(signed_in_at) > now - FRESH

/** A valid `next` of a sign-in: a page of the account, never another address. */
const NEXT = /^[a-z-]{1,32}(\/[0-9A-Za-z]{1,64})?$/

/** The sections of the account pages, in their order. */
const SECTIONS: readonly AccountSection[] = [
  'profile', 'methods', 'email', 'sessions', 'apps', 'tokens', 'activity', 'clients', 'data', 'delete'
]

/** The sections with forms that end sessions, and personal access tokens with them. */
const ENDS_TOKENS: readonly AccountSection[] = ['methods', 'sessions', 'delete']

/** What a page asks of the sign-in that leads to it. */
type DestinationAsked = Pick<SignInRequest, 'acr' | 'enrols'>

/** A request of a person who is signed in. */
export interface Visit {
  server: AuthorizationServer
  session: BrowserSession
  user: Profile & { user_id: string, hasFactor: boolean, hasPasskey: boolean, hasPassword: boolean, isRestricted: boolean, strength: Strength }
  /** The person as an actor of the services, with a plain user's power over their own account and no more. */
  actor: Actor
  /** The part of the view that all pages share. */
  view: AccountView
}

export interface VisitOptions {
  section: AccountSection
  /** The page that a sign-in on the way leads to, if it is not the section's own. */
  path?: string
  /** Whether the sign-in must be fresh. */
  sensitive?: boolean
}

export const pageExpired = (code: 'ErrParam' | 'ErrUnknown' = 'ErrParam') =>
  new PageError(code, 'xsrf: the page has expired, or was opened in another browser', ({ errors }) => errors.pageExpired)

export const isSame = (one: string, other: string) => timingSafeEqual(Buffer.from(hashToken(one)), Buffer.from(hashToken(other)))

/** oidc-provider sets its cookies past Fastify. A host's own cookies on the reply would replace them. */
export function adoptCookies (reply: FastifyReply): void {
  const cookies = reply.raw.getHeader('set-cookie')
  if (cookies === undefined) return
  reply.raw.removeHeader('set-cookie')
  reply.header('set-cookie', cookies)
}

/** Finds the sign-in session of a request, and signs browsers in and out, for the account pages. */
export function createVisits (
  { identity }: FastifyInstance,
  { getServer, getHome, getIssuer, now, console: target }: Pick<AccountMount, 'getServer' | 'getHome' | 'getIssuer' | 'now' | 'console'>
) {
  const { maySignIn, clients, accounts, ways, passkeys, upstreams, personalTokens } = identity
  const known = createBrowserCookies(identity, getIssuer)
  const isFresh = (session: BrowserSession) => isFreshSignIn(session, now())

  async function findSession (request: FastifyRequest, reply: FastifyReply, server: AuthorizationServer): Promise<BrowserSession | null> {
    const session = await server.browsers.find(request.raw, reply.raw, request.ip)
    adoptCookies(reply)
    return session
  }

  /** The user of a session who may go on with what they have proved in it; null for any other. */
  async function judge ({ user_id, user_epoch: epoch, proofs }: BrowserSession, asked: DestinationAsked = {}): Promise<Visit['user'] | null> {
    const judged = await maySignIn({ user_id, epoch, proofs, ...asked })
    if (!judged.may) return null
    const { user, strength } = judged
    return {
      ...showUser(user),
      strength,
      hasFactor: await ways.hasFactor(user),
      hasPasskey: passkeys.has(user),
      hasPassword: Boolean(user.password),
      isRestricted: ways.isRestricted(strength)
    }
  }

  function createActor (
    request: FastifyRequest, reply: FastifyReply, { server, session: { user_id, user_epoch }, user }: Pick<Visit, 'server' | 'session' | 'user'>
  ): Actor {
    return {
      // Who has a proof for a form brings it. Otherwise what they have proved in this session stands for it while it is fresh.
      auth: user.hasPassword || user.hasPasskey ? undefined : user.strength,
      isRestricted: user.isRestricted,
      user_id,
      isUser: true,
      isAdmin: false,
      isUnrestricted: false,
      holds: () => true,
      epoch: user_epoch,
      signal: watchConnection(request),
      async confirm () {
        if ((await findSession(request, reply, server))?.user_id !== user_id) throw pageExpired('ErrUnknown')
      }
    }
  }

  /** The sections shown to a person, in order. `clients` is hidden from people who have no client, unless it is the open one. */
  async function listSections (section: AccountSection, actor: Actor): Promise<AccountSection[]> {
    const hasClients = section === 'clients' || await clients.count(undefined, actor) > 0
    const hidden: Partial<Record<AccountSection, boolean>> = {
      email: accounts.outbox === undefined, tokens: personalTokens === undefined, clients: !hasClients, delete: !accounts.isDeletionOn
    }
    return SECTIONS.filter((one) => hidden[one] !== true)
  }

  /** The path of the console's page that a sign-in leads to. Undefined for another page, and where there is no console for this browser. */
  function findConsole (request: FastifyRequest, next: unknown): string | undefined {
    const path = readConsoleNext(next)
    return path !== undefined && target?.isNear(request.ip) === true ? target.getPath() + path : undefined
  }

  /** Redirects to the sign-in, which returns to `next`. */
  function redirectToSignIn (reply: FastifyReply, next: string): FastifyReply {
    return reply.redirect(`${getHome()}/sign-in?${new URLSearchParams({ next })}`, 303)
  }

  return {
    isFresh,
    findSession,
    judge,

    /** The session of a person who has proved what is demanded of them; null for any other. */
    async findJudged (request: FastifyRequest, reply: FastifyReply, server: AuthorizationServer): Promise<BrowserSession | null> {
      const session = await findSession(request, reply, server)
      return session === null || await judge(session) === null ? null : session
    },

    /** What the destination of a sign-in demands in addition. Only the console does, and only of a person who is known and may open it. */
    async findAsked (request: FastifyRequest, next: unknown, session: BrowserSession | null): Promise<DestinationAsked> {
      if (session === null || findConsole(request, next) === undefined) return {}
      const user = await identity.users.get(session.user_id)
      return user === null ? {} : target?.toAsked(user) ?? {}
    },

    /** What the next sign-in adds to. Undefined when it asks for all: for a fresh sign-in, if what is demanded was proved. */
    async findBase (session: BrowserSession, asked: DestinationAsked = {}): Promise<Progress | undefined> {
      const { user_id, user_epoch: epoch, proofs } = session
      const judged = await maySignIn({ user_id, epoch, proofs, ...asked })
      const isShort = !judged.may && canAddTo(judged) && await upstreams?.findRenewal(session) === undefined
      return isShort ? toBase(session, now()) : undefined
    },

    /** How the session goes on if another provider still knows the person; undefined where that is not what is missing. */
    async findRenewal (session: BrowserSession): Promise<Renewal | undefined> {
      return await upstreams?.findRenewal(session)
    },

    async signIn (request: FastifyRequest, reply: FastifyReply, server: AuthorizationServer, login: Parameters<BrowserSessions['signIn']>[3]): Promise<void> {
      await server.browsers.signIn(request.raw, reply.raw, request.ip, login)
      adoptCookies(reply)
      await known.remember(request, reply, login)
    },

    async signOut (request: FastifyRequest, reply: FastifyReply, server: AuthorizationServer): Promise<void> {
      await server.browsers.signOut(request.raw, reply.raw, request.ip)
      adoptCookies(reply)
      if (upstreams !== undefined) createSignedOutCookie(server.issuer).set(reply)
    },

    /** The page to go to after a sign-in. */
    toNext (request: FastifyRequest, next: unknown): string {
      const path = findConsole(request, next)
      if (path !== undefined) return path
      return typeof next === 'string' && NEXT.test(next) && next !== 'profile' ? `${getHome()}/${next}` : getHome()
    },

    /**
     * Finds the person who is signed in in this browser. Null when it has redirected them to the sign-in.
     * @throws ErrPerm for a form from another site, ErrParam for one from another browser
     */
    async open (request: FastifyRequest, reply: FastifyReply, { section, path = section, sensitive = false }: VisitOptions): Promise<Visit | null> {
      const server = await getServer()
      if (request.method === 'POST') checkOrigin(request, server.issuer)
      const session = await findSession(request, reply, server)
      const user = session === null ? null : await judge(session)
      if (session === null || user === null || (sensitive && !isFresh(session))) {
        redirectToSignIn(reply, path)
        return null
      }
      if (request.method === 'POST' && !isSame(readField(request, 'xsrf'), session.xsrf)) throw pageExpired()
      nameCaller({ user_id: user.user_id })
      if (isChoosing(request)) await rememberLanguage(request, user.user_id)
      const actor = createActor(request, reply, { server, session, user })
      const sections = await listSections(section, actor)
      if (!sections.includes(section)) throw new IdentityError('ErrNotFound', 'path: no such page')
      const { account, hasFactor: needsCode, hasPassword } = user
      const endingTokens = ENDS_TOKENS.includes(section) ? (await personalTokens?.list(user.user_id))?.length : undefined
      const view = { base: getHome(), section, sections, account, xsrf: session.xsrf, needsCode, noPassword: !hasPassword }
      return { server, session, user, actor, view: endingTokens === undefined ? view : { ...view, endingTokens } }
    }
  }
}

export type Visits = ReturnType<typeof createVisits>

/** The cookie of a browser that signs in to the account pages. The service stores nothing for it before the first step succeeds. */
export function createSignInCookie (issuer: URL) {
  const secure = issuer.protocol === 'https:'
  const name = secure ? '__Host-identity_sign_in' : 'identity_sign_in'
  const attributes = `Path=/; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`
  const pattern = new RegExp(`(?:^|;\\s*)${name}=([\\w-]{43})(?:;|$)`)
  const read = ({ headers }: FastifyRequest) => pattern.exec(headers.cookie ?? '')?.[1]
  const toXsrf = (secret: string) => hashToken(`xsrf ${secret}`)

  /** The sign-in of a form. Undefined unless the form is from a page of this browser. */
  function match (request: FastifyRequest): { secret: string, xsrf: string } | undefined {
    const secret = read(request)
    if (secret === undefined || !isSame(readField(request, 'xsrf'), toXsrf(secret))) return undefined
    return { secret: `account ${secret}`, xsrf: toXsrf(secret) }
  }

  return {
    /** The secret of the sign-in that this browser has begun; undefined without one. */
    find (request: FastifyRequest): string | undefined {
      const secret = read(request)
      return secret === undefined ? undefined : `account ${secret}`
    },

    /** The secret of this sign-in, created if it is missing, and the value of the hidden field of its forms. */
    begin (request: FastifyRequest, reply: FastifyReply): { secret: string, xsrf: string } {
      let secret = read(request)
      if (secret === undefined) {
        secret = randomBytes(32).toString('base64url')
        reply.header('set-cookie', `${name}=${secret}; ${attributes}`)
      }
      return { secret: `account ${secret}`, xsrf: toXsrf(secret) }
    },

    match,

    /** @throws ErrParam unless the form is from a page of this browser */
    resume (request: FastifyRequest): { secret: string, xsrf: string } {
      const proof = match(request)
      if (proof === undefined) throw pageExpired()
      return proof
    },

    end (reply: FastifyReply): void {
      reply.header('set-cookie', `${name}=; ${attributes}; Max-Age=0`)
    }
  }
}
