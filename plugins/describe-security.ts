interface Described {
  schema: object
  url: string
  openapiObject?: { components?: { securitySchemes?: object } }
}

/**
 * @fastify/swagger's hook of a route, `config.swaggerTransform`: the bearer token is told of where the document explains
 * it. A host's own document may not, and would not be made at all with a scheme that it does not know.
 */
export function describeSecurity ({ schema, url, openapiObject }: Described): { schema: object, url: string } {
  const known = Object.hasOwn(openapiObject?.components?.securitySchemes ?? {}, 'bearer')
  return { schema: known ? { ...schema, security: [{ bearer: [] }] } : schema, url }
}
