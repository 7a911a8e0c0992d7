import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { INTERACTION, toApiPath } from '../lib/issuer.ts'
import { pageHeaders } from '../lib/pages/headers.ts'
import type { Message } from '../lib/pages/texts/en.ts'
import { UpstreamError } from '../lib/upstreams/failure.ts'
import { PAGE_PATHS } from '../lib/accounts/links.ts'
import type { LinkPlace, Place } from '../lib/upstreams/index.ts'
import { createSignInCookie } from '../plugins/account.ts'
import { createBrowserCookies } from '../plugins/known-browsers.ts'
import type { OidcMount } from '../plugins/oidc.ts'
import { FINISHES, createPageError } from '../plugins/pages.ts'
import { readFields } from '../plugins/sign-in-forms.ts'
import { toLinkError, toPageError } from '../plugins/upstream-errors.ts'
import { toChoice, toRedirectUri } from '../plugins/upstream-forms.ts'
import { createSignedOutCookie } from '../plugins/signed-out.ts'
import { readForm } from '../plugins/utf8.ts'
import { LIMITS } from '../schemas/common.ts'

/** Bytes of the form that Apple sends. */
const FORM_LIMIT = 8 * 1024

/** The parameters of an answer that go on to the page where the browser is compared. */
const ANSWER = ['code', 'state', 'iss', 'error'] as const

const schema = { hide: true }

/** The page of the account where identities are linked. */
const WAYS: Message = ({ account }) => account.sections.identities

const TRY_AGAIN: Message = ({ upstreams }) => upstreams.tryAgain

type Route = { Params: { id: string }, Querystring: Record<string, string | undefined> }

/** The name that Apple sends in the first answer only, in a field of its own. */
function readName (text: string): string {
  try {
    const { name } = JSON.parse(text) as { name?: { firstName?: unknown, lastName?: unknown } }
    return [name?.firstName, name?.lastName].filter((part) => typeof part === 'string').join(' ').trim()
  } catch {
    return ''
  }
}

/** The redirects to other providers, and the redirect URIs where their answers come. */
export async function upstreamRoutes (app: FastifyInstance, { getIssuer, getHome, limits, look }: Pick<OidcMount, 'getIssuer' | 'limits' | 'look'> & { getHome: () => string }): Promise<void> {
  const { upstreams } = app.identity
  if (upstreams === undefined) return
  app.setErrorHandler(createPageError(look))
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'buffer', bodyLimit: FORM_LIMIT }, async (_request: FastifyRequest, body: Buffer) => await readForm(body))
  const cookie = () => createSignInCookie(getIssuer())
  const browsers = createBrowserCookies(app.identity, getIssuer)
  const signedOut = () => createSignedOutCookie(getIssuer())
  /** The page where the person may begin again. */
  const toBack = (place: Place) => 'uid' in place ? toChoice(toPage(place)) : toPage(place)
  const go = (reply: FastifyReply, to: string) => reply.headers(pageHeaders({ look })).redirect(to, 303)

  /** The page of a link. */
  const toLinkPage = ({ link, interaction }: LinkPlace): string => interaction === undefined
    ? `${getHome()}${PAGE_PATHS[link]}`
    : `${toApiPath(getIssuer())}${INTERACTION}/${encodeURIComponent(interaction)}/sign-up`

  /** The page of the sign-in, or one below it. */
  function toPage (place: Place, below = ''): string {
    // The page that links what was proved is one of the account.
    if ('session' in place) return `${getHome()}/identities/linked`
    if ('link' in place) return `${toLinkPage(place)}${below}`
    if ('uid' in place) return `${toApiPath(getIssuer())}${INTERACTION}/${place.uid}${below}`
    return `${getHome()}/sign-in${below}${place.next === undefined ? '' : `?${new URLSearchParams({ next: place.next })}`}`
  }

  function readPlace ({ uid, next }: Route['Querystring']): Place {
    if (typeof uid === 'string') {
      if (!/^[\w-]{1,64}$/.test(uid)) throw new UpstreamError('over')
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
      return go(reply, await upstreams.begin(id, { secret, redirectUri: toRedirectUri(getIssuer(), id), intent: { kind: 'sign_in', place, ...(maxAge !== undefined && { asks: true }) }, maxAge, turn: browsers.toTurn(request), asksAccount: signedOut().has(request), ...(typeof hint === 'string' && { hint: hint.slice(0, LIMITS.account) }) }))
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
      if (signedOut().has(request)) signedOut().end(reply)
      await upstreams.found.put({ secret: secret!, place }, { upstream: upstream.id, claimed, intent })
      return go(reply, toPage(place, '/upstream'))
    } catch (error) {
      // The answer is still good.
      if (error instanceof UpstreamError && error.refusal === 'busy') throw toPageError(error, `${toRedirectUri(getIssuer(), request.params.id)}?${params}`, TRY_AGAIN)
      const place = error instanceof UpstreamError ? error.place : undefined
      // Nobody has asked for anything: the person signs in as without a session.
      if (place !== undefined && (error as UpstreamError).refusal === 'unrenewed') return go(reply, toBack(place))
      if (place !== undefined && 'link' in place) throw toLinkError(error)
      throw toPageError(error, place && toBack(place), ...(place !== undefined && 'session' in place ? [WAYS] : []))
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
      const answer = ANSWER.filter((name) => fields.has(name)).map((name): [string, string] => [name, fields.get(name)!])
      return go(reply, `${toRedirectUri(getIssuer(), id)}?${new URLSearchParams(answer)}`)
    } catch (error) {
      throw toPageError(error)
    }
  })
}
