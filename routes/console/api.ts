import { AsyncLocalStorage } from 'node:async_hooks'
import Fastify, { type FastifyInstance, type FastifyRequest, LogController } from 'fastify'
import { LIMITS } from '../../schemas/common.ts'
import { IdentityError, type ErrorCode } from '../../lib/errors.ts'
import { Lazy } from '../../lib/lazy.ts'
import type { ConsoleOptions } from '../../schemas/options.ts'
import { decorateRequests } from '../../plugins/auth.ts'
import { shareConnection, watchConnection } from '../../plugins/connections.ts'
import { handleError } from '../../plugins/errors.ts'

/** A call of an operation of the API. */
export interface Call {
  method?: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** Below `/api/v1`. */
  path: string
  query?: Record<string, string | undefined>
  body?: object
  /** The tag of what the form has shown. */
  match?: string
}

/** What an operation has answered. */
export interface Answered<T> {
  data: T
  tag?: string
  /** The cursors of the pages beside it. */
  after?: string
  before?: string
}

/** An error that the API has answered with. */
export class ApiError extends IdentityError {}

const CURSOR = /<[^>]*[?&](after|before)=([^&>]+)[^>]*>; *rel="(next|prev)"/g

function readCursors (link: string | undefined): Pick<Answered<unknown>, 'after' | 'before'> {
  return Object.fromEntries([...(link ?? '').matchAll(CURSOR)].map(([, name = '', cursor = '']) => [name, decodeURIComponent(cursor)]))
}

/** The path and the query of a call, as a URL has them. */
export function toTarget ({ path, query = {} }: Pick<Call, 'path' | 'query'>): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== '')
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`
}

/**
 * The API for the pages of the console: the same routes, with the same guards, access table, checks and limits, in an app that no port
 * leads to. The cookie of a session stands for the access token there, and nowhere else.
 * @param registerApi registers the routes of the API, at the first use
 */
export function createConsoleApi (app: FastifyInstance, { acr }: Pick<ConsoleOptions, 'acr'>, registerApi: (scope: FastifyInstance) => Promise<void>) {
  const { identity } = app
  const { console: sessions } = identity
  if (sessions === undefined) throw new Error('the console is off')

  /** The request of the page that a call is made for. */
  const pages = new AsyncLocalStorage<FastifyRequest>()

  const opened = new Lazy(async () => {
    const api = Fastify({
      loggerInstance: app.log,
      logController: new LogController({ disableRequestLogging: true }),
      genReqId: () => pages.getStore()?.id ?? '',
      bodyLimit: LIMITS.body,
      routerOptions: { maxParamLength: LIMITS.encodedId },
      frameworkErrors: handleError
    })
    const authenticate = async (cookie: string) => await sessions.authenticate(cookie, acr)
    api.decorate('identity', { ...identity, tokens: { ...identity.tokens, authenticate } })
    decorateRequests(api)
    api.addHook('onRequest', (request, _reply, done) => {
      const page = pages.getStore()
      if (page !== undefined) shareConnection(request, watchConnection(page))
      done()
    })
    await api.register(registerApi, { prefix: '/api/v1' })
    await api.ready()
    return api
  })

  app.addHook('onClose', async () => { await (await opened.peek())?.close() })

  /**
   * Calls an operation on behalf of a session.
   * @throws ApiError with the status, the code and the message of the answer
   */
  return async function call<T> (request: FastifyRequest, cookie: string, { method = 'GET', body, match, ...target }: Call): Promise<Answered<T>> {
    const api = await opened.get()
    const { 'user-agent': agent, 'accept-language': language } = request.headers
    if (target.path.split('/').some((segment) => segment === '.' || segment === '..')) throw new ApiError('ErrNotFound', 'path: an id in it is a dot segment')
    const response = await pages.run(request, async () => await api.inject({
      method,
      url: `/api/v1${toTarget(target)}`,
      headers: {
        authorization: `Bearer ${cookie}`,
        ...(agent !== undefined && { 'user-agent': agent }),
        ...(language !== undefined && { 'accept-language': language }),
        ...(match !== undefined && { 'if-match': match })
      },
      remoteAddress: request.ip,
      ...(body !== undefined && { payload: body })
    }))
    const answer: { data?: T, code?: ErrorCode, message?: string } = response.payload === '' ? {} : response.json()
    if (response.statusCode >= 400) {
      const { 'retry-after': seconds } = response.headers
      throw new ApiError(answer.code ?? 'ErrInternal', answer.message ?? 'the call failed', {
        statusCode: response.statusCode, headers: seconds === undefined ? {} : { 'retry-after': String(seconds) }
      })
    }
    const { etag, link } = response.headers
    return { data: answer.data as T, ...(etag !== undefined && { tag: String(etag) }), ...readCursors(link === undefined ? undefined : String(link)) }
  }
}

export type CallApi = ReturnType<typeof createConsoleApi>
