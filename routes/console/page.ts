import { setImmediate } from 'node:timers/promises'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { IdentityError } from '../../lib/errors.ts'
import { pageHeaders } from '../../lib/pages/headers.ts'
import type { ConsoleContext, ConsoleDone, ConsoleSection, ConsoleView } from '../../lib/pages/console/index.ts'
import type { Look } from '../../lib/pages/look.ts'
import type { Part } from '../../lib/pages/parts.ts'
import type { Message } from '../../lib/pages/texts/en.ts'
import { maskXsrf } from '../../lib/pages/xsrf.ts'
import { toApiPath } from '../../lib/issuer.ts'
import type { Operation } from '../../plugins/access-table.ts'
import type { ConsoleMount, ConsoleVisit, ConsoleVisits } from '../../plugins/console.ts'
import { readCookie } from '../../plugins/cookies.ts'
import { readLocales } from '../../plugins/language.ts'
import { readParameter } from '../../plugins/parameters.ts'
import { readField } from '../../plugins/sign-in-forms.ts'
import { type Answered, ApiError, type Call, type CallApi, toTarget } from './api.ts'
import { SECTIONS } from './sections.ts'

/** The cookie with the reader's time zone. */
export const ZONE_COOKIE = 'identity_zone'

/** A form of the console that was refused: why, and what was typed into it. */
export interface Refused {
  action: string
  typed: URLSearchParams
  /** Whether somebody else has changed what the form sends. */
  isConflict: boolean
}

/** A request of somebody who may open the console. */
export interface Desk extends ConsoleVisit {
  request: FastifyRequest
  /**
   * Calls an operation of the API on their behalf. The page says how the same is asked with curl.
   * @throws ApiError
   */
  call: <T>(call: Call) => Promise<Answered<T>>
  /** The same for a read, if their roles admit them to the operation. Undefined if not, or where the operation refuses. */
  read: <T>(name: Operation, call: Omit<Call, 'method'>) => Promise<Answered<T> | undefined>
  /** The form that was refused, while its page is shown again. */
  refused?: Refused
}

/** What a page shows: the parts that only it has. */
export type Shown = (view: ConsoleView, context: ConsoleContext) => Part

/** What a form has done: the page that says so, or one of its own, such as that with a new secret. */
export type Submitted = { done: ConsoleDone, to?: string, query?: Readonly<Record<string, string>> } | { shown: Shown }

/** A page of the console. */
export interface ConsolePage {
  /** Below the path of the console, as a route. */
  path: string
  section?: ConsoleSection
  /** The operation that the page is made of: whoever may not call it does not see the page. Absent: everybody with a role sees it. */
  needs?: Operation | readonly Operation[]
  /** Commands that do the same as the page, for a request. */
  commands?: (desk: Desk) => readonly string[]
  show (desk: Desk): Promise<Shown> | Shown
  /** What its forms do, by their field `action`. Each names the operations that it calls: whoever may call none of them may not send it. */
  forms?: Readonly<Record<string, ConsoleForm>>
}

/** A form of a page. */
export interface ConsoleForm {
  needs?: Operation | readonly Operation[]
  /** Whether it is sent without a fresh proof. */
  isFree?: boolean
  submit (desk: Desk, reply: FastifyReply): Promise<Submitted>
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The page of the console that the route shows. */
    consolePage?: ConsolePage
  }
}

/** A form that calls one operation, and shows nothing of its answer. */
export const createCall = (needs: Operation, done: ConsoleDone, toCall: (desk: Desk) => Call): ConsoleForm => ({
  needs,
  async submit (desk): Promise<Submitted> {
    await desk.call(toCall(desk))
    return { done }
  }
})

/** The path of a page with an id in it. */
export const toPath = (section: string, id: string): string => `/${section}/${encodeURIComponent(id)}`

const toList = (needs: ConsolePage['needs']): readonly Operation[] => needs === undefined ? [] : [needs].flat()

const notFound = () => new IdentityError('ErrNotFound', 'path: no such page')

/** Why a form was refused, in the reader's language where we have words for it. */
function describe ({ statusCode, message }: ApiError): Message {
  return statusCode === 412 ? ({ console: own }) => own.conflict : ({ console: own }) => own.refused({ reason: message })
}

/** Why a read was refused. */
const describeRead = ({ message }: ApiError): Message => ({ console: own }) => own.unread({ reason: message })

export const isKnownZone = (zone: string): boolean => {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: zone }) !== undefined
  } catch {
    return false
  }
}

/** The reader's time zone. UTC until they have chosen one. */
export function readZone (request: FastifyRequest): string {
  const zone = readCookie(request, ZONE_COOKIE) ?? ''
  return zone !== '' && isKnownZone(zone) ? zone : 'UTC'
}

