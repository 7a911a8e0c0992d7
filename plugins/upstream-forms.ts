import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { defined } from '../lib/defined.ts'
import { toApiPath } from '../lib/issuer.ts'
import type { Interaction } from '../lib/oidc/contract.ts'
import { pageHeaders } from '../lib/pages/headers.ts'
import type { Look } from '../lib/pages/look.ts'
import { toTurn } from '../lib/roles.ts'
import type { Renewal, ReturnTo, ReturnToSignIn, UpstreamService } from '../lib/upstreams/index.ts'
import { answersSilently, findServer, toRedirectUri } from '../lib/upstreams/kinds.ts'
import { createSignInCookie } from './account.ts'
import { watchConnection } from './connections.ts'
import { createBrowserCookies } from './known-browsers.ts'
import type { OidcMount } from './oidc-mount.ts'
import { type SignInForm, type SignInForms, readField } from './sign-in-forms.ts'
import { type UpstreamAnswers, createUpstreamAnswers, over } from './upstream-answers.ts'
import { sendPage } from './pages.ts'
import { LIMITS } from '../schemas/common.ts'
import { toPageError } from './upstream-errors.ts'
import { type UpstreamSignIn, toBack } from './upstream-sign-in.ts'

/** The field of somebody who signs in with a password, although the domain of their address has a provider; `ask`: who wants to. */
const DIRECT = 'direct'

/** The part of a sign-in between the page with the links to other providers and its end. */
export interface UpstreamForms extends Pick<UpstreamAnswers, 'finish' | 'choose' | 'complete'> {
  isOn: boolean
  /** The URL that begins the sign-in with the upstream that the app asks for, unless the person has come back from there. */
  findAsked (request: FastifyRequest, interaction: Interaction): string | undefined
  /** The form with the links to other providers, and with the account that an identity waits for. */
  extend (request: FastifyRequest, signIn: UpstreamSignIn): Promise<SignInForm>
  /**
   * Leads somebody to the only provider of the domain of the address that they have entered, before any password is compared, and whether or not
   * there is such an account. Null where there is none, and where they have chosen their password.
   */
  lead (request: FastifyRequest, reply: FastifyReply, signIn: UpstreamSignIn): Promise<FastifyReply | null>
  /**
   * Sends a person who is signed in to a provider, where they prove again that it is them. Null unless the form asks for it. The caller
   * has checked that the form is one of theirs.
   * @throws PageError
   */
  prove (request: FastifyRequest, reply: FastifyReply, signIn: UpstreamSignIn): Promise<FastifyReply | null>
  /**
   * Sends a browser to the provider, which answers without a page whether it still knows the person: once a session and ten minutes. Null
   * where there is nothing to renew, or it was tried.
   * @throws PageError while the provider is down
   */
  renew (
    request: FastifyRequest, reply: FastifyReply, place: ReturnToSignIn, renewal: Renewal | undefined, page: { back: string, look: Look }
  ): Promise<FastifyReply | null>
}

/** The forms of a service without other providers. */
const OFF: UpstreamForms = {
  isOn: false,
  findAsked: () => undefined,
  extend: async (_request, { form }) => form,
  lead: async () => null,
  prove: async () => null,
  renew: async () => null,
  finish: async (_request, _reply, signIn) => { throw over(signIn) },
  choose: async (_request, _reply, signIn) => { throw over(signIn) },
  complete: async () => {}
}

/** The part of a sign-in that other providers take, for apps and for the account pages. */
export function createUpstreamForms (app: FastifyInstance, mount: Pick<OidcMount, 'getIssuer' | 'limits'>, forms: SignInForms): UpstreamForms {
  const { upstreams } = app.identity
  if (upstreams === undefined) return OFF
  const answers = createUpstreamAnswers(app, upstreams, mount, forms)
  return { isOn: true, ...createUpstreamStarts(app, upstreams, mount, answers, forms), ...answers }
}

