import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest, type InjectOptions } from 'fastify'
import fp from 'fastify-plugin'
import { Lazy } from '../lib/lazy.ts'
import { type DescribedRoute, createFrame, describeRoute, describeSchema, nameSchemas } from './openapi-document.ts'

/** Removes the directive that makes browsers fetch the page's assets over https: without TLS the page would work on localhost only. */
const transformStaticCSP = (policy: string) => policy.replace(/ *upgrade-insecure-requests;?/, '')

/** Builds an app that never listens. It has our routes, from which @fastify/swagger makes the document and the page. */
async function buildDocs (routes: DescribedRoute[], prefix: string): Promise<FastifyInstance> {
  const [{ default: swagger }, { default: swaggerUi }] = await Promise.all([import('@fastify/swagger'), import('@fastify/swagger-ui')])
  const docs = Fastify({ exposeHeadRoutes: false })
  docs.setValidatorCompiler(() => () => true)
  docs.setSerializerCompiler(() => JSON.stringify)
  await docs.register(swagger, {
    openapi: createFrame(routes),
    transformObject: (document) => nameSchemas('openapiObject' in document ? document.openapiObject as object as Record<string, unknown> : {})
  })
  for (const route of routes) {
    docs.route({ method: route.method, url: route.url.replace(/(.)\/$/, '$1'), schema: describeSchema(route, routes), handler: () => {} })
  }
  // The full path: in a scope with a prefix, the page would request its assets without the prefix.
  await docs.register(swaggerUi, { routePrefix: `${prefix}/docs`, staticCSP: true, transformStaticCSP, uiConfig: { persistAuthorization: false } })
  await docs.ready()
  return docs
}

/**
 * Describes the routes that this scope registers later: as OpenAPI 3.1 at `/openapi.json`, and as a page at `/docs`. Both are
 * built at the first request, because loading the packages would delay every start.
 */
async function openapi (app: FastifyInstance): Promise<void> {
  const routes: DescribedRoute[] = []
  const docs = new Lazy(() => buildDocs(routes, app.prefix))
  app.addHook('onRoute', (route) => { routes.push(...describeRoute(route)) })
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
