import { type ErrorCode, IdentityError, storeError } from '../../errors.ts'
import { StoreLostError } from '../port.ts'

/** An error as plain data, for another thread. SQLite's messages name tables and columns, never a value. */
export interface Failure {
  message: string
  /** SQLite's extended result code. */
  code?: number
  /** The code of an IdentityError; absent for a failure of the store. */
  kind?: ErrorCode
  /** The message of an IdentityError's cause, for the log. */
  cause?: string
  /** It is a StoreLostError. */
  lost?: true
}

interface SqliteError extends Error {
  errcode?: number
}

/** SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_UNIQUE, and SQLITE_CONSTRAINT_TRIGGER: only our own triggers raise it (schema.ts). */
const DUPLICATE = [1555, 2067, 1811]

/** The unique key that clashed, or null for any other error. */
export function findDuplicateField (error: unknown): string | null {
  const { errcode, message } = error as SqliteError
  if (errcode === undefined || !DUPLICATE.includes(errcode)) return null
  return /\.([^.]+)$/.exec(message)![1]!
}

export function toFailure (error: unknown): Failure {
  const { message, errcode } = error as SqliteError
  // By name: a thread's last error arrives as a plain Error.
  const lost = [error, (error as Error).cause].find((one) => (one as Error | undefined)?.name === 'StoreLostError')
  if (lost !== undefined) return { message: (lost as Error).message, lost: true }
  if (error instanceof IdentityError) return { message, kind: error.code, cause: error.cause instanceof Error ? error.cause.message : undefined }
  return { message, code: errcode }
}

/** The error to reject the caller with. */
export function fromFailure ({ message, code, kind, cause, lost }: Failure): Error {
  if (lost === true) return storeError(new StoreLostError(message))
  if (kind !== undefined) return new IdentityError(kind, message, cause === undefined ? {} : { cause: new Error(cause) })
  return storeError(Object.assign(new Error(message), code === undefined ? {} : { errcode: code }))
}

/** Runs a statement on this thread's connection, and turns its errors into ErrDb. */
export function guard<R> (run: () => R): R {
  try {
    return run()
  } catch (error) {
    if (error instanceof IdentityError) throw error
    throw storeError(error)
  }
}

/** SQLITE_CORRUPT and SQLITE_NOTADB, the primary codes of a file whose content is not SQLite's. */
const CORRUPT = [11, 26]

/** SQLITE_IOERR_SHORT_READ: the file or its log ends before a page that belongs to it. */
const SHORT_READ = 522

/** Whether a statement failed because the file is damaged, and not because of a lock, a full disk or a mistake in the statement. */
export function isDamage (error: unknown): boolean {
  const { errcode, message } = error as SqliteError
  if (errcode === undefined) return false
  return errcode === SHORT_READ || CORRUPT.includes(errcode & 0xff) || /^no such table: /.test(message)
}
