import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { IdentityError } from '../lib/errors.ts'
import { nameClient } from '../lib/events/origin.ts'
import type { Proved } from '../lib/proofs.ts'
import type { SignedIn } from '../lib/sign-in/sign-ins.ts'
import { findDelay } from '../lib/sign-in/freshness.ts'
import type { Refusal } from '../lib/sign-in/steps/step.ts'
import { UpstreamError } from '../lib/upstreams/failure.ts'
import type { Found } from '../lib/upstreams/found.ts'
import type { UpstreamService } from '../lib/upstreams/index.ts'
import type { Owner } from '../lib/upstreams/join.ts'
import type { Proven } from '../lib/upstreams/linking.ts'
import { LIMITS } from '../schemas/common.ts'
import { createSignInCookie } from './account.ts'
import { findAskedLanguage } from './mail-language.ts'
import type { OidcMount } from './oidc-mount.ts'
import { type SignInForms, readField } from './sign-in-forms.ts'
import { REFUSALS, toPageError } from './upstream-errors.ts'
import { changesAccount, createUpstreamQuestions } from './upstream-questions.ts'
import { type UpstreamSignIn, toBack } from './upstream-sign-in.ts'

/** What a browser has proved in a sign-in by an upstream that may be used for it, and the secret of the sign-in. */
interface Known { secret: string, found: Found }

/** A request that goes on with it. */
interface Answer extends Known {
  request: FastifyRequest
  reply: FastifyReply
  signIn: UpstreamSignIn
}

export const over = (signIn: UpstreamSignIn): unknown => toPageError(new UpstreamError('over'), toBack(signIn))

/** Reads and judges what browsers have proved. */
function createProofs (upstreams: UpstreamService, cookie: () => ReturnType<typeof createSignInCookie>) {
  async function findKnown (request: FastifyRequest, { place }: UpstreamSignIn): Promise<Known | null> {
    const secret = cookie().find(request)
    if (secret === undefined) return null
    const found = await upstreams.found.find({ secret, place })
    return found && { secret, found }
  }

  const toProven = ({ upstream, claimed, intent, settled }: Found, { form: { asked } }: UpstreamSignIn): Proven => (
    { upstream: upstreams.require(upstream, asked?.client_id), claimed, asked_at: claimed.asked_at ?? '', isAsked: upstreams.asksToSignIn(intent), settled })

  /**
   * Requires that the provider has asked the person as recently as the app asks, whoever it says that they are.
   * @throws UpstreamError `stale`
   */
  function checkTime ({ request, found, signIn }: Answer, owner?: Owner): void {
    const { since } = signIn.form.asked ?? {}
    if (since === undefined) return
    const { upstream, claimed: { at }, intent } = found
    const delay = at === undefined ? 0 : findDelay(at, since)
    if (delay > 0) request.log.warn(`the upstream ${upstream} has signed somebody in who did so ${delay} s earlier than the app allows; is its clock right?`)
    // Nothing else can say when a new person has signed in.
    const isUnknown = at === undefined && owner !== undefined && 'choose' in owner && !upstreams.asksToSignIn(intent)
    if (delay > 0 || isUnknown) throw new UpstreamError('stale')
  }

  return { findKnown, toProven, checkTime }
}

