import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { IdentityError } from '../lib/errors.ts'
import { toApiPath, toIssuer } from '../lib/issuer.ts'
import type { Interaction } from '../lib/oidc/contract.ts'
import { pageHeaders } from '../lib/pages/headers.ts'
import type { Look } from '../lib/pages/look.ts'
import type { Proved, SignedIn } from '../lib/sign-in/sign-ins.ts'
import type { Refusal } from '../lib/sign-in/steps/step.ts'
import { UpstreamError } from '../lib/upstreams/failure.ts'
import { toTurn } from '../lib/roles.ts'
import { findDelay } from '../lib/sign-in/freshness.ts'
import type { Found } from '../lib/upstreams/found.ts'
import type { Place, Renewal, SignInPlace, UpstreamService } from '../lib/upstreams/index.ts'
import { answersSilently, findServer } from '../lib/upstreams/kinds.ts'
import type { Owner } from '../lib/upstreams/join.ts'
import { LIMITS } from '../schemas/common.ts'
import { createSignInCookie } from './account.ts'
import { watchConnection } from './connections.ts'
import { createBrowserCookies } from './known-browsers.ts'
import { findAskedLanguage } from './mail-language.ts'
import type { OidcMount } from './oidc.ts'
import { type SignInForm, type SignInForms, readField } from './sign-in-forms.ts'
import { REFUSALS, toPageError } from './upstream-errors.ts'
import { changesAccount, createUpstreamQuestions } from './upstream-questions.ts'

/** The redirect URI of an upstream. */
export const toRedirectUri = (issuer: URL, id: string): string => `${toIssuer(issuer)}/api/v1/auth/upstream/${id}/callback`

/** A sign-in that may go on with what another provider says. */
export interface UpstreamSignIn {
  form: SignInForm
  place: Place
  /** The page of the sign-in. */
  back: string
  /** The user who is signed in in this browser. */
  current?: string | undefined
  /** The same, where they are asked to prove again that it is them. */
  again?: string | undefined
  /** Answers when the session of this browser was renewed. Absent where none can be. */
  onRenewed?: () => Promise<unknown>
  /** Seconds since when a sign-in at the provider is enough for the app. Absent: it does not ask. */
  maxAge?: number | undefined
}

/** The page of a sign-in, for a person who comes back to it: an app that asks for a provider does not send them there again. */
export const toChoice = (page: string): string => `${page}${page.includes('?') ? '&' : '?'}way=password`

const toBack = ({ back, place }: UpstreamSignIn): string => 'uid' in place ? toChoice(back) : back

