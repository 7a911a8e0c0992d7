import ajvFormats from 'ajv-formats'
import { Ajv, type ValidateFunction } from 'ajv'
import fastJson from 'fast-json-stringify'
import type { FastifyInstance } from 'fastify'
import { explainInvalid } from '../lib/invalid.ts'
import { OWN_SCHEMAS } from '../lib/options.ts'

/** Query parameters that count as absent when they are empty. */
const EMPTY_IS_ABSENT = new Set(['user', 'account', 'contains', 'fields', 'sort'])

/** Values are validated unchanged: no coercion, no defaults, no removed properties. */
const ajv = new Ajv({
  ...OWN_SCHEMAS, code: { optimize: 1 }, allErrors: false, coerceTypes: false, useDefaults: false, removeAdditional: false
})
ajvFormats.default(ajv)

interface ObjectSchema { properties?: Record<string, { type?: string }> }

/** Query parameters are text. Digits become an integer where the schema has one; nothing else is converted. */
function readQuery (schema: ObjectSchema, query: Record<string, unknown>): Record<string, unknown> {
  // Without a prototype, `__proto__` is a name like any other.
  const read: Record<string, unknown> = Object.create(null)
  for (const [name, value] of Object.entries(query)) {
    if (value === '' && EMPTY_IS_ABSENT.has(name)) continue
    const integer = schema.properties?.[name]?.type === 'integer' && typeof value === 'string' && /^\d{1,16}$/.test(value)
    read[name] = integer ? Number(value) : value
  }
  return read
}

/**
 * Validates requests and serialises responses with our own compilers, in this scope only: a host keeps its own, and ours
 * do not depend on them. A response contains only the fields of its schema.
 * Each schema is compiled at its first use, because compiling all of them takes as long as starting a bare app.
 */
export function useOwnValidation (app: FastifyInstance): void {
  app.setValidatorCompiler(({ schema, httpPart }) => {
    let validate: ValidateFunction | undefined
    return (data: unknown) => {
      validate ??= ajv.compile(schema as object)
      const value = httpPart === 'querystring' ? readQuery(schema as ObjectSchema, data as Record<string, unknown>) : data
      if (validate(value)) return { value }
      return { error: explainInvalid(validate.errors ?? [], httpPart ?? 'body') }
    }
  })
  // Null means none: a host's serializer would bypass the response schemas.
  app.setReplySerializer(null as never)
  app.setSerializerCompiler(({ schema }) => {
    let write: ReturnType<typeof fastJson> | undefined
    return (data: unknown) => {
      write ??= fastJson(schema as Parameters<typeof fastJson>[0])
      return write(data)
    }
  })
}
