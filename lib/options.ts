import type { Static, TObject } from '@sinclair/typebox'
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import { findNearest } from './nearest.ts'

/**
 * Ajv's options for our own schemas. Checking them against the JSON Schema meta-schema would take more than half of the
 * start-up time (test/schemas.test.ts does it instead), and optimising generated code that runs once does not pay.
 */
export const OWN_SCHEMAS = { strict: true, strictTypes: false, meta: false, validateSchema: false, code: { optimize: false } } as const

const ajv = new Ajv({ ...OWN_SCHEMAS, useDefaults: true, keywords: ['expects'], verbose: true })

/** Compiles the validation of a plugin's options. It fills in the schema's defaults. */
export function compileOptions<S extends TObject> (schema: S): ValidateFunction<Static<S>> {
  return ajv.compile<Static<S>>(schema)
}

/** The problem in words. `expects` is the schema's own text, for schemas whose keywords would not be clear. */
function explain ({ keyword, message, params, parentSchema = {} }: ErrorObject): string {
  if (keyword === 'additionalProperties') {
    const meant = findNearest(params.additionalProperty, Object.keys(parentSchema.properties ?? {}))
    return `is not an option${meant === undefined ? '' : `, did you mean ${meant}?`}`
  }
  return parentSchema.expects === undefined ? String(message) : `must be ${parentSchema.expects}`
}

/** The error of the last check, which names the option. `within` is the option that contains them all. */
export function optionError ({ errors }: ValidateFunction, ...within: string[]): Error {
  // The errors of all branches of a choice come before that of the choice itself, which says what it expects.
  const error = errors?.find(({ keyword, parentSchema }) => keyword === 'anyOf' && parentSchema?.expects !== undefined) ?? errors?.[0]
  const path = [...within, ...(error?.instancePath.slice(1).split('/') ?? []), error?.params.missingProperty, error?.params.additionalProperty]
  return new Error(`option ${path.filter(Boolean).join('.') || '(all)'}: ${error === undefined ? 'is not valid' : explain(error)}`)
}

/**
 * Creates a reader of options. It copies them, checks the copy and fills in the defaults. An undefined option counts as absent.
 * The reader throws an Error that names the option. Its first call compiles the schema.
 */
export function createOptionsReader<S extends TObject> (schema: S): (given: object) => Static<S> {
  let validate: ValidateFunction<Static<S>> | undefined
  return (given) => {
    validate ??= compileOptions(schema)
    const data: object = structuredClone(Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)))
    if (!validate(data)) throw optionError(validate)
    return data
  }
}
