import { AsyncLocalStorage } from 'node:async_hooks'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { KoaContextWithOIDC, Provider } from 'oidc-provider'
import { toTimestamp } from '../clock.ts'
import { nameCaller } from '../events/origin.ts'
import type { Tokens } from '../tokens/tokens.ts'
import { hashToken } from '../crypto/random-token.ts'
import { toInternals } from './context.ts'
import type { BrowserSession, BrowserSessions, OidcSettings, Times } from './contract.ts'
import { setAddress } from './patches.ts'
import { completeLogin, findStoredSession } from './sign-in-sessions.ts'
import { listProofs } from '../browsers/record.ts'

/** Milliseconds between two writes of the time of the last use. */
const USE_INTERVAL = 10 * 60 * 1000

type CookieOptions = Parameters<KoaContextWithOIDC['cookies']['set']>[2]

type Session = InstanceType<Provider['Session']> & { accountId?: string, exp?: number }

interface BrowserSessionParts {
  provider: Provider
  tokens: Tokens
  times: Times
  settings: Pick<OidcSettings, 'sessionTtl'>
  /** The options of the session cookie. */
  cookie: { httpOnly: true, sameSite: 'lax', secure: boolean, signed: true }
}

/**
 * The sign-in session of a browser, outside the endpoints of oidc-provider: the service's own pages and all apps share it.
 * @returns also the context of the request in progress, for the adapters
 */
export function createBrowserSessions (getParts: () => BrowserSessionParts): BrowserSessions & { getContext: () => KoaContextWithOIDC | undefined } {
  const contexts = new AsyncLocalStorage<KoaContextWithOIDC>()

  /** Runs with the session of the browser, or with a new session when the browser has none. */
  async function withSession<T> (
    request: IncomingMessage, response: ServerResponse, address: string, run: (ctx: KoaContextWithOIDC, session: Session) => Promise<T>
  ): Promise<T> {
    const { provider } = getParts()
    setAddress(request, address)
    const { createContext, OIDCContext } = toInternals(provider)
    const ctx = createContext.call(provider, request, response)
    Object.defineProperty(ctx, 'oidc', { value: new OIDCContext(ctx) })
    return await contexts.run(ctx, async () => {
      const session = await provider.Session.get(ctx) as Session
      Object.assign(ctx.oidc, { session })
      return await run(ctx, session)
    })
  }

  async function save (ctx: KoaContextWithOIDC, session: Session): Promise<void> {
    const { provider, settings, cookie } = getParts()
    await session.save(settings.sessionTtl)
    const expires = new Date((session.exp ?? 0) * 1000)
    ctx.oidc.cookies.set(provider.cookieName('session'), session.jti, { ...cookie, path: '/', expires } as CookieOptions)
  }

  return {
    getContext: () => contexts.getStore(),

    async find (request, response, address) {
      return await withSession(request, response, address, async (ctx, session): Promise<BrowserSession | null> => {
        const stored = findStoredSession(ctx)
        if (session.accountId === undefined || stored?.user_id === undefined) return null
        const { times } = getParts()
        if ((stored.last_used_at ?? '') < toTimestamp(times.now() - USE_INTERVAL)) await save(ctx, session)
        return {
          uid: stored.uid,
          user_id: stored.user_id,
          user_epoch: stored.user_epoch ?? 0,
          signed_in_at: stored.signed_in_at ?? stored.created_at,
          proofs: listProofs(stored),
          // The cookie's value is a secret of the browser, and so is this.
          xsrf: hashToken(`xsrf ${session.jti}`)
        }
      })
    },

    async signIn (request, response, address, login) {
      const { provider, tokens } = getParts()
      await withSession(request, response, address, async (ctx, found) => {
        // The actor is the user who signs in, not one who was signed in before.
        nameCaller({ user_id: login.accountId })
        const isOther = found.accountId !== undefined && found.accountId !== login.accountId
        if (isOther) await tokens.endSignIn(found.uid)
        const session = isOther ? new provider.Session() as Session : found
        // Also for an anonymous session. Otherwise anyone who knows its cookie would be signed in too.
        if (!isOther) session.resetIdentifier()
        const { ts, ...signIn } = completeLogin(login, getParts().times)
        Object.assign(ctx.oidc, { session, result: { login: signIn } })
        session.loginAccount({ accountId: signIn.accountId, acr: signIn.acr, amr: signIn.amr, loginTs: ts })
        await save(ctx, session)
      })
    },

    async signOut (request, response, address) {
      const { provider, tokens, cookie } = getParts()
      await withSession(request, response, address, async (ctx, session) => {
        if (session.accountId !== undefined) await tokens.endSignIn(session.uid)
        ctx.oidc.cookies.set(provider.cookieName('session'), null, { ...cookie, path: '/' })
      })
    }
  }
}
