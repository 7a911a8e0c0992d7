import { IdentityError, storeError } from '../../errors.ts'
import { DuplicateKeyError } from '../port.ts'
import { decodeName } from './documents.ts'

/** Identified by shape, not by class: the client of a host may come from another copy of the driver. */
export interface ServerError {
  code?: unknown
  message?: unknown
  keyPattern?: Record<string, unknown>
}

/**
 * Translates a failure into an error of the port.
 * @param unique the unique keys that a change names
 */
export function toPortError (error: unknown, unique?: string[]): Error {
  if (error instanceof IdentityError) return error
  const field = duplicateField(error as ServerError, unique)
  // The server's message contains the duplicate value, so it is dropped.
  return field === undefined ? storeError(error) : new DuplicateKeyError(field)
}

/** The field of a duplicate key error; undefined for any other error. */
function duplicateField ({ code, message, keyPattern }: ServerError, unique: string[] = []): string | undefined {
  if (code === 11000) {
    // FerretDB sends no keyPattern, but the name of the index, which indexes.ts chose: `account_1`.
    const name = Object.keys(keyPattern ?? {})[0] ?? /\bindex:? '?([^\s']+)/i.exec(String(message))?.[1]?.replace(/_1?$/, '')
    return name === undefined ? undefined : decodeName(name)
  }
  // FerretDB's findAndModify passes PostgreSQL's error through, without the index. The key is known if the change names only one.
  if (code === 1 && /violates exclusion constraint/.test(String(message)) && unique.length === 1) return unique[0]
  return undefined
}

/** Whether the server undid a statement to resolve a deadlock. FerretDB does when writers race for one unique value. */
export function isDeadlock (error: unknown): boolean {
  return /\bdeadlock detected\b/.test(String((error as ServerError | null)?.message))
}
