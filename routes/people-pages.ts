import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Accounts, Asker } from '../lib/accounts/index.ts'
import { EARLIER_UNDO_PATHS, PAGE_PATHS } from '../lib/accounts/links.ts'
import type { PasswordPurpose, PasswordSet } from '../lib/accounts/password.ts'
import type { ShownWay } from '../lib/accounts/undo.ts'
import type { Clock } from '../lib/clock.ts'
import { countCharacters } from '../lib/checks.ts'
import { IdentityError } from '../lib/errors.ts'
import type { WayView } from '../lib/pages/contract.ts'
import type { Pages } from '../lib/pages/index.ts'
import type { Message } from '../lib/pages/texts/en.ts'
import type { Proved } from '../lib/proofs.ts'
import type { ReturnToLink } from '../lib/upstreams/index.ts'
import { LIMITS } from '../schemas/common.ts'
import { toIdentityError } from '../plugins/errors.ts'
import { logFailure } from '../plugins/failure-log.ts'
import { answerRepeats } from '../plugins/form-repeats.ts'
import { keepLanguage } from '../plugins/language.ts'
import { findAskedLanguage } from '../plugins/mail-language.ts'
import type { OidcMount } from '../plugins/oidc-mount.ts'
import { FINISHES, PageError, type PageOptions, createPageError, describeLimit, describePassword, sendPage } from '../plugins/pages.ts'
import { checkOrigin, parseForms, readField } from '../plugins/sign-in-forms.ts'
import { type LinkSignIn, createLinkSignIn } from '../plugins/link-sign-in.ts'
import { toAnonymousTurn } from '../plugins/turns.ts'
import { createUpstreamLinks } from '../plugins/upstream-links.ts'
import { createUsedLinks } from '../plugins/used-links.ts'
import { readParameter } from '../plugins/parameters.ts'

const schema = { hide: true }

type Route = { Querystring: { token?: string } }

export interface PeopleMount extends OidcMount {
  /** The path of these pages as browsers see it. */
  getPath: () => string
  /** The option passwordMin. */
  passwordMin: number
  now: Clock
}

export function readToken (request: FastifyRequest): string {
  return String(readParameter(request, 'token') ?? '').slice(0, LIMITS.token)
}

/** The asker of a mail that is requested on a page. */
export function toAsker (request: FastifyRequest, locales?: string): Asker {
  return { ip: request.ip, language: findAskedLanguage(request, locales) }
}

/** Called after a link has been spent. It answers the request, or resolves to null for the default page. */
type AfterProof = (request: FastifyRequest, reply: FastifyReply, proved: Proved) => Promise<FastifyReply | null>

/** Why the form of a link was refused, in the reader's language. Undefined for an error that the form cannot answer. */
function describeRefusal (error: IdentityError, min: number): Message | undefined {
  if (error instanceof PageError) return error.text
  if (error.code === 'ErrLimit') return describeLimit(error)
  if (error.code === 'ErrBusy') return ({ errors }) => errors.ourSide
  return describePassword(error, min)
}

/** The URL of the page that undoes something by this link. */
const toUndo = (path: string, token: string): string => `${path}${PAGE_PATHS.undo}?${new URLSearchParams({ token }).toString()}`

/** Names the upstreams of ways in. */
const createWayNames = ({ identity: { upstreams } }: FastifyInstance) => ({ upstream, ...way }: ShownWay): WayView => (
  { ...way, name: upstream && (upstreams?.list().find(({ id }) => id === upstream)?.name ?? upstream) })

/** The page of a form for a password. */
export interface PasswordPage {
  action: string
  /** Of a link that another provider may complete: where its answer leads. */
  place?: ReturnToLink
  /** Finds the sign-in to an app that the page is part of: the app, the page that asks for another link, and the settings of its pages. */
  find?: () => Promise<{ client_id: string, ask: string, page: PageOptions } | undefined>
  /** What the links of this path are for. */
  purpose: PasswordPurpose
  /** The sign-in that follows. Absent: there is none. */
  signIn?: LinkSignIn | undefined
}

