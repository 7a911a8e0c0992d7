import type { Static, TObject } from '@sinclair/typebox'
import { Ajv, type ValidateFunction } from 'ajv'

/** One check of the options of a plugin: it fills in the schema's defaults. */
export function compileOptions<S extends TObject> (schema: S): ValidateFunction<Static<S>> {
  return new Ajv({ useDefaults: true, strict: true, strictTypes: false }).compile<Static<S>>(schema)
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
