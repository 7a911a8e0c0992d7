import { IdentityError, storeError } from '../../errors.ts'
import { DuplicateKeyError } from '../port.ts'
import { decodeName } from './documents.ts'

/** Read by shape and not by class: a client that a host hands in may come from another copy of the driver. */
export interface ServerError {
  code?: unknown
  message?: unknown
  keyPattern?: Record<string, unknown>
}

/**
 * What the port's callers see of a failure.
 * @param unique the unique keys that a change names
 */
export function toPortError (error: unknown, unique?: string[]): Error {
  if (error instanceof IdentityError) return error
  const field = duplicateField(error as ServerError, unique)
  // The server's message holds the value that clashed, so it is not passed on.
  return field === undefined ? storeError(error) : new DuplicateKeyError(field)
}

/** The field a duplicate key error is about, undefined for any other error. */
function duplicateField ({ code, message, keyPattern }: ServerError, unique: string[] = []): string | undefined {
  if (code === 11000) {
    // FerretDB gives no keyPattern, but the name of the index, which is ours: `account_1`.
    const name = Object.keys(keyPattern ?? {})[0] ?? /\bindex:? '?([^\s']+)/i.exec(String(message))?.[1]?.replace(/_1?$/, '')
    return name === undefined ? undefined : decodeName(name)
  }
  // FerretDB's findAndModify passes PostgreSQL's error through, without the index: the key is known when the change names one.
  if (code === 1 && /violates exclusion constraint/.test(String(message)) && unique.length === 1) return unique[0]
  return undefined
}

/** Whether the server undid a statement to end a deadlock. FerretDB does, when processes race for one unique value. */
export function isDeadlock (error: unknown): boolean {
  return /\bdeadlock detected\b/.test(String((error as ServerError | null)?.message))
}
