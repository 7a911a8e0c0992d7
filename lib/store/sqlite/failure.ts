import { type ErrorCode, IdentityError, storeError } from '../../errors.ts'

/** An error of SQLite's, in a form that goes to another thread. Its message names tables and columns, never a value. */
export interface Failure {
  message: string
  /** SQLite's extended result code. */
  code?: number
  /** Of an error that is no failure of the store. */
  kind?: ErrorCode
  /** The message of its cause, for the log. */
  cause?: string
}

interface SqliteError extends Error {
  errcode?: number
}

/** SQLITE_CONSTRAINT_PRIMARYKEY and SQLITE_CONSTRAINT_UNIQUE. */
const DUPLICATE = [1555, 2067]

/** The key that clashed, when that is what happened. */
export function duplicateField (error: unknown): string | null {
  const { errcode, message } = error as SqliteError
  if (errcode === undefined || !DUPLICATE.includes(errcode)) return null
  return /\.([^.]+)$/.exec(message)![1]!
}

export function toFailure (error: unknown): Failure {
  const { message, errcode } = error as SqliteError
  if (error instanceof IdentityError) return { message, kind: error.code, ...(error.cause instanceof Error && { cause: error.cause.message }) }
  return { message, ...(errcode !== undefined && { code: errcode }) }
}

/** The error of another thread, as a caller meets it. */
export function fromFailure ({ message, code, kind, cause }: Failure): Error {
  if (kind !== undefined) return new IdentityError(kind, message, cause === undefined ? {} : { cause: new Error(cause) })
  return storeError(Object.assign(new Error(message), code === undefined ? {} : { errcode: code }))
}

/** Runs what uses this thread's own connection. */
export function guard<R> (run: () => R): R {
  try {
    return run()
  } catch (error) {
    throw storeError(error)
  }
}
