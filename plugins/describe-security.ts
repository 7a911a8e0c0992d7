interface Described {
  schema: object
  url: string
  openapiObject?: { components?: { securitySchemes?: object } }
}

/**
 * @fastify/swagger's hook for a route, `config.swaggerTransform`. It adds the bearer scheme where the document defines it: a
 * host's own document may not, and an undefined scheme makes @fastify/swagger fail.
 */
export function describeSecurity ({ schema, url, openapiObject }: Described): { schema: object, url: string } {
  const known = Object.hasOwn(openapiObject?.components?.securitySchemes ?? {}, 'bearer')
  return { schema: known ? { ...schema, security: [{ bearer: [] }] } : schema, url }
}
