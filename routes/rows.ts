import { type Static, type TObject, type TSchema, Type } from '@sinclair/typebox'
import type { FastifyInstance, FastifyReply, FastifyRequest, FastifySchema, preHandlerAsyncHookHandler } from 'fastify'
import { CountSchema, IdSchema } from '../schemas/common.ts'
import { defined } from '../lib/defined.ts'
import type { ErrorCode } from '../lib/errors.ts'
import type { Page } from '../lib/lists/cursor.ts'
import type { Counted } from '../lib/lists/lists.ts'
import type { Actor } from '../lib/roles.ts'
import type { Caller } from '../lib/tokens/tokens.ts'
import { ACCESS, type Operation, type PublicOperation } from '../plugins/access-table.ts'
import { checkPersonalBody } from '../plugins/admission.ts'
import { requireCaller, toActor } from '../plugins/auth.ts'
import { isForPages } from '../plugins/cors.ts'
import { type Csv, sendList } from './list-reply.ts'
import { NoContentSchema, errors, json, list, pagedList } from './responses.ts'
import type { RouteSettings } from './settings.ts'

/** The names of the parameters in a path: `/user/:userId` has `userId`. */
type Param<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}` ? Name | Param<`/${Rest}`>
  : Path extends `${string}:${infer Name}` ? Name : never

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

/** A request of an operation, with the types of its row. */
class Asked<Params = unknown, Body = unknown, Query = unknown> {
  readonly request: FastifyRequest
  readonly reply: FastifyReply

  constructor (request: FastifyRequest, reply: FastifyReply) {
    this.request = request
    this.reply = reply
  }

  get params (): Params { return this.request.params as Params }
  get body (): Body { return this.request.body as Body }
  get query (): Query { return this.request.query as Query }
  get caller (): Caller { return requireCaller(this.request) }
  /** The caller in the services' terms. */
  get actor (): Actor { return toActor(this.request, this.request.server.identity) }
}

/** The response to a success, and how it is made of the result of a row. */
export interface Answer<Result> {
  status: 200 | 204
  schema: unknown
  /** Errors of every operation that answers like this. */
  errors?: ErrorCode[]
  /** The payload, or the reply if it has been sent. */
  write (asked: Asked, result: Result, settings: Partial<RouteSettings>): unknown
}

/** `{ data }`, where the row's result is the data. */
export const data = <Schema extends TSchema>(schema: TObject<{ data: Schema }>, description: string): Answer<Static<Schema>> =>
  ({ status: 200, schema: json(schema, description), write: (_asked, result) => ({ data: result }) })

/** The row's result is the whole body. */
export const body = <Schema extends TSchema>(schema: Schema, description: string): Answer<Static<Schema>> =>
  ({ status: 200, schema: json(schema, description), write: (_asked, result) => result })

export const count = (description: string): Answer<number | Counted> => ({
  status: 200,
  schema: json(CountSchema, description),
  write: (_asked, counted) => ({ data: typeof counted === 'number' ? { count: counted } : counted })
})

/** A whole list, which has no next page. */
export const wholeList = (item: TSchema, description: string): Answer<Page<unknown>> => ({
  status: 200,
  schema: list(item, description),
  errors: ['ErrLimit'],
  write: async ({ request, reply }, page, { stallTimeout }) => await sendList(request, reply, page, { stallTimeout: stallTimeout! })
})

/** A list in pages, with a link to the next one. */
export const pages = (item: TSchema, description: string, csv?: Csv): Answer<Page<unknown>> => ({
  ...wholeList(item, description),
  schema: pagedList(item, description),
  write: async ({ request, reply }, page, { stallTimeout }) => await sendList(request, reply, page, { stallTimeout: stallTimeout!, csv })
})

/** No body; what a row without `answer` answers. */
export const done: Answer<void> = { status: 204, schema: NoContentSchema, write: ({ reply }) => reply.code(204).send() }

interface Row<Path extends string, Body extends TSchema, Query extends TSchema, Result> {
  description?: string
  body?: Body
  query?: Query
  answer?: Answer<Result>
  /** Errors in addition to those of every operation, of the group and of the answer. */
  errors?: ErrorCode[]
  /** False: the document lists no errors of a body, although the method could have one. */
  hasBody?: false
  /** Whether it records an event although it only reads. */
  isRecorded?: true
  /** Whether it takes `If-Match`. */
  isMatched?: true
  /** A limit of this operation only. */
  limit?: preHandlerAsyncHookHandler
  run (asked: Asked<Record<Param<Path>, string>, Static<Body>, Static<Query>>): NoInfer<Result> | Promise<NoInfer<Result>>
}

/**
 * Creates the function that adds the operations of a tag, each as one row: its name, which is also that of its row in the access table,
 * its method and path, its summary, and what else it has. Its `run` calls a service, whose result becomes the response.
 * @param settings.writeLimit if given, it limits the operations that are not reads
 */
export function createRows (app: FastifyInstance, tag: string, settings: Partial<RouteSettings> = {}) {
  const { writeLimit } = settings
  if (writeLimit !== undefined) app.addHook('preHandler', writeLimit)

  return function add<const Path extends string, Body extends TSchema, Query extends TSchema, Result = void> (
    name: Operation | PublicOperation, path: `${Method} ${Path}`, summary: string, row: Row<Path, Body, Query, Result>
  ): void {
    const { description, body, query, limit, run, answer = done as Answer<Result> } = row
    const [method, url] = path.split(' ') as [Method, string]
    const isRead = method === 'GET'
    const isPublic = !Object.hasOwn(ACCESS, name)
    const { personal } = ACCESS[name] ?? {}
    const kinds = [...row.errors ?? [], ...answer.errors ?? [], ...(isRead || writeLimit === undefined ? [] : ['ErrLimit' as const])]
    const names = [...url.matchAll(/:(\w+)/g)].map(([, param = '']) => [param, IdSchema] as const)
    const schema: FastifySchema = defined({
      operationId: name,
      tags: [tag],
      summary,
      description,
      params: names.length > 0 ? Type.Object(Object.fromEntries(names)) : undefined,
      body,
      querystring: query,
      response: { [answer.status]: answer.schema, ...errors(kinds, { isPublic, hasBody: !isRead && row.hasBody !== false, isMatched: row.isMatched === true }) }
    })
    app.route({
      method,
      url,
      config: defined({
        access: isPublic ? undefined : name, isRecorded: row.isRecorded, crossOrigin: isForPages(method, url) ? true as const : undefined
      }),
      preHandler: limit,
      schema,
      handler (request, reply) {
        const asked = new Asked<Record<Param<Path>, string>, Static<Body>, Static<Query>>(request, reply)
        if (typeof personal === 'object') checkPersonalBody(asked.caller, personal, request.body)
        const result = run(asked)
        const write = (value: Result) => answer.write(asked, value, settings)
        return result instanceof Promise ? result.then(write) : write(result)
      }
    })
  }
}