/** The form that sets a password by a link: on the paths of the links, and in a sign-in that includes a sign-up. */
export function createPasswordForm (app: FastifyInstance, mount: PeopleMount) {
  const { accounts } = app.identity
  const { getIssuer, getPath, look, limits, passwordMin } = mount
  const toGone = createUsedLinks(app, mount)
  const nameWay = createWayNames(app)
  const page = { look }
  const links = createUpstreamLinks(app, mount)

  const gone = async (error: unknown, { purpose, find }: PasswordPage) => toGone(error, purpose, (await find?.())?.ask)

  async function show (request: FastifyRequest, reply: FastifyReply, path: PasswordPage, token: string, error?: Message): Promise<FastifyReply> {
    const link = await accounts.inspectLink(token, [path.purpose]).catch(async (thrown) => { throw await gone(thrown, path) })
    const { purpose, account, endingTokens } = link
    const { action } = path
    const found = await path.find?.()
    const offer = path.place && links.offer(link, found?.client_id)
    const begun = await path.signIn?.begin(request, reply, account)
    const view = { action, token, purpose, account, endingTokens, min: passwordMin, ...offer?.view, ...begun, error }
    return await sendPage(reply, 'set-password', view, { ...page, ...found?.page, ...offer?.page, query: { token } })
  }

  /** Answers after the password was set. What fails from here on takes nothing of that back, so the page says only that it is set. */
  async function confirm (
    request: FastifyRequest, reply: FastifyReply, set: PasswordSet, enter: Awaited<ReturnType<LinkSignIn['prepare']>> | undefined
  ): Promise<FastifyReply> {
    const what = set.purpose === 'reset' ? 'password' : 'account'
    const view: Pages['link-done'] = { what }
    try {
      Object.assign(view, await enter?.(set))
      if (reply.sent) return reply
      view.to = await accounts.findReturn(set)
      const { stays, token: undo } = await accounts.reviewWays(set.user_id, set.mailbox)
      view.review = { stays: stays.map(nameWay), undo: undo && toUndo(getPath(), undo) }
    } catch (error) {
      if (reply.sent) return reply
      logFailure(request, toIdentityError(error))
    }
    return await sendPage(reply, 'link-done', view, page)
  }

  return {
    /** Shows the form without spending the link. */
    show: async (request: FastifyRequest, reply: FastifyReply, path: PasswordPage) => await show(request, reply, path, readToken(request)),

    /** Sets the password. The sign-in that follows may answer the request; otherwise a page confirms the change. */
    async submit (request: FastifyRequest, reply: FastifyReply, path: PasswordPage): Promise<FastifyReply> {
      checkOrigin(request, getIssuer())
      const [token, password] = [readField(request, 'token').slice(0, LIMITS.token), readField(request, 'password')]
      try {
        await limits.guess(request)
        if (path.place !== undefined && readField(request, 'upstream') !== '') {
          return await links.begin(request, reply, path.place, await accounts.inspectLink(token, [path.purpose])) ?? await show(request, reply, path, token)
        }
        if (countCharacters(password) > LIMITS.password) throw new IdentityError('ErrParam', `password: must have at most ${LIMITS.password} characters`)
        const enter = await path.signIn?.prepare(request, reply)
        const options = { turn: toAnonymousTurn(request), language: findAskedLanguage(request), purposes: [path.purpose] }
        const set = await accounts.setPassword(token, password, options)
        return await confirm(request, reply, set, enter)
      } catch (error) {
        const refusal = error instanceof IdentityError ? describeRefusal(error, passwordMin) : undefined
        if (refusal === undefined) throw await gone(error, path)
        const { statusCode, headers } = error as IdentityError
        return await show(request, reply.code(statusCode).headers(headers), path, token, refusal)
      }
    },

    isByUpstream: links.isOn,

    /** Completes the link with what another provider has said. `after` may answer the request; otherwise a page confirms the change. */
    async finish (
      request: FastifyRequest, reply: FastifyReply, path: PasswordPage & { place: ReturnToLink }, after?: AfterProof
    ): Promise<FastifyReply> {
      const { proved, ...accepted } = await links.finish(request, path.place).catch(async (error) => { throw await gone(error, path) })
      await after?.(request, reply, proved)
      if (reply.sent) return reply
      const to = await accounts.findReturn(accepted)
      return await sendPage(reply, 'link-done', { what: 'account-linked', to }, page)
    }
  }
}

/** What a link is asked for. */
export type AskKind = Pages['ask-link']['kind']

export const isAskOn = ({ isForgotOn, isSignUpOn }: Pick<Accounts, 'isForgotOn' | 'isSignUpOn'>, kind: AskKind): boolean => (
  kind === 'forgot' ? isForgotOn : isSignUpOn)

/** Why a request for a mailed link was refused. */
function describeAsk (kind: AskKind, error: IdentityError): Message {
  if (error.code === 'ErrLimit') return describeLimit(error)
  if (kind === 'forgot') return ({ links }) => links.invalidAccount
  return ({ links }) => error.message.endsWith('must be an email address') ? links.signUp.notAddress : links.signUp.otherDomain
}

