import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { IdentityError } from '../lib/errors.ts'
import type { StepView } from '../lib/pages/contract.ts'
import type { Message } from '../lib/pages/texts/en.ts'
import type { Progress, Refusal, Step } from '../lib/sign-in/steps/step.ts'
import { LIMITS } from '../schemas/common.ts'
import { rememberLanguage } from './mail-language.ts'
import { createBrowserCookies } from './known-browsers.ts'
import { type PageOptions, PageError, describeLimit, sendPage } from './pages.ts'
import type { SignInLimits } from './sign-in-limit.ts'
import { toAnonymousTurn } from './turns.ts'
import { readForm } from './utf8.ts'

/** Bytes: enough for an account and a password, percent-encoded. */
const FORM_LIMIT = 16 * 1024

/** The text for each refusal of a step. */
const REFUSALS: Record<Refusal, Message> = {
  'wrong-password': ({ errors }) => errors.wrongPassword
}

/** Makes this scope parse the forms of pages, and no other bodies. */
export function parseForms (app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'buffer', bodyLimit: FORM_LIMIT }, async (_request: FastifyRequest, body: Buffer) => await readForm(body))
}

/** The fields of a form; none without a body. */
export function readFields (request: FastifyRequest): URLSearchParams {
  return request.body as URLSearchParams | undefined ?? new URLSearchParams()
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
}

/** Shows and verifies the steps of a sign-in, for an app or for the account pages. */
export function createSignInForms ({ identity: { signIns, knownBrowsers } }: FastifyInstance, limits: SignInLimits, getIssuer: () => URL) {
  const browsers = createBrowserCookies(knownBrowsers, getIssuer)

  async function show (reply: FastifyReply, step: Step, { view, page }: SignInForm, more: Pick<StepView, 'account' | 'error'> = {}): Promise<FastifyReply> {
    return await sendPage(reply, step.page, { ...view, ...more }, page)
  }

  return {
    /** Sends the page of the step that the browser is at. */
    async show (reply: FastifyReply, form: SignInForm): Promise<FastifyReply> {
      return await show(reply, await signIns.find(form.secret), form)
    },

    /** Verifies the submitted form. Null when it has sent a page: the next step, or the same step with an error. */
    async submit (request: FastifyRequest, reply: FastifyReply, form: SignInForm): Promise<Progress | null> {
      const attempt = {
        form: readFields(request),
        turn: toAnonymousTurn(request),
        limit: async (account: string) => {
          const known = browsers.find(request, account)
          await limits.guess(request, account, known)
          return known
        }
      }
      try {
        const outcome = await signIns.submit(form.secret, attempt)
        if ('done' in outcome) {
          const { user_id, user_epoch: epoch } = outcome.done
          await rememberLanguage(request, user_id, form.page.locales)
          browsers.remember(request, reply, readField(request, 'account').trim(), { user_id, epoch })
          return outcome.done
        }
        if ('next' in outcome) await show(reply, outcome.next, form)
        else {
          const { reason, ...filledIn } = outcome.refused
          await show(reply.code(400), outcome.again, form, { ...filledIn, error: REFUSALS[reason] })
        }
      } catch (error) {
        if (!(error instanceof IdentityError) || error.code !== 'ErrLimit') throw error
        const account = readField(request, 'account').trim().slice(0, LIMITS.account)
        await show(reply.code(429).headers(error.headers), await signIns.find(form.secret), form, { account, error: describeLimit(error) })
      }
      return null
    },

    /** Goes on after the steps that a link has proved. Null when it has sent the page of the next step. */
    async proceed (reply: FastifyReply, form: SignInForm, proved: Progress): Promise<Progress | null> {
      const outcome = await signIns.proceed(form.secret, proved)
      if ('done' in outcome) return outcome.done
      await show(reply, outcome.next, form)
      return null
    },

    cancel: signIns.cancel
  }
}
