import type { IncomingMessage } from 'node:http'
import { Type } from '@sinclair/typebox'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { BridgeOptionsSchema, type BridgeSettings } from '../schemas/bridge.ts'
import { readBody } from '../lib/bridge/read-body.ts'
import type { Dispatcher, Relay, RelayResponse } from '../lib/service-client/relay.ts'
import { parseServiceAddress } from '../lib/service-client/address.ts'
import { parseClientFields } from '../lib/clients/columns.ts'
import { IdentityError, paramError } from '../lib/errors.ts'
import { Lazy } from '../lib/lazy.ts'
import { prefersCsv, takeCsvFormat } from '../lib/lists/negotiation.ts'
import { createOptionsReader } from '../lib/options.ts'
import { handleError } from '../plugins/errors.ts'
import { placeInHostDocument } from '../plugins/host-document.ts'
import { DOCS } from './bridge-docs.ts'
import { addVary } from '../plugins/vary.ts'
import { Exchange, type Fields } from './bridge-exchange.ts'

export type { Dispatcher } from '../lib/service-client/relay.ts'

export interface BridgeOptions extends Partial<Omit<BridgeSettings, 'upstream'>> {
  /** Base URL of the service's API, or a function that returns it, called at the first request. */
  upstream: string | (() => string)
  /** An undici dispatcher of the host app: used instead of the bridge's own pool, and never closed. */
  dispatcher?: Dispatcher
}

const readOptions = createOptionsReader(Type.Omit(BridgeOptionsSchema, ['upstream']))

const API = '/api/v1/client'

const without = (names: string[]): Fields => Object.fromEntries(names.map((name) => [name, undefined]))

/** Changes to a request whose response becomes CSV: it asks for a complete, uncompressed list. */
const ASK_FOR_LIST: Fields = {
  ...without([
    'if-none-match', 'if-match', 'if-modified-since', 'if-unmodified-since', 'if-range', 'range',
    'want-content-digest', 'want-repr-digest'
  ]),
  accept: 'application/x-ndjson, application/json;q=0.9',
  'accept-encoding': 'identity'
}

/** Fields that describe the JSON, and do not apply to the CSV. */
const NOT_OF_CSV = without([
  'content-length', 'content-encoding', 'content-range', 'content-digest', 'repr-digest', 'digest', 'content-md5', 'etag',
  'last-modified', 'accept-ranges'
])