/** The form that requests a mailed link. */
export function createAskForm ({ identity: { accounts } }: FastifyInstance, { getIssuer, look }: Pick<PeopleMount, 'getIssuer' | 'look'>) {
  const show = async (reply: FastifyReply, view: Pages['ask-link'], page: PageOptions = { look }) => await sendPage(reply, 'ask-link', view, page)
  return {
    show,

    /**
     * The answer depends on what was typed, and not on whether there is such an account.
     * @param ask sends the link
     */
    async submit (
      request: FastifyRequest, reply: FastifyReply, view: Pages['ask-link'], ask: (typed: string) => Promise<void>, page: PageOptions = { look }
    ): Promise<FastifyReply> {
      checkOrigin(request, getIssuer())
      const { kind, action } = view
      if (!isAskOn(accounts, kind)) throw new IdentityError('ErrNotFound', 'path: no such page')
      const typed = readField(request, 'typed').trim().slice(0, LIMITS.account)
      if (readField(request, 'correct') !== '') return await show(reply, { ...view, value: typed }, page)
      try {
        await ask(typed)
      } catch (error) {
        if (!(error instanceof IdentityError) || !(error.code === 'ErrParam' || error.code === 'ErrLimit')) throw error
        return await show(reply.code(error.statusCode).headers(error.headers), { ...view, value: typed, error: describeAsk(kind, error) }, page)
      }
      return await sendPage(reply, 'link-sent', { kind, action, typed, again: readField(request, 'again') !== '' }, page)
    }
  }
}

/**
 * The pages of links, and the pages that request one. They need no script and no sign-in. Opening a page never spends its link,
 * because some programs open every link in a mail. Only the form spends it.
 */
export async function peoplePages (app: FastifyInstance, mount: PeopleMount): Promise<void> {
  const { getIssuer, getPath, look, limits } = mount
  const { accounts } = app.identity
  const page = { look }
  app.setErrorHandler(createPageError(look))
  parseForms(app)
  keepLanguage(app, getIssuer)
  answerRepeats(app, mount)
  const passwordForm = createPasswordForm(app, mount)
  const askForm = createAskForm(app, mount)
  const toGone = createUsedLinks(app, mount)
  const nameWay = createWayNames(app)
  const toAction = (path: string) => `${getPath()}${path}`
  const signIn = look.getHome === undefined ? undefined : createLinkSignIn(app, { ...mount, getHome: look.getHome })
  const toLink = (link: ReturnToLink['link']) => ({ action: toAction(PAGE_PATHS[link]), purpose: link, place: { link }, signIn })
  const toSignUp = (): PasswordPage => toLink('sign-up')

  for (const [path, kind] of [[PAGE_PATHS.forgot, 'forgot'], [PAGE_PATHS['sign-up'], 'sign-up']] as const) {
    const isSignUp = kind === 'sign-up'
    const toView = (): Pages['ask-link'] => ({ kind, action: toAction(path), signIn: look.getHome?.() })
    app.get<Route>(path, { schema }, async (request, reply) => {
      if (isSignUp && request.query.token !== undefined) return await passwordForm.show(request, reply, toSignUp())
      if (!isAskOn(accounts, kind)) throw new IdentityError('ErrNotFound', 'path: no such page')
      return await askForm.show(reply, toView())
    })
    app.post(path, { schema }, async (request, reply) => {
      if (isSignUp && readField(request, 'token') !== '') return await passwordForm.submit(request, reply, toSignUp())
      const ask = isSignUp ? accounts.signUp : accounts.forgotPassword
      return await askForm.submit(request, reply, toView(), async (typed) => await ask(typed, toAsker(request)))
    })
  }

  for (const purpose of ['reset', 'invite'] as const) {
    const path = PAGE_PATHS[purpose]
    const toPath = (): PasswordPage => purpose === 'reset' ? { action: toAction(path), purpose, signIn } : toLink(purpose)
    app.get<Route>(path, { schema }, async (request, reply) => await passwordForm.show(request, reply, toPath()))
    app.post(path, { schema }, async (request, reply) => await passwordForm.submit(request, reply, toPath()))
  }

  for (const link of passwordForm.isByUpstream ? ['invite', 'sign-up'] as const : []) {
    app.get(`${PAGE_PATHS[link]}/upstream`, FINISHES, async (request, reply) => await passwordForm.finish(request, reply, toLink(link)))
  }

  const gone = (error: unknown) => toGone(error, 'undo')
  for (const path of EARLIER_UNDO_PATHS) {
    app.get<Route>(path, { schema }, async (request, reply) => reply.redirect(toUndo(getPath(), readToken(request)), 303))
  }
  app.get<Route>(PAGE_PATHS.undo, { schema }, async (request, reply) => {
    const token = readToken(request)
    const { goes, stays, ...found } = await accounts.inspectUndo(token).catch((error) => { throw gone(error) })
    const view = { action: toAction(PAGE_PATHS.undo), token, ...found, goes: goes.map(nameWay), stays: stays.map(nameWay) }
    return await sendPage(reply, 'confirm-undo', view, page)
  })
  app.post(PAGE_PATHS.undo, { schema }, async (request, reply) => {
    checkOrigin(request, getIssuer())
    await limits.guess(request)
    const { stays } = await accounts.undo(readField(request, 'token').slice(0, LIMITS.token)).catch((error) => { throw gone(error) })
    return await sendPage(reply, 'link-done', { what: 'undone', review: { stays: stays.map(nameWay) } }, page)
  })
}
