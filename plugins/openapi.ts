import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest, type InjectOptions, type RouteOptions } from 'fastify'
import fp from 'fastify-plugin'
import { Lazy } from '../lib/lazy.ts'
import { readVersion } from '../lib/version.ts'

const DESCRIPTION = `User accounts, registered clients and token sessions.

Every error has the same body; its \`code\` is stable. Lists are streamed: a failure midway
aborts the connection, so that a truncated list is never valid JSON. With \`Accept: application/x-ndjson\` a list has one
record per line.`

const DOCUMENT = {
  openapi: '3.1.0',
  info: { title: 'fastify-identity', version: readVersion(), description: DESCRIPTION, license: { name: 'MIT', identifier: 'MIT' } },
  tags: [
    { name: 'auth', description: 'Token sessions' },
    { name: 'client', description: 'Registered clients' },
    { name: 'resource', description: 'Declared resources and their scopes' },
    { name: 'user', description: 'User accounts' },
    { name: 'bridge', description: 'The client API relayed, and client lists as CSV' },
    { name: 'health', description: 'For orchestrators' }
  ],
  components: { securitySchemes: { bearer: { type: 'http' as const, scheme: 'bearer' } } }
}

/** Builds an app that never listens. It has our routes, from which @fastify/swagger makes the document and the page. */
async function buildDocs (routes: RouteOptions[], prefix: string): Promise<FastifyInstance> {
  const [{ default: swagger }, { default: swaggerUi }] = await Promise.all([import('@fastify/swagger'), import('@fastify/swagger-ui')])
  const docs = Fastify({ exposeHeadRoutes: false })
  docs.setValidatorCompiler(() => () => true)
  docs.setSerializerCompiler(() => JSON.stringify)
  await docs.register(swagger, { openapi: DOCUMENT })
  for (const { method, url, schema, config } of routes) docs.route({ method, url, schema, config, handler: () => {} })
  // The full path: in a scope with a prefix, the page would request its assets without the prefix.
  await docs.register(swaggerUi, { routePrefix: `${prefix}/docs`, staticCSP: true, uiConfig: { persistAuthorization: false } })
  await docs.ready()
  return docs
}

/**
 * Describes the routes that this scope registers later: as OpenAPI 3.1 at `/openapi.json`, and as a page at `/docs`. Both are
 * built at the first request, because loading the packages would delay every start.
 */
async function openapi (app: FastifyInstance): Promise<void> {
  const routes: RouteOptions[] = []
  const docs = new Lazy(() => buildDocs(routes, app.prefix))
  app.addHook('onRoute', (route) => {
    if (route.method !== 'HEAD' && route.schema?.hide !== true) routes.push(route)
  })
  app.addHook('onClose', async () => { await (await docs.peek())?.close() })

  async function sendPage (request: FastifyRequest, reply: FastifyReply) {
    const { url, headers } = request
    const answer = await (await docs.get()).inject({ url, headers } as InjectOptions)
    if (answer.statusCode === 404) return reply.callNotFound()
    return reply.code(answer.statusCode).headers(answer.headers).send(answer.rawPayload)
  }

  app.get('/openapi.json', { schema: { hide: true } }, async () => (await docs.get()).swagger())
  for (const url of ['/docs', '/docs/*']) app.get(url, { schema: { hide: true } }, sendPage)
}

export default fp(openapi, { fastify: '5.x', name: 'fastify-identity/openapi' })
