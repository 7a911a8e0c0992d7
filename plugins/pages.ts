import type { FastifyReply, FastifyRequest } from 'fastify'
import { type ErrorCode, IdentityError } from '../lib/errors.ts'
import { pageHeaders } from '../lib/pages/headers.ts'
import type { PageWay, Way } from '../lib/pages/contract.ts'
import type { Pages } from '../lib/pages/index.ts'
import type { Look } from '../lib/pages/look.ts'
import { type ScriptView, listScripts, needsScript } from '../lib/pages/script.ts'
import type { Message } from '../lib/pages/texts/en.ts'
import { maskXsrf } from '../lib/pages/xsrf.ts'
import { toIdentityError } from './errors.ts'
import { logFailure } from './failure-log.ts'
import { readLocales } from './language.ts'

export interface PageOptions {
  look: Look
  /** The URL that submitting the page's form may redirect to. */
  redirectUri?: string | undefined
  /** Further URLs of other providers, which a form of the page may lead to. */
  formTo?: readonly string[]
  /** The languages that the app asked for. Absent: `ui_locales` of this request or an earlier one, and then Accept-Language. */
  locales?: string | undefined
  /** What a link to the page needs in its query, besides the query of this request. */
  query?: Record<string, string>
}

/** The pages that only answer a form. Their URL leads elsewhere, so they have no links to themselves in other languages. */
const ENDS: ReadonlySet<keyof Pages> = new Set([
  'link-sent', 'link-done', 'confirm-change', 'account-deleted', 'account-factor-codes', 'signed-out', 'error'
])

/** The pages that ask a question, show the next step or a list. A form that leads to one has changed nothing, so it may be sent again. */
const ASKS: ReadonlySet<keyof Pages> = new Set([
  'sign-in', 'sign-in-elsewhere', 'second-step', 'enrol', 'choose-account', 'switch-account', 'consent', 'ask-link', 'set-password', 'confirm-change',
  'account-confirm', 'account-factor-add', 'account-passkey-add'
])

const asked = new WeakSet<FastifyRequest>()

/** Whether a request was answered with a page that only asks for more. */
export const wasAsked = (request: FastifyRequest): boolean => asked.has(request)

function readQuery (name: keyof Pages, { method, url }: FastifyRequest, more: Record<string, string> = {}): string | undefined {
  if (method === 'POST' && ENDS.has(name)) return undefined
  const start = url.indexOf('?')
  const given = new URLSearchParams(start < 0 ? '' : url.slice(start))
  for (const [key, value] of Object.entries(more)) given.set(key, value)
  return given.toString()
}

/** An error whose page gives the reason in the reader's language. */
export class PageError extends IdentityError {
  readonly text: Message
  /** Links that lead on. */
  readonly ways: readonly Way[]

  constructor (code: ErrorCode, message: string, text: Message, ways: readonly Way[] = [], options: ErrorOptions = {}) {
    super(code, message, options)
    this.text = text
    this.ways = ways
  }
}

export const signInOver = () => new PageError('ErrParam', 'the sign-in is over, or was started in another browser', ({ errors }) => errors.signInOver)

/** The settings of a page whose GET finishes something, such as the answer of another provider: HEAD has no such effect (RFC 9110, 9.3.2). */
export const FINISHES = { schema: { hide: true }, exposeHeadRoute: false } as const

/** Sends a page with its headers. */
export async function sendPage<Name extends keyof Pages> (
  reply: FastifyReply, name: Name, data: Pages[Name], { look, redirectUri, formTo, locales, query }: PageOptions
): Promise<FastifyReply> {
  // Loaded when the first page is sent.
  const { renderPage } = await import('../lib/pages/index.ts')
  const scriptUrl = needsScript(data as ScriptView) ? look.getScript?.() : undefined
  const { request } = reply
  if (ASKS.has(name) || ('added' in data ? data.added === undefined : name === 'account-client')) asked.add(request)
  const language = look.languages.choose(readLocales(request, locales), request.headers['accept-language'])
  const page = maskXsrf(renderPage(name, data, look, language, readQuery(name, request, query)))
  const scripts = listScripts(page)
  // The host's serializers are not applied to a string.
  return reply.headers(pageHeaders({ look, redirectUri, formTo, scripts, scriptUrl })).type('text/html; charset=utf-8').send(page)
}

/**
 * Creates an error handler that answers with a page.
 * @param findBack the app that the request was for, if it is known
 */
export function createPageError (look: Look, findBack?: (request: FastifyRequest) => Promise<PageWay | undefined>) {
  return async function handlePageError (thrown: unknown, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const isOver = thrown instanceof Error && /^(SessionNotFound|InvalidClient|InvalidRedirectUri)$/.test(thrown.name)
    const error = isOver ? signInOver() : toIdentityError(thrown)
    logFailure(request, error)
    reply.code(error.statusCode).headers(error.headers)
    const back = error.statusCode < 500 ? await findBack?.(request).catch(() => undefined) : undefined
    return await sendPage(reply, 'error', { ...describe(error), back }, { look })
  }
}

function describe (error: IdentityError): Pages['error'] {
  const { statusCode, code, message } = error
  if (error instanceof PageError) return { message: error.text, ways: error.ways }
  if (statusCode >= 500) return { message: ({ errors }) => errors.ourSide }
  if (code === 'ErrLimit') return { message: describeLimit(error) }
  if (code === 'ErrNotFound') return { message: ({ errors }) => errors.notFound }
  if (statusCode === 413) return { message: ({ errors }) => errors.tooLarge }
  return { message: ({ errors }) => errors.refused, detail: message }
}

/** The advice for an ErrLimit. */
export function describeLimit ({ headers: { 'retry-after': seconds }, reason }: IdentityError): Message {
  if (reason === 'closed') return ({ errors }) => errors.passwordClosed
  if (reason === 'code_closed') return ({ errors }) => errors.codeClosed
  return ({ errors }) => seconds === undefined ? errors.tooMany : errors.tooManySeconds({ seconds: Number(seconds) })
}

/**
 * Why a new password was refused. Undefined for any other error.
 * @param min the option passwordMin
 */
export function describePassword ({ reason }: IdentityError, min: number): Message | undefined {
  if (reason === 'short') return ({ errors }) => errors.passwordShort({ characters: min })
  if (reason === 'common') return ({ errors }) => errors.passwordCommon
  if (reason === 'name') return ({ errors }) => errors.passwordName
}
