import type { FastifyInstance } from 'fastify'

interface Described {
  schema: object
  url: string
  route?: { config?: { access?: string } }
  openapiObject?: { components?: { securitySchemes?: object } }
}

/** Adds the bearer scheme to guarded routes where the document defines it: an undefined scheme makes @fastify/swagger fail. */
function describe ({ schema, url, route, openapiObject }: Described): { schema: object, url: string } {
  const known = Object.hasOwn(openapiObject?.components?.securitySchemes ?? {}, 'bearer')
  const isGuarded = route?.config?.access !== undefined
  return { schema: known && isGuarded ? { ...schema, security: [{ bearer: [] }] } : schema, url }
}

const hide = ({ schema, url }: Described) => ({ schema: { ...schema, hide: true }, url })

/**
 * Decides whether a host's own @fastify/swagger document includes the routes of this scope. They are hidden unless the host asks
 * for them: a document in a version other than OpenAPI 3.1 would become invalid.
 */
export function placeInHostDocument (app: FastifyInstance, isAsked: boolean): void {
  const swaggerTransform = isAsked ? describe : hide
  app.addHook('onRoute', (route) => { route.config = { ...route.config, swaggerTransform } })
}
