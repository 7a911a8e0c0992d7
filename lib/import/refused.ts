import { IdentityError } from '../errors.ts'

/** Why a line is refused: the field and the problem. The message never repeats a value of the line. */
export class Refused extends Error {
  readonly field: string | undefined
  readonly reason: string

  constructor (field: string | undefined, reason: string) {
    super(field === undefined ? reason : `${field}: ${reason}`)
    this.field = field
    this.reason = reason
  }
}

/** An option of an import as the command line and the query of a request name it. */
export const naming = (option: string): string => `--${option} (over HTTP ${option.replaceAll('-', '_')}=true)`

/** An error of a check of a field as the refusal of a line. Any other error is thrown as it is. */
export function toRefused (error: unknown): Refused {
  if (error instanceof Refused) return error
  if (!(error instanceof IdentityError) || error.code !== 'ErrParam') throw error
  const [, field, reason] = /^([^:]*): (.*)$/s.exec(error.message) ?? []
  return new Refused(field, reason ?? error.message)
}
