import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { readVersion } from '../lib/version.ts'

const DESCRIPTION = `User accounts, registered clients and token sessions.

Every error has the same body; its \`code\` is stable. Lists stream: one that fails midway breaks the connection, it never ends
as valid JSON. With \`Accept: application/x-ndjson\` a list has one record a line.`

/**
 * Describes every route of this scope that comes after it, as OpenAPI 3.1 at `/openapi.json`, and as a page for people
 * at `/docs`.
 */
async function openapi (app: FastifyInstance): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'fastify-identity', version: readVersion(), description: DESCRIPTION, license: { name: 'MIT', identifier: 'MIT' } },
      tags: [
        { name: 'auth', description: 'Token sessions' },
        { name: 'client', description: 'Registered clients' },
        { name: 'user', description: 'User accounts' },
        { name: 'bridge', description: 'The client API relayed, and client lists as CSV' },
        { name: 'health', description: 'For orchestrators' }
      ],
      components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } }
    }
  })
  app.get('/openapi.json', { schema: { hide: true } }, () => app.swagger())
  await app.register(swaggerUi, { routePrefix: '/docs', staticCSP: true, uiConfig: { persistAuthorization: false } })
}

export default fp(openapi, { fastify: '5.x', name: 'fastify-identity/openapi' })
