import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { INTERACTION, isInteractionId, toApiPath } from '../lib/issuer.ts'
import { pageHeaders } from '../lib/pages/headers.ts'
import type { Message } from '../lib/pages/texts/en.ts'
import { UpstreamError } from '../lib/upstreams/failure.ts'
import { toRedirectUri } from '../lib/upstreams/kinds.ts'
import { PAGE_PATHS } from '../lib/accounts/links.ts'
import type { ReturnToLink, ReturnTo } from '../lib/upstreams/index.ts'
import { createSignInCookie } from '../plugins/account.ts'
import { createBrowserCookies } from '../plugins/known-browsers.ts'
import type { OidcMount } from '../plugins/oidc-mount.ts'
import { FINISHES, createPageError } from '../plugins/pages.ts'
import { readFields } from '../plugins/sign-in-forms.ts'
import { toLinkError, toPageError } from '../plugins/upstream-errors.ts'
import { toChoice } from '../plugins/upstream-sign-in.ts'
import { createSignedOutCookie } from '../plugins/signed-out.ts'
import { readForm } from '../plugins/utf8.ts'
import { LIMITS } from '../schemas/common.ts'

/** Bytes of the form that Apple sends. */
const FORM_LIMIT = 8 * 1024

/** The parameters of an answer that go on to the page where the browser is compared. */
const ANSWER = ['code', 'state', 'iss', 'error'] as const

const schema = { hide: true }

/** The page of the account where identities are linked. */
const WAYS: Message = ({ account }) => account.sections.methods

const TRY_AGAIN: Message = ({ upstreams }) => upstreams.tryAgain

type Route = { Params: { id: string }, Querystring: Record<string, string | undefined> }

/** The name that Apple sends in the first answer only, in a field of its own. */
function readName (text: string): string {
  try {
    const { name }: { name?: { firstName?: unknown, lastName?: unknown } } = JSON.parse(text)
    return [name?.firstName, name?.lastName].filter((part) => typeof part === 'string').join(' ').trim()
  } catch {
    return ''
  }
}