/** The part of a sign-in between the answer of another provider and its end, for apps and for the account pages. */
export function createUpstreamForms (app: FastifyInstance, { getIssuer, limits }: Pick<OidcMount, 'getIssuer' | 'limits'>, forms: SignInForms) {
  const { upstreams } = app.identity
  const questions = createUpstreamQuestions(app)
  const cookie = () => createSignInCookie(getIssuer())
  const browsers = createBrowserCookies(app.identity, getIssuer)

  /** The URL that begins a sign-in with an upstream. */
  function toStart (id: string, place: Place, maxAge?: number): string {
    const text = new URLSearchParams({ ...place as Record<string, string>, ...(maxAge !== undefined && { max_age: String(maxAge) }) }).toString()
    return `${toApiPath(getIssuer())}/auth/upstream/${id}${text === '' ? '' : `?${text}`}`
  }

  /** What this browser has proved in this sign-in, by an upstream that may be used for it. */
  async function findFound ({ found }: UpstreamService, request: FastifyRequest, { place }: UpstreamSignIn): Promise<{ secret: string, found: Found } | null> {
    const secret = cookie().find(request)
    const known = secret === undefined ? null : await found.find({ secret, place })
    return known && { secret: secret!, found: known }
  }

  const over = (back: string) => toPageError(new UpstreamError('over'), back)

  const toProven = (service: UpstreamService, { upstream, claimed, intent, settled }: Found, { form: { aim } }: UpstreamSignIn) => (
    { upstream: service.require(upstream, aim?.client_id), claimed, asked_at: claimed.asked_at ?? '', isAsked: service.asksToSignIn(intent), settled })

  /**
   * Requires that the provider has asked the person as recently as the app asks, whoever it says that they are.
   * @throws UpstreamError `stale`
   */
  function checkTime (request: FastifyRequest, { upstream, claimed: { at }, intent }: Found, { form: { aim } }: UpstreamSignIn, owner?: Owner): void {
    const { since } = aim ?? {}
    if (since === undefined) return
    const delay = at === undefined ? 0 : findDelay(at, since)
    if (delay > 0) request.log.warn(`the upstream ${upstream} has signed somebody in who did so ${delay} s earlier than the app allows; is its clock right?`)
    // Nothing else can say when a new person has signed in.
    const isUnknown = at === undefined && owner !== undefined && 'choose' in owner && !upstreams!.asksToSignIn(intent)
    if (delay > 0 || isUnknown) throw new UpstreamError('stale')
  }

  async function proceed (reply: FastifyReply, signIn: UpstreamSignIn, proven: ReturnType<typeof toProven>, proved: Proved): Promise<SignedIn | null> {
    const onRefused = (reason: Refusal) => {
      upstreams!.identities.recordFailure(proven, proved.user_id)
      return reason === 'ended' ? REFUSALS.unknown : undefined
    }
    return await forms.proceed(reply, { ...signIn.form, onRefused }, proved)
  }

  /** A sign-in of a person who proves again that it is them. */
  function requireRecent ({ form, ...signIn }: UpstreamSignIn): UpstreamSignIn {
    const { since = upstreams!.identities.findRecent() } = form.aim ?? {}
    return { ...signIn, form: { ...form, aim: { ...form.aim, since } } }
  }

  /** Makes the account of a new person, and goes on with its sign-in. */
  async function create (request: FastifyRequest, reply: FastifyReply, signIn: UpstreamSignIn, { secret, found }: { secret: string, found: Found }, account: string): Promise<SignedIn | null> {
    const language = findAskedLanguage(request, signIn.form.page.locales)
    const proven = toProven(upstreams!, found, signIn)
    const proved = await upstreams!.identities.create(proven, account, { ...(language !== undefined && { language }) })
    await upstreams!.found.remove({ secret, place: signIn.place })
    return await proceed(reply, signIn, proven, proved)
  }

  /**
   * Goes on with the answer of a provider. Null when it has sent a page.
   * @throws PageError
   */
  async function finish (request: FastifyRequest, reply: FastifyReply, signIn: UpstreamSignIn, hasAgreed = false): Promise<SignedIn | null> {
    const { place } = signIn
    const back = toBack(signIn)
    const known = upstreams && await findFound(upstreams, request, signIn)
    if (upstreams === undefined || known === undefined || known === null) throw over(back)
    const { secret, found } = known
    const of = { secret, place }
    let proven: ReturnType<typeof toProven> | undefined
    try {
      proven = toProven(upstreams, found, signIn)
      const { intent } = found
      if (intent.kind === 'renew') {
        await upstreams.found.remove(of)
        // Another person at the provider changes nobody's session.
        await (await upstreams.identities.renew(proven, intent) && signIn.onRenewed ? signIn.onRenewed() : reply.redirect(back, 303))
        return null
      }
      checkTime(request, found, signIn)
      const owner = await upstreams.identities.settle(proven)
      checkTime(request, found, signIn, owner)
      if (!hasAgreed && changesAccount(signIn, found, owner)) {
        const settled = 'proved' in owner && { settled: { user_id: owner.proved.user_id, epoch: owner.proved.user_epoch } }
        await upstreams.found.put(of, { ...found, isAsked: true, ...settled })
        await questions.askToSwitch(reply, signIn, found, cookie().begin(request, reply).xsrf)
        return null
      }
      if ('proved' in owner) {
        if (!await upstreams.found.remove(of)) throw new UpstreamError('over')
        if (owner.proved.user_id === signIn.again) {
          if (found.intent.kind !== 'sign_in' || found.intent.fresh !== true) {
            reply.redirect(back, 303)
            return null
          }
          if ((owner.proved.at ?? '') <= upstreams.identities.findRecent()) throw new UpstreamError('stale')
        }
        return await proceed(reply, owner.proved.user_id === signIn.again ? requireRecent(signIn) : signIn, proven, owner.proved)
      }
      if ('confirm' in owner) {
        await upstreams.found.put(of, { ...found, pending: owner.confirm.user_id, isOther: owner.confirm.isOther })
        reply.redirect(back, 303)
        return null
      }
      const suggested = found.suggested ?? owner.choose
      const { links: { terms, privacy } } = signIn.form.page.look
      // A person is asked once: any site may open the link of a sign-in, so no account is made without a click here.
      if (hasAgreed && found.claimed.address !== undefined && (terms ?? privacy) === undefined) return await create(request, reply, signIn, { secret, found }, suggested)
      await upstreams.found.put(of, { ...found, suggested })
      await questions.askForAccount(reply, signIn, { ...found, suggested }, cookie().begin(request, reply).xsrf)
      return null
    } catch (error) {
      if (error instanceof UpstreamError) {
        await upstreams.found.remove(of)
        if (proven !== undefined && error.refusal !== 'over') upstreams.identities.recordFailure(proven)
      }
      throw toPageError(error, back)
    }
  }

  return {
    isOn: upstreams !== undefined,

    /** The URL that begins the sign-in with the upstream that the app asks for, unless the person has come back from there. */
    findAsked ({ query }: FastifyRequest, { upstream, uid, clientId, stepUp, freshness }: Interaction): string | undefined {
      if (upstream === undefined || stepUp !== undefined || Object.keys(query as object).length > 0) return undefined
      return upstreams?.list(clientId).some(({ id }) => id === upstream) === true ? toStart(upstream, { uid }, freshness?.maxAge) : undefined
    },

    /** The form with the links to other providers, and with the account that an identity waits for. */
    async extend (request: FastifyRequest, signIn: UpstreamSignIn): Promise<SignInForm> {
      const { form, place } = signIn
      if (upstreams === undefined || (form.aim?.base !== undefined)) return form
      const pending = (await findFound(upstreams, request, signIn))?.found
      if (pending?.pending === undefined) {
        const list = upstreams.list(form.aim?.client_id)
        const isAgain = signIn.again !== undefined
        const formTo = isAgain ? list.map(({ id }) => findServer(upstreams.require(id))) : []
        return { ...form, view: { ...form.view, upstreams: isAgain ? list : list.map((one) => ({ ...one, to: toStart(one.id, place, signIn.maxAge) })) }, page: { ...form.page, formTo } }
      }
      const name = upstreams.list().find(({ id }) => id === pending.upstream)?.name ?? pending.upstream
      return { ...form, view: { ...form.view, notice: ({ upstreams: texts }) => (pending.isOther === true ? texts.confirmOther : texts.confirm)({ name }) } }
    },

    /**
     * Sends a person who is signed in to a provider, where they prove again that it is them. Null unless the form asks for it. The caller
     * has checked that the form is one of theirs.
     * @throws PageError
     */
    async prove (request: FastifyRequest, reply: FastifyReply, signIn: UpstreamSignIn): Promise<FastifyReply | null> {
      const { form, place } = signIn
      const id = readField(request, 'upstream')
      if (upstreams === undefined || id === '') return null
      try {
        upstreams.require(id, form.aim?.client_id)
        const { secret } = cookie().begin(request, reply)
        const to = await upstreams.begin(id, { secret, redirectUri: toRedirectUri(getIssuer(), id), intent: { kind: 'sign_in', place, fresh: true }, maxAge: signIn.maxAge, turn: browsers.toTurn(request) })
        return reply.headers(pageHeaders({ look: form.page.look })).redirect(to, 303)
      } catch (error) {
        throw toPageError(error, toBack(signIn))
      }
    },

    /**
     * Sends a browser to the provider, which answers without a page whether it still knows the person: once a session and ten minutes. Null
     * where there is nothing to renew, or it was tried.
     * @throws PageError while the provider is down
     */
    async renew (request: FastifyRequest, reply: FastifyReply, place: SignInPlace, renewal: Renewal | undefined, page: { back: string, look: Look }): Promise<FastifyReply | null> {
      if (upstreams === undefined || renewal === undefined) return null
      const { session, user_id, way, upstream, hint } = renewal
      if (!answersSilently(upstreams.require(upstream)) || !await upstreams.mayRenew(session)) return null
      try {
        const { secret } = cookie().begin(request, reply)
        const to = await upstreams.begin(upstream, { secret, redirectUri: toRedirectUri(getIssuer(), upstream), intent: { kind: 'renew', place, user_id, way }, turn: toTurn({ user_id, signal: watchConnection(request) }), hint })
        return reply.headers(pageHeaders({ look: page.look })).redirect(to, 303)
      } catch (error) {
        throw toPageError(error, page.back)
      }
    },

    finish: async (request: FastifyRequest, reply: FastifyReply, signIn: UpstreamSignIn): Promise<SignedIn | null> => await finish(request, reply, signIn),

    /** Goes on after the question for an account, or whether to change it. Null when it has sent a page. @throws PageError */
    async choose (request: FastifyRequest, reply: FastifyReply, signIn: UpstreamSignIn): Promise<SignedIn | null> {
      const { place } = signIn
      const back = toBack(signIn)
      const { xsrf } = cookie().resume(request)
      const known = upstreams && await findFound(upstreams, request, signIn)
      if (upstreams === undefined || known === undefined || known === null || (known.found.suggested === undefined && known.found.isAsked !== true)) throw over(back)
      const { secret, found } = known
      if (readField(request, 'cancel') !== '') {
        await upstreams.found.remove({ secret, place })
        reply.redirect(back, 303)
        return null
      }
      await limits.guess(request)
      if (found.suggested === undefined) return await finish(request, reply, signIn, true)
      const typed = readField(request, 'account').trim().slice(0, LIMITS.account)
      try {
        checkTime(request, found, signIn, { choose: typed })
        return await create(request, reply, signIn, known, found.claimed.address ?? typed)
      } catch (error) {
        if (!(error instanceof IdentityError) || error.code !== 'ErrParam') throw toPageError(error, back)
        await questions.askForAccount(reply.code(400), signIn, found, xsrf, ({ upstreams: { choose } }) => choose.taken, typed)
        return null
      }
    },

    /**
     * Links the identity that waits in this browser to the account that the person has just signed in to.
     * @throws PageError where it has become another account's meanwhile
     */
    async complete (request: FastifyRequest, signIn: UpstreamSignIn, { user_id, user_epoch: epoch, proofs }: SignedIn): Promise<void> {
      const known = upstreams && await findFound(upstreams, request, signIn)
      if (upstreams === undefined || known === undefined || known === null) return
      const { secret, found } = known
      if (!await upstreams.found.remove({ secret, place: signIn.place }) || found.pending !== user_id) return
      try {
        await upstreams.identities.confirm(toProven(upstreams, found, signIn), { user_id, epoch, proofs })
      } catch (error) {
        throw toPageError(error, toBack(signIn))
      }
    }
  }
}

export type UpstreamForms = ReturnType<typeof createUpstreamForms>