const queryOf = (request: FastifyRequest) => /\?([^#]*)/.exec(request.raw.url ?? '')?.[1] ?? ''

/** The link to the next page, where the query asked for CSV: the upstream's link lacks `format=csv`. */
const linkCsv = ({ headers: { link } }: RelayResponse): Fields => (typeof link === 'string' ? { link: link.replace(/^<\?/, '<?format=csv&') } : {})

/** The query of a list that becomes CSV: the whole list unless it has a limit. */
function completeQuery (query: string): string {
  if (new URLSearchParams(query).has('limit')) return query
  return query === '' ? 'limit=0' : `${query}&limit=0`
}

const withQuery = (path: string, query: string) => (query === '' ? path : `${path}?${query}`)

/** Characters that change the path where a proxy before the upstream decodes them. No id has one. */
const PATH_SIGNS = /[/\\%]/

/** A path parameter as one segment of the upstream's path. Throws ErrParam for a value that would change the path. */
function toSegment (request: FastifyRequest, name: string): string {
  const value = (request.params as Record<string, string>)[name] ?? ''
  if (value === '' || value === '.' || value === '..' || PATH_SIGNS.test(value) || !value.isWellFormed()) throw paramError(name, 'is not an id')
  return encodeURIComponent(value)
}

/**
 * The bridge: relays the client API of an identity service under the plugin's prefix, and converts client lists to CSV
 * (docs/bridge.md). Its body parsing and its error handling apply to its own routes only. undici and the CSV modules
 * are loaded at the first request that needs them, which keeps the start fast.
 * @example app.register(bridge, { prefix: '/clients', upstream: 'http://identity:3000' })
 * @throws Error at boot that names a wrong option
 */
export async function bridge (app: FastifyInstance, given: BridgeOptions): Promise<void> {
  // Fastify passes its own options along.
  const { dispatcher, upstream, prefix: _prefix, logLevel: _logLevel, logSerializers: _log, ...plain }: BridgeOptions & Record<string, unknown> = { ...given }
  const options = readOptions(plain)
  // A fixed address is checked at boot.
  if (typeof upstream !== 'function') parseServiceAddress(upstream)
  const relay = new Lazy(async (): Promise<Relay> => {
    const { Relay } = await import('../lib/service-client/relay.ts')
    return new Relay({ ...options, upstream: parseServiceAddress(typeof upstream === 'function' ? upstream() : upstream), dispatcher })
  })

  app.addHook('onClose', async () => { await (await relay.peek())?.close() })
  app.setErrorHandler(handleError)
  placeInHostDocument(app, options.inHostDocument)
  // Responses have the origin of the host app: browsers must not treat the upstream's content as a page or a script there.
  app.addHook('onRequest', (_request, reply, done) => {
    reply.header('x-content-type-options', 'nosniff')
    done()
  })

  // Bodies are forwarded unchanged; the upstream validates them. They are read before an upstream connection is taken,
  // so that slow uploads cannot occupy the pool.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', async ({ headers }: FastifyRequest, payload: IncomingMessage) => (
    await readBody(payload, Number(headers['content-length']), options)))
  app.setValidatorCompiler(() => () => true)
  app.setSerializerCompiler(() => JSON.stringify)

  const csvFields: Fields = {
    ...NOT_OF_CSV,
    'content-type': 'text/csv; charset=utf-8',
    'content-disposition': `attachment; filename="${options.filename}"`
  }

  async function relayTo (path: string, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const exchange = new Exchange(await relay.get(), options, request, reply)
    return await exchange.run(async () => await exchange.relay(await exchange.ask(withQuery(path, queryOf(request)))))
  }

  async function list (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    addVary(reply, 'Accept')
    const { query, csv } = takeCsvFormat(queryOf(request))
    if (!csv && !prefersCsv(request.headers.accept)) return await relayTo(`${API}/list`, request, reply)
    const columns = parseClientFields(new URLSearchParams(query).get('fields') ?? undefined)
    const exchange = new Exchange(await relay.get(), options, request, reply)
    const [{ readList }, { toCsv }] = await Promise.all([import('../lib/lists/list-reader.ts'), import('../lib/lists/csv.ts')])
    return await exchange.run(async () => {
      const response = await exchange.ask(withQuery(`${API}/list`, completeQuery(query)), ASK_FOR_LIST)
      if (response.status >= 300) return await exchange.relay(response)
      const { 'content-type': type = '', 'content-encoding': coding = 'identity' } = response.headers
      if (response.status !== 200 || coding !== 'identity') throw new IdentityError('ErrRsc', 'the upstream sent a list that is not one')
      const fields = csv ? { ...csvFields, ...linkCsv(response) } : csvFields
      return await exchange.answer(response, toCsv(readList(response.body, type), { ...options, columns }), fields)
    })
  }

  const add = (method: 'GET' | 'POST' | 'PATCH' | 'DELETE', url: string, schema: object, handler: typeof list) => {
    const config = { access: 'relay' }
    app.route({ method, url, schema, config, handler, exposeHeadRoute: false })
    // Forwarded as HEAD: Fastify's own HEAD routes would read the whole list and discard it.
    if (method === 'GET') app.route({ method: 'HEAD', url, schema: { hide: true }, config, handler })
  }
  const to = (path: (request: FastifyRequest) => string): typeof list => async (request, reply) => await relayTo(API + path(request), request, reply)
  const client = to((request) => `/${toSegment(request, 'client_id')}`)

  add('POST', '/', DOCS.create, to(() => ''))
  add('GET', '/count', DOCS.count, to(() => '/count'))
  add('GET', '/list', DOCS.list, list)
  add('GET', '/:client_id', DOCS.get, client)
  add('PATCH', '/:client_id', DOCS.patch, client)
  add('DELETE', '/:client_id', DOCS.remove, client)
  add('DELETE', '/user/:user_id', DOCS.removeOwned, to((request) => `/user/${toSegment(request, 'user_id')}`))
}

export default bridge
