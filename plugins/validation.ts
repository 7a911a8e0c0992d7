import ajvFormats from 'ajv-formats'
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import fastJson from 'fast-json-stringify'
import type { FastifyInstance } from 'fastify'
import { type IdentityError, paramError } from '../lib/errors.ts'
import { OWN_SCHEMAS } from '../lib/options.ts'

/** Query parameters that count as not given when they are empty. */
const EMPTY_IS_ABSENT = new Set(['user', 'account', 'contains', 'fields', 'sort'])

/** Values are checked as they are: nothing is coerced, filled in or left out behind the caller's back. */
const ajv = new Ajv({
  ...OWN_SCHEMAS, code: { optimize: 1 }, allErrors: false, coerceTypes: false, useDefaults: false, removeAdditional: false
})
ajvFormats.default(ajv)

interface ObjectSchema { properties?: Record<string, { type?: string }> }

/** A query string is text: digits become the integer that the schema asks for, and nothing else does. */
function readQuery (schema: ObjectSchema, query: Record<string, unknown>): Record<string, unknown> {
  // Without a prototype, so that `__proto__` is a name like any other.
  const read: Record<string, unknown> = Object.create(null)
  for (const [name, value] of Object.entries(query)) {
    if (value === '' && EMPTY_IS_ABSENT.has(name)) continue
    const integer = schema.properties?.[name]?.type === 'integer' && typeof value === 'string' && /^\d{1,16}$/.test(value)
    read[name] = integer ? Number(value) : value
  }
  return read
}

/** A field's name as a caller writes it: data.redirectUris[3]. */
function nameField (path: string): string {
  return path.slice(1).replace(/\/(\d+)(?=\/|$)/g, '[$1]').replaceAll('/', '.').replaceAll('~1', '/').replaceAll('~0', '~')
}

/** Of a value that fits none of several forms, that it does not; not what one of the forms would have asked for. */
function chooseError (errors: ErrorObject[]): ErrorObject {
  return errors.find(({ keyword }) => keyword === 'anyOf') ?? errors[0] as ErrorObject
}

/** Our words for a failure: the field and the cause. Values are never repeated. */
function explain (error: ErrorObject, part: string): IdentityError {
  const field = nameField(error.instancePath)
  const inner = (name: string) => (field === '' ? name : `${field}.${name}`)
  switch (error.keyword) {
    case 'required': return paramError(inner(error.params.missingProperty), 'is required')
    case 'additionalProperties': return paramError(inner(error.params.additionalProperty.slice(0, 64)), 'is not a known field')
    case 'anyOf': case 'const': return paramError(field || part, 'is not one of the values allowed')
    case 'type': return paramError(field || part, error.params.type === 'integer' ? 'must be an integer from 0' : `must be of the type ${error.params.type}`)
    default: return paramError(field || part, error.message ?? 'is not valid')
  }
}

/**
 * Validates with our own rules, in this scope only: a host keeps its Ajv, and ours does not depend on it.
 * The same for serialisation: only the fields of a response schema are written.
 * Each is compiled at its first use: all of them at the start took as long as a whole bare app.
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
  // Null, for none: a host's would take the place of the response schemas.
  app.setReplySerializer(null as never)
  app.setSerializerCompiler(({ schema }) => {
    let write: ReturnType<typeof fastJson> | undefined
    return (data: unknown) => {
      write ??= fastJson(schema as Parameters<typeof fastJson>[0])
      return write(data)
    }
  })
}
