import type { Static, TObject } from '@sinclair/typebox'
import { Ajv, type ValidateFunction } from 'ajv'

/**
 * How Ajv is made for schemas of our own: without the look at each through JSON Schema's own, which costs every start
 * more than all the rest of it (test/schemas.test.ts has that look), and without polish for code that runs once.
 */
export const OWN_SCHEMAS = { strict: true, strictTypes: false, meta: false, validateSchema: false, code: { optimize: false } } as const

const ajv = new Ajv({ ...OWN_SCHEMAS, useDefaults: true })

/** One check of the options of a plugin: it fills in the schema's defaults. */
export function compileOptions<S extends TObject> (schema: S): ValidateFunction<Static<S>> {
  return ajv.compile<Static<S>>(schema)
}

/** Why the options last checked were refused, by the option's name. `within` is the option that holds them all. */
export function optionError ({ errors }: ValidateFunction, ...within: string[]): Error {
  const [error] = errors ?? []
  const path = [...within, ...(error?.instancePath.slice(1).split('/') ?? []), error?.params.missingProperty, error?.params.additionalProperty]
  return new Error(`option ${path.filter(Boolean).join('.') || '(all)'}: ${error?.message}`)
}

/**
 * Makes a reader of options: it checks them and fills in the defaults, in a copy. An undefined one counts as not given.
 * The reader throws an Error that names the option.
 */
export function createOptionsReader<S extends TObject> (schema: S): (given: object) => Static<S> {
  const validate = compileOptions(schema)
  return (given) => {
    const data: object = structuredClone(Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)))
    if (!validate(data)) throw optionError(validate)
    return data
  }
}
