import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { IdentityError } from '../lib/errors.ts'
import type { Login } from '../lib/oidc/contract.ts'
import type { FactorKind, StepView } from '../lib/pages/contract.ts'
import type { PasskeyView } from '../lib/pages/script.ts'
import type { Message } from '../lib/pages/texts/en.ts'
import { toQrCode } from '../lib/qr.ts'
import type { Located, Outcome, SignInRequest, SignedIn } from '../lib/sign-in/sign-ins.ts'
import type { Proved } from '../lib/proofs.ts'
import type { Refusal } from '../lib/sign-in/steps/step.ts'
import { LIMITS } from '../schemas/common.ts'
import { rememberLanguage } from './mail-language.ts'
import { createBrowserCookies } from './known-browsers.ts'
import { type PageOptions, PageError, describeLimit, sendPage } from './pages.ts'
import type { SignInLimits } from './sign-in-limit.ts'
import { toAnonymousTurn } from './turns.ts'
import { readForm } from './utf8.ts'
import { readParameter } from './parameters.ts'

/** Bytes: enough for an account and a password, percent-encoded. */
const FORM_LIMIT = 16 * 1024

/** The text for each refusal of a step. */
const REFUSALS: Record<Refusal, Message> = {
  'wrong-password': ({ errors }) => errors.wrongPassword,
  'wrong-code': ({ errors }) => errors.wrongCode,
  'wrong-passkey': ({ errors }) => errors.wrongPasskey,
  'too-many': ({ errors }) => errors.tooManyCodes,
  ended: ({ errors }) => errors.signInChanged,
  missing: ({ errors }) => errors.factorMissing,
  only: ({ errors }) => errors.refused,
  stale: ({ errors }) => errors.undated
}

/** Makes this scope parse the forms of pages, and no other bodies. */
export function parseForms (app: FastifyInstance, bodyLimit = FORM_LIMIT): void {
  app.removeAllContentTypeParsers()
  const options = { parseAs: 'buffer', bodyLimit } as const
  app.addContentTypeParser('application/x-www-form-urlencoded', options, async (_request: FastifyRequest, body: Buffer) => await readForm(body))
}

/** The fields of a form; none without a body. */
export function readFields (request: FastifyRequest): URLSearchParams {
  return request.body instanceof URLSearchParams ? request.body : new URLSearchParams()
}

/** A field of a form; the first one if the name repeats, and '' if it is missing. */
export function readField (request: FastifyRequest, name: string): string {
  return readFields(request).get(name) ?? ''
}

/** Refuses forms from other sites by the Origin header (RFC 6454), for browsers that ignore SameSite on cookies. */
export function checkOrigin (request: FastifyRequest, issuer: URL): void {
  const { origin, 'sec-fetch-site': site } = request.headers
  if (origin !== undefined ? origin !== issuer.origin : site !== undefined && site !== 'same-origin') {
    throw new PageError('ErrPerm', 'the form was sent from another site', ({ errors }) => errors.otherSite)
  }
}

/** A sign-in that a page is part of. */
export interface SignInForm {
  /** Identifies the sign-in. Only its browser has it. */
  secret: string
  view: Omit<StepView, 'error'>
  page: PageOptions
  /** What it is for, and what the browser's session has proved before. */
  asked?: Omit<SignInRequest, 'choice'>
  /** Answers when the user cannot prove as much as the app asks for. Absent where nothing is asked for. */
  onUnmet?: () => Promise<unknown>
  /** Called when a user may not sign in whom another provider has named. Gives the text, if it is another one than that of the reason. */
  onRefused?: (reason: Refusal) => Message | undefined
}

/** The field, or the query parameter, with the kind of proof that the person has chosen. */
const CHOICE = 'way'

const isLimit = (error: unknown): error is IdentityError => error instanceof IdentityError && error.code === 'ErrLimit'

const isFactorKind = (kind: string): kind is FactorKind => kind === 'totp' || kind === 'passkey'

/** The login of a browser, for the authorization server. */
export function toLogin ({ user_id: accountId, user_epoch, proofs }: Pick<SignedIn, 'user_id' | 'user_epoch' | 'proofs'>): Login {
  return { accountId, user_epoch, proofs }
}

