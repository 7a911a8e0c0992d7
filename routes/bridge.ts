import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { BridgeSettings } from '../schemas/bridge.ts'
import { parseUpstream, readBridgeOptions } from '../lib/bridge/bridge-options.ts'
import { IdentityError, paramError } from '../lib/errors.ts'
import { Lazy } from '../lib/lazy.ts'
import { prefersCsv, takeCsvFormat } from '../lib/lists/negotiation.ts'
import type { Dispatcher, Relay, RelayResponse } from '../lib/bridge/relay.ts'
import { describeSecurity } from '../plugins/describe-security.ts'
import { handleError } from '../plugins/errors.ts'
import { DOCS } from './bridge-docs.ts'
import { addVary, Exchange, type Fields } from './bridge-exchange.ts'

export type { Dispatcher } from '../lib/bridge/relay.ts'

export interface BridgeOptions extends Partial<Omit<BridgeSettings, 'upstream'>> {
  /** Base URL of the service's API; or a function that tells it at the first request, for an address that is not known before. */
  upstream: string | (() => string)
  /** An undici dispatcher of the host's: used instead of a pool of the bridge's own, and left open. */
  dispatcher?: Dispatcher
}

const API = '/api/v1/client'

const without = (names: string[]): Fields => Object.fromEntries(names.map((name) => [name, undefined]))

/** What the upstream is asked instead, when its answer becomes CSV: a list, whole and plain. */
const ASK_FOR_LIST: Fields = {
  ...without([
    'if-none-match', 'if-match', 'if-modified-since', 'if-unmodified-since', 'if-range', 'range',
    'want-content-digest', 'want-repr-digest'
  ]),
  accept: 'application/x-ndjson, application/json;q=0.9',
  'accept-encoding': 'identity'
}

/** Fields that describe the JSON, and are not true of the CSV. */
const NOT_OF_CSV = without([
  'content-length', 'content-encoding', 'content-range', 'content-digest', 'repr-digest', 'digest', 'content-md5', 'etag',
  'last-modified', 'accept-ranges'
])

const queryOf = (request: FastifyRequest) => /\?([^#]*)/.exec(request.raw.url ?? '')?.[1] ?? ''

/** The link to the next page, for CSV that the query asked for: the upstream's query does not say so. */
const linkCsv = ({ headers: { link } }: RelayResponse): Fields => (typeof link === 'string' ? { link: link.replace(/^<\?/, '<?format=csv&') } : {})

const withQuery = (path: string, query: string) => (query === '' ? path : `${path}?${query}`)

/** A path parameter as one segment of the upstream's path. Throws ErrParam for one that would change the path. */
function toSegment (request: FastifyRequest, name: string): string {
  const value = (request.params as Record<string, string>)[name] ?? ''
  if (value === '' || value === '.' || value === '..' || !value.isWellFormed()) throw paramError(name, 'is not an id')
  return encodeURIComponent(value)
}

/**
 * The bridge: the client API of an identity service elsewhere, relayed under the prefix it is registered with, and
 * client lists as CSV (service.md, 4.4). It needs nothing else of the app, and keeps its body parsing and its errors
 * to itself. undici, and what CSV takes, are loaded at the first request for them: a start does not wait for them.
 * @example app.register(bridge, { prefix: '/clients', upstream: 'http://identity:3000' })
 * @throws Error at boot that names a wrong option
 */
export async function bridge (app: FastifyInstance, given: BridgeOptions): Promise<void> {
  // Fastify's own, which it hands over among ours.
  const { dispatcher, upstream, prefix: _prefix, logLevel: _logLevel, logSerializers: _logSerializers, ...plain } = given as BridgeOptions & Record<string, unknown>
  const later = typeof upstream === 'function' ? upstream : undefined
  const options = readBridgeOptions({ ...plain, upstream: later === undefined ? upstream : 'http://told.later' })
  // An address that is not told yet may be at the next request.
  const relay = new Lazy(async (): Promise<Relay> => {
    const told = later !== undefined && { upstream: parseUpstream(later()) }
    const { Relay } = await import('../lib/bridge/relay.ts')
    return new Relay({ ...options, ...told, dispatcher })
  })

  app.addHook('onClose', async () => { await (await relay.peek())?.close() })
  app.setErrorHandler(handleError)

  // Bodies pass by as they are, and nothing is checked or rewritten on the way: that is the upstream's.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, payload, done) => done(null, payload))
  app.setValidatorCompiler(() => () => true)
  app.setSerializerCompiler(() => JSON.stringify)

  const csvFields: Fields = {
    ...NOT_OF_CSV,
    'content-type': 'text/csv; charset=utf-8',
    'content-disposition': `attachment; filename="${options.filename}"`
  }

  async function relayTo (path: string, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const exchange = new Exchange(await relay.get(), options, request, reply)
    return await exchange.run(async () => exchange.relay(await exchange.ask(withQuery(path, queryOf(request)))))
  }

  async function list (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    addVary(reply, 'Accept')
    const { query, csv } = takeCsvFormat(queryOf(request))
    if (!csv && !prefersCsv(request.headers.accept)) return await relayTo(`${API}/list`, request, reply)
    const exchange = new Exchange(await relay.get(), options, request, reply)
    const [{ readList }, { toCsv }] = await Promise.all([import('../lib/lists/list-reader.ts'), import('../lib/lists/csv.ts')])
    return await exchange.run(async () => {
      const answer = await exchange.ask(withQuery(`${API}/list`, query), ASK_FOR_LIST)
      if (answer.status >= 300) return await exchange.relay(answer)
      const { 'content-type': type = '', 'content-encoding': coding = 'identity' } = answer.headers
      if (answer.status !== 200 || coding !== 'identity') throw new IdentityError('ErrRsc', 'the upstream sent a list that is not one')
      return await exchange.answer(answer, toCsv(readList(answer.body, type), options), { ...csvFields, ...(csv && linkCsv(answer)) })
    })
  }

  const add = (method: 'GET' | 'POST' | 'PATCH' | 'DELETE', url: string, schema: object, handler: typeof list) => {
    const config = { access: 'relay', swaggerTransform: describeSecurity }
    app.route({ method, url, schema, config, handler, exposeHeadRoute: false })
    // HEAD is asked of the upstream as HEAD, instead of reading a list to throw it away.
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