/** What leads to other providers. */
function createUpstreamStarts (
  app: FastifyInstance, upstreams: UpstreamService, { getIssuer }: Pick<OidcMount, 'getIssuer'>, { findFound }: Pick<UpstreamAnswers, 'findFound'>,
  forms: Pick<SignInForms, 'show'>
): Pick<UpstreamForms, 'findAsked' | 'extend' | 'lead' | 'prove' | 'renew'> {
  const cookie = () => createSignInCookie(getIssuer())
  const browsers = createBrowserCookies(app.identity, getIssuer)

  /** The URL that begins a sign-in with an upstream. */
  function toStart (id: string, place: ReturnTo, { maxAge, hint }: { maxAge?: number | undefined, hint?: string } = {}): string {
    const text = new URLSearchParams(defined({ ...place, max_age: maxAge === undefined ? undefined : String(maxAge), login_hint: hint })).toString()
    return `${toApiPath(getIssuer())}/auth/upstream/${id}${text === '' ? '' : `?${text}`}`
  }

  return {
    findAsked ({ query }, { upstream, uid, clientId, stepUp, freshness }) {
      if (upstream === undefined || stepUp !== undefined || Object.keys(query as object).length > 0) return undefined
      return upstreams.list(clientId).some(({ id }) => id === upstream) ? toStart(upstream, { uid }, { maxAge: freshness?.maxAge }) : undefined
    },

    async extend (request, signIn) {
      const { place } = signIn
      const form = readField(request, DIRECT) === '' ? signIn.form : { ...signIn.form, view: { ...signIn.form.view, direct: true } }
      if (form.asked?.base !== undefined) return form
      const found = await findFound(request, signIn)
      if (found?.pending !== undefined) {
        const name = upstreams.list().find(({ id }) => id === found.upstream)?.name ?? found.upstream
        return { ...form, view: { ...form.view, notice: ({ upstreams: texts }) => (found.isOther === true ? texts.confirmOther : texts.confirm)({ name }) } }
      }
      const list = upstreams.list(form.asked?.client_id)
      if (signIn.again === undefined) {
        const links = list.map((one) => ({ ...one, to: toStart(one.id, place, signIn) }))
        return { ...form, view: { ...form.view, upstreams: links }, page: { ...form.page, formTo: [] } }
      }
      const formTo = list.map(({ id }) => findServer(upstreams.require(id)))
      return { ...form, view: { ...form.view, upstreams: list }, page: { ...form.page, formTo } }
    },

    async lead (request, reply, { form, place, again, maxAge }) {
      const account = readField(request, 'account').trim().slice(0, LIMITS.account)
      const direct = readField(request, DIRECT)
      // A person who is signed in has the provider on the page.
      if (account === '' || again !== undefined || form.asked?.base !== undefined) return null
      if (direct === 'ask') return await forms.show(request, reply, { ...form, view: { ...form.view, account } })
      const id = direct === '' ? upstreams.findOnly({ account: account.toLowerCase(), roles: {} }) : undefined
      const upstream = upstreams.list(form.asked?.client_id).find((one) => one.id === id)
      if (upstream === undefined) return null
      const { action, xsrf, client } = form.view
      const to = toStart(upstream.id, place, { maxAge, hint: account })
      return await sendPage(reply, 'sign-in-elsewhere', defined({ action, xsrf, client, account, upstream: { ...upstream, to } }), form.page)
    },

    async prove (request, reply, signIn) {
      const { form, place, maxAge } = signIn
      const id = readField(request, 'upstream')
      if (id === '') return null
      try {
        upstreams.require(id, form.asked?.client_id)
        const { secret } = cookie().begin(request, reply)
        const redirectUri = toRedirectUri(getIssuer(), id)
        const to = await upstreams.begin(id, {
          secret, redirectUri, intent: { kind: 'sign_in', place, fresh: true }, maxAge, turn: browsers.toTurn(request)
        })
        return reply.headers(pageHeaders({ look: form.page.look })).redirect(to, 303)
      } catch (error) {
        throw toPageError(error, toBack(signIn))
      }
    },

    async renew (request, reply, place, renewal, page) {
      if (renewal === undefined) return null
      const { session, user_id, way, upstream, hint } = renewal
      if (!answersSilently(upstreams.require(upstream)) || !await upstreams.mayRenew(session)) return null
      try {
        const { secret } = cookie().begin(request, reply)
        const redirectUri = toRedirectUri(getIssuer(), upstream)
        const turn = toTurn({ user_id, signal: watchConnection(request) })
        const to = await upstreams.begin(upstream, { secret, redirectUri, intent: { kind: 'renew', place, user_id, way }, turn, hint })
        return reply.headers(pageHeaders({ look: page.look })).redirect(to, 303)
      } catch (error) {
        throw toPageError(error, page.back)
      }
    }
  }
}
