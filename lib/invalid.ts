import type { ErrorObject } from 'ajv'
import { type IdentityError, paramError } from './errors.ts'

/** A field's name as callers write it: `data.redirectUris[3]`. */
function nameField (path: string): string {
  return path.slice(1).replace(/\/(\d+)(?=\/|$)/g, '[$1]').replaceAll('/', '.').replaceAll('~1', '/').replaceAll('~0', '~')
}

/** For a value that matches no branch of an `anyOf`, the error of the `anyOf` rather than one of a branch. */
function chooseError (errors: readonly ErrorObject[]): ErrorObject {
  return errors.find(({ keyword }) => keyword === 'anyOf') ?? errors[0] as ErrorObject
}

/**
 * Our error for a value that does not match its schema: the field and the problem. It never repeats the value.
 * @param part the name of the whole value
 */
export function explainInvalid (errors: readonly ErrorObject[], part: string): IdentityError {
  const error = chooseError(errors)
  const field = nameField(error.instancePath)
  const inner = (name: string) => (field === '' ? name : `${field}.${name}`)
  switch (error.keyword) {
    case 'required': return paramError(inner(error.params.missingProperty), 'is required')
    case 'additionalProperties': return paramError(inner(error.params.additionalProperty.slice(0, 64)), 'is not a known field')
    case 'anyOf': case 'const': return paramError(field || part, 'is not one of the allowed values')
    case 'type': return paramError(field || part, error.params.type === 'integer'
      ? 'must be an integer of at least 0'
      : `must be of the type ${error.params.type}`)
    case 'minLength': return paramError(field || part, error.params.limit === 1 ? 'must not be empty' : String(error.message))
    default: return paramError(field || part, error.message ?? 'is not valid')
  }
}