/** The redirects to other providers, and the redirect URIs where their answers come. */
export async function upstreamRoutes (
  app: FastifyInstance, { getIssuer, getHome, limits, look }: Pick<OidcMount, 'getIssuer' | 'limits' | 'look'> & { getHome: () => string }
): Promise<void> {
  const { upstreams } = app.identity
  if (upstreams === undefined) return
  app.setErrorHandler(createPageError(look))
  app.removeAllContentTypeParsers()
  const form = { parseAs: 'buffer', bodyLimit: FORM_LIMIT } as const
  app.addContentTypeParser('application/x-www-form-urlencoded', form, async (_request: FastifyRequest, body: Buffer) => await readForm(body))
  const cookie = () => createSignInCookie(getIssuer())
  const browsers = createBrowserCookies(app.identity, getIssuer)
  const signedOut = () => createSignedOutCookie(getIssuer())
  /** The page where the person may begin again. */
  const toBack = (place: ReturnTo) => 'uid' in place ? toChoice(toPage(place)) : toPage(place)
  const go = (reply: FastifyReply, to: string) => reply.headers(pageHeaders({ look })).redirect(to, 303)

  /** The page of a link. */
  const toLinkPage = ({ link, interaction }: ReturnToLink): string => interaction === undefined
    ? `${getHome()}${PAGE_PATHS[link]}`
    : `${toApiPath(getIssuer())}${INTERACTION}/${encodeURIComponent(interaction)}/sign-up`

  /** The page of the sign-in, or one below it. */
  function toPage (place: ReturnTo, below = ''): string {
    // The page that links what was proved is one of the account.
    if ('session' in place) return `${getHome()}/identities/linked`
    if ('link' in place) return `${toLinkPage(place)}${below}`
    if ('uid' in place) return `${toApiPath(getIssuer())}${INTERACTION}/${place.uid}${below}`
    return `${getHome()}/sign-in${below}${place.next === undefined ? '' : `?${new URLSearchParams({ next: place.next })}`}`
  }

  function readPlace ({ uid, next }: Route['Querystring']): ReturnTo {
    if (typeof uid === 'string') {
      if (!isInteractionId(uid)) throw new UpstreamError('over')
      return { uid }
    }
    return typeof next === 'string' ? { next: next.slice(0, LIMITS.token) } : {}
  }

  app.get<Route>('/auth/upstream/:id', FINISHES, async (request, reply) => {
    await limits.begin(request)
    let back: string | undefined
    try {
      const { id } = request.params
      const { login_hint: hint, max_age: age } = request.query
      // The page of the app's sign-in says so, and judges the answer. Another link only gets one that is not enough.
      const maxAge = typeof age === 'string' && /^\d{1,9}$/.test(age) ? Number(age) : undefined
      const place = readPlace(request.query)
      back = toBack(place)
      upstreams.require(id)
      const { secret } = cookie().begin(request, reply)
      return go(reply, await upstreams.begin(id, {
        secret,
        redirectUri: toRedirectUri(getIssuer(), id),
        intent: maxAge === undefined ? { kind: 'sign_in', place } : { kind: 'sign_in', place, asks: true },
        maxAge,
        turn: browsers.toTurn(request),
        asksAccount: signedOut().has(request),
        hint: typeof hint === 'string' ? hint.slice(0, LIMITS.account) : undefined
      }))
    } catch (error) {
      throw toPageError(error, back)
    }
  })

  app.get<Route>('/auth/upstream/:id/callback', FINISHES, async (request, reply) => {
    await limits.begin(request)
    const secret = cookie().find(request)
    const start = request.url.indexOf('?')
    const params = new URLSearchParams(start < 0 ? '' : request.url.slice(start))
    try {
      const { upstream, intent, claimed } = await upstreams.complete(request.params.id, params, secret, browsers.toTurn(request))
      const { place } = intent
      // The attempt is of this browser, so it has one.
      if (secret === undefined) throw new UpstreamError('over')
      if (signedOut().has(request)) signedOut().end(reply)
      await upstreams.found.put({ secret, place }, { upstream: upstream.id, claimed, intent })
      return go(reply, toPage(place, '/upstream'))
    } catch (error) {
      // The answer is still good.
      const { refusal, place, claimed }: Partial<UpstreamError> = error instanceof UpstreamError ? error : {}
      const isSignIn = place !== undefined && !('link' in place) && !('session' in place)
      if (refusal !== undefined && isSignIn) {
        if (claimed === undefined) upstreams.identities.recordNobody(request.params.id, refusal)
        else upstreams.identities.recordFailure({ upstream: upstreams.require(request.params.id), claimed }, refusal)
      }
      if (refusal === 'busy') throw toPageError(error, `${toRedirectUri(getIssuer(), request.params.id)}?${params}`, TRY_AGAIN)
      if (place === undefined) throw toPageError(error)
      // Nobody has asked for anything: the person signs in as without a session.
      if (refusal === 'unrenewed') return go(reply, toBack(place))
      if ('link' in place) throw toLinkError(error)
      throw toPageError(error, toBack(place), 'session' in place ? WAYS : undefined)
    }
  })

  // From another site, so without the cookie of the browser: its page of ours is asked for with a redirect, which has it.
  app.post<Route>('/auth/upstream/:id/callback', { schema }, async (request, reply) => {
    await limits.begin(request)
    const { id } = request.params
    try {
      if (upstreams.require(id).kind !== 'apple') throw new UpstreamError('off')
      const fields = readFields(request)
      await upstreams.keepName(id, fields.get('state') ?? '', readName(fields.get('user') ?? ''))
      const answer = new URLSearchParams()
      for (const name of ANSWER) if (fields.has(name)) answer.set(name, fields.get(name) ?? '')
      return go(reply, `${toRedirectUri(getIssuer(), id)}?${answer}`)
    } catch (error) {
      throw toPageError(error)
    }
  })
}