/** Shows and verifies the steps of a sign-in, for an app or for the account pages. */
export function createSignInForms ({ identity }: FastifyInstance, limits: SignInLimits, getIssuer: () => URL) {
  const { signIns, users, passkeys, upstreams } = identity
  const browsers = createBrowserCookies(identity, getIssuer)

  /** The text for a person who signs in with one provider only. Its link is on the page. */
  const describeOnly = (id: string): Message => {
    const name = upstreams?.list().find((one) => one.id === id)?.name ?? id
    return ({ upstreams: texts }) => texts.only({ name })
  }

  async function show (
    reply: FastifyReply, located: Located, { view, page, secret }: SignInForm, more: Pick<StepView, 'account' | 'error' | 'signals'> = {}
  ): Promise<FastifyReply> {
    const { step, others, progress, view: found } = located
    const passkey = await offerPasskey(located, secret)
    const shown = { ...view, ...more, passkey }
    const isUnverified = progress?.proofs.some(({ kind }) => kind === 'passkey') === true
    if (step.page === 'sign-in') return await sendPage(reply, step.page, { ...shown, unverified: isUnverified }, page)
    if (step.page === 'enrol') {
      const enrolling = found?.at === 'app' ? { ...found, qr: await toQrCode(found.uri) } : found ?? { at: 'why' as const }
      const kind = isFactorKind(step.kind) ? step.kind : 'recovery'
      const choices = enrolling.at === 'why' ? { others: others.filter(isFactorKind), passkey } : {}
      return await sendPage(reply, step.page, { ...view, ...more, kind, view: enrolling, ...choices }, page)
    }
    const kind = isFactorKind(step.kind) ? step.kind : 'recovery'
    return await sendPage(reply, step.page, { ...shown, kind, others }, page)
  }

  /** What the page of a step does with passkeys: the sign-in page offers them beside the password. */
  async function offerPasskey ({ step, others, progress, view = { at: 'why' } }: Located, secret: string): Promise<PasskeyView | undefined> {
    if (passkeys.party === undefined) return undefined
    if (step.page === 'enrol') {
      const isAsked = step.kind === 'passkey' && view?.at === 'why'
      const options = isAsked && progress !== null ? await passkeys.askNewOf(progress.user_id, secret) : null
      return options === null ? undefined : { mode: 'create', options }
    }
    if (step.page === 'second-step') {
      return step.kind === 'passkey' ? { mode: 'get', options: await passkeys.ask('second', secret, progress?.user_id ?? '') } : undefined
    }
    const isOffered = step.kind === 'passkey' || others.includes('passkey')
    return isOffered ? { mode: 'get', conditional: true, options: await passkeys.ask('begin', secret) } : undefined
  }

  /** Sends the page that an outcome leads to. Null when it has; the result when the sign-in is over. */
  async function answer (reply: FastifyReply, outcome: Outcome, form: SignInForm): Promise<SignedIn | null> {
    if ('done' in outcome) return outcome.done
    if ('unmet' in outcome) await form.onUnmet?.()
    else if ('next' in outcome) await show(reply, outcome.next, form)
    else {
      const { reason, ...refused } = outcome.refused
      const { account, unknown: credentialId } = refused
      const signals = credentialId === undefined ? {} : { signals: { signalUnknownCredential: { rpId: passkeys.party?.id, credentialId } } }
      const error = form.onRefused?.(reason) ?? (reason === 'only' ? describeOnly(refused.upstream ?? '') : REFUSALS[reason])
      await show(reply.code(400), outcome.again, form, { ...(account === undefined ? {} : { account }), ...signals, error })
    }
    return null
  }

  return {
    /** Sends the page of the step that the browser is at, or of the alternative that the person has chosen. */
    async show (request: FastifyRequest, reply: FastifyReply, form: SignInForm): Promise<FastifyReply> {
      const choice = readParameter(request, CHOICE)
      const located = await signIns.find(form.secret, { ...form.asked, choice: typeof choice === 'string' ? choice : undefined })
      return await show(reply, located, form)
    },

    /** Verifies the submitted form. Null when it has sent a page: the next step, or the same step with an error. */
    async submit (request: FastifyRequest, reply: FastifyReply, form: SignInForm): Promise<SignedIn | null> {
      const attempt = {
        form: readFields(request),
        turn: toAnonymousTurn(request),
        limit: async (account: string) => {
          const known = browsers.find(request, account)
          await limits.guess(request, account, known).catch((error: unknown) => {
            // Names that nobody can type are those of later steps, and of passkeys.
            if (isLimit(error) && !account.startsWith(' ')) users.recordLimited(account, known)
            throw error
          })
          return known
        }
      }
      const asked = { ...form.asked, choice: readField(request, CHOICE) || undefined }
      try {
        const result = await answer(reply, await signIns.submit(form.secret, attempt, asked), form)
        if (result === null) return null
        const { user_id, user_epoch: epoch, account, proofs } = result
        await rememberLanguage(request, user_id, form.page.locales)
        // The password was typed in this sign-in.
        if (account !== '' && proofs.length > 1) await users.succeed({ user_id, epoch }, browsers.find(request, account))
        return result
      } catch (error) {
        if (!isLimit(error)) throw error
        const account = readField(request, 'account').trim().slice(0, LIMITS.account)
        await show(reply.code(429).headers(error.headers), await signIns.find(form.secret, asked), form, { account, error: describeLimit(error) })
      }
      return null
    },

    /** Goes on after the steps that a link has proved. Null when it has sent the page of the next step. */
    async proceed (reply: FastifyReply, form: SignInForm, proved: Proved): Promise<SignedIn | null> {
      return await answer(reply, await signIns.proceed(form.secret, proved, form.asked), form)
    },

    cancel: signIns.cancel
  }
}

export type SignInForms = ReturnType<typeof createSignInForms>