/** Goes on with the sign-in of a person whom an answer has identified. */
function createEntries (upstreams: UpstreamService, forms: SignInForms, { toProven }: Pick<ReturnType<typeof createProofs>, 'toProven'>) {
  async function proceed (reply: FastifyReply, { form }: UpstreamSignIn, proved: Proved): Promise<SignedIn | null> {
    const onRefused = (reason: Refusal) => reason === 'ended' ? REFUSALS.unknown : undefined
    return await forms.proceed(reply, { ...form, onRefused }, proved)
  }

  /** A sign-in of a person who proves again that it is them. */
  function requireRecent ({ form, ...signIn }: UpstreamSignIn): UpstreamSignIn {
    const { since = upstreams.identities.findRecent() } = form.asked ?? {}
    return { ...signIn, form: { ...form, asked: { ...form.asked, since } } }
  }

  /** Makes the account of a new person, and goes on with its sign-in. */
  async function create ({ request, reply, signIn, secret, found }: Answer, account: string): Promise<SignedIn | null> {
    const language = findAskedLanguage(request, signIn.form.page.locales)
    const proven = toProven(found, signIn)
    const proved = await upstreams.identities.create(proven, account, { language })
    await upstreams.found.remove({ secret, place: signIn.place })
    return await proceed(reply, signIn, proved)
  }

  /** Goes on with the sign-in of a person whose identity it is. */
  async function enter ({ reply, signIn, secret, found }: Answer, proved: Proved): Promise<SignedIn | null> {
    if (!await upstreams.found.remove({ secret, place: signIn.place })) throw new UpstreamError('over')
    if (proved.user_id !== signIn.again) return await proceed(reply, signIn, proved)
    if (found.intent.kind !== 'sign_in' || found.intent.fresh !== true) {
      reply.redirect(toBack(signIn), 303)
      return null
    }
    if ((proved.at ?? '') <= upstreams.identities.findRecent()) throw new UpstreamError('stale')
    return await proceed(reply, requireRecent(signIn), proved)
  }

  return { create, enter }
}

