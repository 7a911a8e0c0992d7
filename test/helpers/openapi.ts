import ajvFormats from 'ajv-formats'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import type { FastifyInstance } from 'fastify'

/** A response to check. `url` is the route's pattern, such as `/client/:clientId`. */
export interface SeenResponse {
  method: string
  url: string
  status: number
  type: string | undefined
  body: string
}

interface Schema { [keyword: string]: unknown }
interface Response { content?: Record<string, { schema: Schema }> }
type Paths = Record<string, Record<string, { responses: Record<string, Response> }>>

const ajv = new Ajv2020({ strict: false, allErrors: true })
ajvFormats.default(ajv)
const compiled = new Map<string, ValidateFunction>()
/** Cache by identity, because a document is read once and its responses are checked many times. */
const known = new WeakMap<object, ValidateFunction>()

/** Disallows additional properties in object schemas, so that a leaked field is a failure. */
function close (schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(close)
  if (typeof schema !== 'object' || schema === null) return schema
  const closed: Schema = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, close(value)]))
  if (closed.properties !== undefined && closed.additionalProperties === undefined) closed.additionalProperties = false
  return closed
}

/** Puts the named schemas in the place of the references to them. */
function resolve (schema: unknown, named: Record<string, Schema>): unknown {
  if (Array.isArray(schema)) return schema.map((inner) => resolve(inner, named))
  if (typeof schema !== 'object' || schema === null) return schema
  const { $ref } = schema as { $ref?: string }
  if ($ref !== undefined) return resolve(named[$ref.slice('#/components/schemas/'.length)], named)
  return Object.fromEntries(Object.entries(schema).map(([key, inner]) => [key, resolve(inner, named)]))
}

function compile (schema: unknown, named: Record<string, Schema>): ValidateFunction {
  const whole = resolve(schema, named)
  const key = JSON.stringify(whole)
  const check = compiled.get(key) ?? ajv.compile(close(whole) as Schema)
  compiled.set(key, check)
  return check
}

function validate (schema: object, named: Record<string, Schema>, value: unknown): string | undefined {
  const check = known.get(schema) ?? compile(schema, named)
  known.set(schema, check)
  if (!check(value)) return ajv.errorsText(check.errors, { dataVar: 'body' })
}

/** The schema of a list's items, which are the lines of NDJSON and the items of a bare array. */
function findItem (response: Response): object | undefined {
  return (response.content?.['application/json']?.schema as { properties?: { data?: { items?: object } } }).properties?.data?.items
}

/** How a response differs from the OpenAPI document; undefined if it does not. */
export function findProblem (document: { paths: Paths, components?: { schemas?: Record<string, Schema> } }, { method, url, status, type, body }: SeenResponse): string | undefined {
  const path = url.replace(/:(\w+)/g, '{$1}')
  const operation = document.paths[path]?.[(method === 'HEAD' ? 'GET' : method).toLowerCase()]
  if (operation === undefined) return 'the operation is not documented'
  const response = operation.responses[status]
  if (response === undefined) return `status ${status} is not documented`
  if (response.content === undefined) return body === '' && type === undefined ? undefined : 'a body where none is documented'
  if (method === 'HEAD') return
  const media = type?.split(';')[0] ?? ''
  const named = document.components?.schemas ?? {}
  const item = findItem(response)
  const checkItems = (items: unknown[]) => items.map((value) => validate(item!, named, value)).find((problem) => problem !== undefined)
  if (item !== undefined && media === 'application/x-ndjson') return checkItems(body === '' ? [] : body.replace(/\n$/, '').split('\n').map((line) => JSON.parse(line)))
  const schema = response.content[media]?.schema
  if (schema === undefined) return `content type ${type} is not documented`
  const value = JSON.parse(body)
  return item !== undefined && Array.isArray(value) ? checkItems(value) : validate(schema, named, value)
}

/**
 * Checks every response of an app's documented routes against its OpenAPI document, except for streamed bodies.
 * @param prefix the prefix of the identity plugin
 */
export function checkResponses (app: FastifyInstance, report: (problem: string) => void, prefix = ''): void {
  let document: Promise<Parameters<typeof findProblem>[0]> | undefined
  const read = async () => (await app.inject(`${prefix}/openapi.json`)).json<Parameters<typeof findProblem>[0]>()
  app.addHook('onSend', async (request, reply, payload) => {
    const { url, config, schema } = request.routeOptions
    const documented = config.access !== undefined || schema?.operationId !== undefined
    if (url === undefined || !documented) return
    const whole = payload === null || payload === undefined || typeof payload === 'string' || Buffer.isBuffer(payload)
    if (!whole) return
    const seen = { method: request.method, url, status: reply.statusCode, type: reply.getHeader('content-type') as string | undefined, body: String(payload ?? '') }
    const problem = findProblem(await (document ??= read()), seen)
    if (problem !== undefined) report(`${seen.method} ${seen.url} ${seen.status}: ${problem}`)
  })
}
