import { IdentityError } from '../lib/errors.ts'
import { readCode } from '../lib/failure.ts'
import { toCell } from './output.ts'

/** How a message calls a file. */
export const nameFile = (file: string): string => file === '-' ? 'stdin' : `the file ${toCell(file)}`

/** The error of a file that cannot be read or written. It names the file, whose flag may not have been typed. */
export function toFileError (error: unknown, file: string, what: 'read' | 'written'): IdentityError {
  const code = readCode(error)
  if (code === 'EEXIST') return new IdentityError('ErrParam', `${nameFile(file)} exists already`)
  if (code === 'ENOENT' && what === 'read') return new IdentityError('ErrParam', `there is no file ${toCell(file)}`)
  return new IdentityError('ErrParam', `${nameFile(file)} cannot be ${what} (${code ?? 'an unknown error'})`)
}