/** Goes on with the answers of other providers, up to the end of the sign-in. */
export function createUpstreamAnswers (
  app: FastifyInstance, upstreams: UpstreamService, { getIssuer, limits }: Pick<OidcMount, 'getIssuer' | 'limits'>, forms: SignInForms
) {
  const questions = createUpstreamQuestions(app, upstreams)
  const cookie = () => createSignInCookie(getIssuer())
  const proofs = createProofs(upstreams, cookie)
  const { findKnown, toProven, checkTime } = proofs
  const { create, enter } = createEntries(upstreams, forms, proofs)

  /** Goes on with a person for whom there is no account. */
  async function meet (answer: Answer, choice: string, hasAgreed: boolean): Promise<SignedIn | null> {
    const { request, reply, signIn, secret, found } = answer
    const { suggested = choice } = found
    const { links: { terms, privacy } } = signIn.form.page.look
    // A person is asked once: any site may open the link of a sign-in, so no account is made without a click here.
    if (hasAgreed && found.claimed.address !== undefined && (terms ?? privacy) === undefined) return await create(answer, suggested)
    await upstreams.found.put({ secret, place: signIn.place }, { ...found, suggested })
    await questions.askForAccount(reply, signIn, { ...found, suggested }, cookie().begin(request, reply).xsrf)
    return null
  }

  /** Asks whether the browser changes to another account, with which the answer goes on. */
  async function askToSwitch ({ request, reply, signIn, secret, found }: Answer, owner: Owner): Promise<void> {
    const asked = { ...found, isAsked: true }
    const settled = 'proved' in owner ? { user_id: owner.proved.user_id, epoch: owner.proved.user_epoch } : found.settled
    await upstreams.found.put({ secret, place: signIn.place }, settled === undefined ? asked : { ...asked, settled })
    await questions.askToSwitch(reply, signIn, found, cookie().begin(request, reply).xsrf)
  }

  /** What becomes of an answer. Null when a page was sent. */
  async function settle (answer: Answer, proven: Proven, hasAgreed: boolean): Promise<SignedIn | null> {
    const { reply, signIn, secret, found } = answer
    const of = { secret, place: signIn.place }
    const { intent } = found
    if (intent.kind === 'renew') {
      await upstreams.found.remove(of)
      // If the provider has named another person, the session stays as it is.
      await (await upstreams.identities.renew(proven, intent) && signIn.onRenewed ? signIn.onRenewed() : reply.redirect(toBack(signIn), 303))
      return null
    }
    checkTime(answer)
    const owner = await upstreams.identities.settle(proven)
    checkTime(answer, owner)
    if (!hasAgreed && changesAccount(signIn, found, owner)) {
      await askToSwitch(answer, owner)
      return null
    }
    if ('proved' in owner) return await enter(answer, owner.proved)
    if ('choose' in owner) return await meet(answer, owner.choose, hasAgreed)
    await upstreams.found.put(of, { ...found, pending: owner.confirm.user_id, isOther: owner.confirm.isOther })
    reply.redirect(toBack(signIn), 303)
    return null
  }

  /**
   * Goes on with the answer of a provider. Null when it has sent a page.
   * @throws PageError
   */
  async function finish (request: FastifyRequest, reply: FastifyReply, signIn: UpstreamSignIn, hasAgreed = false): Promise<SignedIn | null> {
    const known = await findKnown(request, signIn)
    if (known === null) throw over(signIn)
    let proven: Proven | undefined
    try {
      proven = toProven(known.found, signIn)
      return await settle({ ...known, request, reply, signIn }, proven, hasAgreed)
    } catch (error) {
      if (error instanceof UpstreamError) {
        await upstreams.found.remove({ secret: known.secret, place: signIn.place })
        nameClient(signIn.form.asked?.client_id)
        if (proven !== undefined) upstreams.identities.recordFailure(proven, error.refusal)
        else if (error.refusal === 'off') upstreams.identities.recordNobody(known.found.upstream, error.refusal)
      }
      throw toPageError(error, toBack(signIn))
    }
  }

  return {
    /** What this browser has proved in this sign-in. */
    async findFound (request: FastifyRequest, signIn: UpstreamSignIn): Promise<Found | undefined> {
      return (await findKnown(request, signIn))?.found
    },

    finish: async (request: FastifyRequest, reply: FastifyReply, signIn: UpstreamSignIn): Promise<SignedIn | null> => await finish(request, reply, signIn),

    /** Goes on after the question for an account, or whether to change it. Null when it has sent a page. @throws PageError */
    async choose (request: FastifyRequest, reply: FastifyReply, signIn: UpstreamSignIn): Promise<SignedIn | null> {
      const { xsrf } = cookie().resume(request)
      const known = await findKnown(request, signIn)
      if (known === null || (known.found.suggested === undefined && known.found.isAsked !== true)) throw over(signIn)
      const { secret, found } = known
      if (readField(request, 'cancel') !== '') {
        await upstreams.found.remove({ secret, place: signIn.place })
        reply.redirect(toBack(signIn), 303)
        return null
      }
      await limits.guess(request)
      if (found.suggested === undefined) return await finish(request, reply, signIn, true)
      const typed = readField(request, 'account').trim().slice(0, LIMITS.account)
      const answer = { ...known, request, reply, signIn }
      try {
        checkTime(answer, { choose: typed })
        return await create(answer, found.claimed.address ?? typed)
      } catch (error) {
        if (!(error instanceof IdentityError) || error.code !== 'ErrParam') throw toPageError(error, toBack(signIn))
        await questions.askForAccount(reply.code(400), signIn, found, xsrf, ({ upstreams: { choose } }) => choose.taken, typed)
        return null
      }
    },

    /**
     * Links the identity that waits in this browser to the account that the person has just signed in to.
     * @throws PageError where it has become another account's meanwhile
     */
    async complete (request: FastifyRequest, signIn: UpstreamSignIn, { user_id, user_epoch: epoch, proofs }: SignedIn): Promise<void> {
      const known = await findKnown(request, signIn)
      if (known === null) return
      const { secret, found } = known
      if (!await upstreams.found.remove({ secret, place: signIn.place }) || found.pending !== user_id) return
      try {
        await upstreams.identities.confirm(toProven(found, signIn), { user_id, epoch, proofs })
      } catch (error) {
        throw toPageError(error, toBack(signIn))
      }
    }
  }
}

export type UpstreamAnswers = ReturnType<typeof createUpstreamAnswers>