/** Creates the function that adds a page of the console: what it shows, and what its forms do. */
export function createConsolePages (
  app: FastifyInstance, mount: ConsoleMount & { consoleLook: Look }, visits: ConsoleVisits, callApi: CallApi
) {
  const { getConsole, getIssuer, consoleLook: look } = mount
  const mayAny = (visit: Pick<ConsoleVisit, 'may'>, needs: ConsolePage['needs']): boolean =>
    toList(needs).length === 0 || toList(needs).some((name) => visit.may(name))

  function toDesk (request: FastifyRequest, visit: ConsoleVisit, calls: string[]): Desk {
    let last: Promise<unknown> = Promise.resolve()
    // One call after the other, each in a turn of the event loop: a page with many never holds up other requests for long.
    async function call<T> (asked: Call): Promise<Answered<T>> {
      calls.push(`${asked.method ?? 'GET'} ${toTarget(asked)}`)
      const answer = last.then(async () => await setImmediate()).then(async () => await callApi<T>(request, visit.session.cookie, asked))
      last = answer.catch(() => undefined)
      return await answer
    }
    return {
      ...visit,
      request,
      call,
      async read<T> (name: Operation, asked: Omit<Call, 'method'>): Promise<Answered<T> | undefined> {
        if (!visit.may(name)) return undefined
        return await call<T>(asked).catch((error: unknown) => {
          if (error instanceof ApiError && error.code === 'ErrPerm') return undefined
          throw error
        })
      }
    }
  }

  async function send (
    reply: FastifyReply, desk: Desk, calls: readonly string[], page: ConsolePage, shown: Shown, more: Pick<ConsoleView, 'error'> = {}
  ): Promise<FastifyReply> {
    const { renderConsole } = await import('../../lib/pages/console/index.ts')
    const { request, session } = desk
    const done = readParameter(request, 'done')
    const sought = readParameter(request, 'q')
    const [, query] = request.url.split('?', 2)
    const view: ConsoleView = {
      base: getConsole(),
      ...(page.section !== undefined && { section: page.section }),
      sections: SECTIONS.filter(({ needs }) => mayAny(desk, needs)).map(({ section }) => section),
      maySearch: desk.may('find'),
      account: session.user.account,
      xsrf: session.xsrf,
      isFresh: desk.isFresh,
      again: visits.toSignIn(request),
      ...(typeof done === 'string' && request.method === 'GET' && { done: done as ConsoleDone }),
      ...(typeof sought === 'string' && { sought }),
      calls,
      api: `${getIssuer().origin}${toApiPath(getIssuer())}`,
      commands: page.commands?.(desk) ?? [],
      ...more
    }
    const language = look.languages.choose(readLocales(request), request.headers['accept-language'])
    await setImmediate()
    const text = renderConsole((context) => {
      const known = view.done !== undefined && Object.hasOwn(context.texts.console.done, view.done)
      return shown(known ? view : { ...view, done: undefined }, context)
    }, look, { language, zone: readZone(request), query: request.method === 'GET' ? query ?? '' : undefined })
    return reply.headers(pageHeaders({ look })).type('text/html; charset=utf-8').send(maskXsrf(text))
  }

  /**
   * The page of a read that the API has refused, such as a list with a filter that it does not know: it has read nothing.
   * @throws error where the page is nothing without what it reads
   */
  async function showUnread (desk: Desk, page: ConsolePage, error: unknown): Promise<{ shown: Shown, refused: ApiError }> {
    if (!(error instanceof ApiError) || (error.statusCode !== 400 && error.statusCode !== 404)) throw error
    const shown = await page.show({ ...desk, read: async () => undefined, call: async () => { throw error } })
    return { shown, refused: error }
  }

  return function add (page: ConsolePage): void {
    const route = { schema: { hide: true }, config: { consolePage: page } }
    app.get(page.path, route, async (request, reply) => {
      const visit = await visits.open(request, reply)
      if (visit === null) return reply
      if (!mayAny(visit, page.needs)) throw notFound()
      const calls: string[] = []
      const desk = toDesk(request, visit, calls)
      try {
        return await send(reply, desk, calls, page, await page.show(desk))
      } catch (error) {
        const { shown, refused } = await showUnread(desk, page, error)
        return await send(reply.code(refused.statusCode), desk, calls, page, shown, { error: describeRead(refused) })
      }
    })
    const { forms } = page
    if (forms === undefined) return
    app.post(page.path, route, async (request, reply) => {
      const action = readField(request, 'action')
      const form = Object.hasOwn(forms, action) ? forms[action] : undefined
      const visit = await visits.open(request, reply, { isChange: form?.isFree !== true })
      if (visit === null) return reply
      if (form === undefined || !mayAny(visit, page.needs) || !mayAny(visit, form.needs)) throw notFound()
      const calls: string[] = []
      const desk = toDesk(request, visit, calls)
      try {
        const submitted = await form.submit(desk, reply)
        if ('shown' in submitted) return await send(reply, desk, calls, page, submitted.shown)
        const [path = ''] = request.url.split('?', 1)
        const to = submitted.to === undefined ? path : getConsole() + submitted.to
        return await reply.redirect(`${to}?${new URLSearchParams({ ...submitted.query, done: submitted.done })}`, 303)
      } catch (error) {
        if (!(error instanceof ApiError) || error.statusCode >= 500 || error.code === 'ErrUnknown') throw error
        const refused = { action, typed: request.body as URLSearchParams, isConflict: error.statusCode === 412 }
        const shown = await page.show({ ...desk, refused })
        return await send(reply.code(error.statusCode).headers(error.headers), desk, calls, page, shown, { error: describe(error) })
      }
    })
  }
}

export type AddPage = ReturnType<typeof createConsolePages>
