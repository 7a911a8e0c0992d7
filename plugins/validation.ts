import ajvFormats from 'ajv-formats'
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import fastJson from 'fast-json-stringify'
import type { FastifyInstance } from 'fastify'
import { type IdentityError, paramError } from '../lib/errors.ts'
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

/** A field's name as callers write it: `data.redirectUris[3]`. */
function nameField (path: string): string {
  return path.slice(1).replace(/\/(\d+)(?=\/|$)/g, '[$1]').replaceAll('/', '.').replaceAll('~1', '/').replaceAll('~0', '~')
}

/** For a value that matches no branch of an `anyOf`, the error of the `anyOf` rather than one of a branch. */
function chooseError (errors: ErrorObject[]): ErrorObject {
  return errors.find(({ keyword }) => keyword === 'anyOf') ?? errors[0] as ErrorObject
}

/** Our message for a failure: the field and the problem. It never repeats the value. */
function explain (error: ErrorObject, part: string): IdentityError {
  const field = nameField(error.instancePath)
  const inner = (name: string) => (field === '' ? name : `${field}.${name}`)
  switch (error.keyword) {
    case 'required': return paramError(inner(error.params.missingProperty), 'is required')
    case 'additionalProperties': return paramError(inner(error.params.additionalProperty.slice(0, 64)), 'is not a known field')
    case 'anyOf': case 'const': return paramError(field || part, 'is not one of the allowed values')
    case 'type': return paramError(field || part, error.params.type === 'integer' ? 'must be an integer of at least 0' : `must be of the type ${error.params.type}`)
    case 'minLength': return paramError(field || part, error.params.limit === 1 ? 'must not be empty' : String(error.message))
    default: return paramError(field || part, error.message ?? 'is not valid')
  }
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
      return { error: explain(chooseError(validate.errors ?? []), httpPart ?? 'body') }
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
