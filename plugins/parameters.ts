import type { FastifyRequest } from 'fastify'

/** A parameter of the query, as it was sent: a text, or a list of texts. Undefined without one. */
export function readParameter ({ query }: Pick<FastifyRequest, 'query'>, name: string): unknown {
  return (query as Record<string, unknown> | undefined)?.[name]
}
