import { type ErrorCode, IdentityError, storeError } from '../../errors.ts'

/** An error as plain data, for another thread. SQLite's messages name tables and columns, never a value. */
export interface Failure {
  message: string
  /** SQLite's extended result code. */
  code?: number
  /** The code of an IdentityError; absent for a failure of the store. */
  kind?: ErrorCode
  /** The message of an IdentityError's cause, for the log. */
  cause?: string
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
  if (error instanceof IdentityError) return { message, kind: error.code, ...(error.cause instanceof Error && { cause: error.cause.message }) }
  return { message, ...(errcode !== undefined && { code: errcode }) }
}

/** The error to reject the caller with. */
export function fromFailure ({ message, code, kind, cause }: Failure): Error {
  if (kind !== undefined) return new IdentityError(kind, message, cause === undefined ? {} : { cause: new Error(cause) })
  return storeError(Object.assign(new Error(message), code === undefined ? {} : { errcode: code }))
}

/** Runs a statement on this thread's connection, and turns its errors into ErrDb. */
export function guard<R> (run: () => R): R {
  try {
    return run()
  } catch (error) {
    throw storeError(error)
  }
}
