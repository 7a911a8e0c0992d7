import { randomBytes } from 'node:crypto'
import type { SQLInputValue } from 'node:sqlite'
import { type Change, type Document, DuplicateKeyError, type Json } from '../port.ts'
import type { Connection } from './connection.ts'
import { type Failure, findDuplicateField, fromFailure, isDamage, toFailure } from './failure.ts'
import { type Touched, addChange } from './changes.ts'
import { READ_CHANGES, READ_VERSION, SET_VERSION, type Table, WRITE_CHANGES } from './sql.ts'
import { writeState } from './state.ts'

/** One write as plain data, so that it can be sent to another thread. */
export type Operation = {
  /** It changes nothing that look-ups answer with, see CollectionSpec.hidden. */
  quiet?: boolean
} & (
  /** Runs a statement; the value is the number of rows written. */
  | { kind: 'run', sql: string, values: SQLInputValue[] }
  /** Runs statements in their order, up to the first that is refused; the value is their number. */
  | { kind: 'series', statements: { sql: string, values: SQLInputValue[] }[] }
  /** Changes the document that the statement reads; the value is the new `doc`, or null. `change` is JSON. */
  | { kind: 'update', collection: string, sql: string, values: SQLInputValue[], change: string }
  /** Replaces the store's state, if it still has the revision; the value is 1 or 0. */
  | { kind: 'state', doc: string, revision: number }
)

/** The result of an operation. */
export type Value = number | string | null

export type Outcome =
  | { value: Value }
  /** The unique key that clashed. */
  | { duplicate: string }
  /** A mistake of the program: the message of a TypeError. */
  | { mistake: string }
  | { failure: Failure }

/** The version of the store's content around one transaction: equal when look-ups answer the same before and after. See STATE. */
export interface Versions {
  before: string | null
  after: string
}

/** The outcomes in the order of the operations. Without versions the transaction failed, and so did every operation. */
export interface BatchResult {
  outcomes: Outcome[]
  versions: Versions | null
}

/** The value of an operation, for its caller, or the error thrown. */
export function unwrap (outcome: Outcome): Value {
  if ('value' in outcome) return outcome.value
  if ('duplicate' in outcome) throw new DuplicateKeyError(outcome.duplicate)
  if ('mistake' in outcome) throw new TypeError(outcome.mistake)
  throw fromFailure(outcome.failure)
}

export function readVersion (connection: Connection): string | null {
  return connection.getRow<{ version: string | null }>({ sql: READ_VERSION, values: [] }).version
}

/** The last changes of the content (changes.ts). */
export function readChanges (connection: Connection): string {
  return connection.getRow<{ lines: string }>({ sql: READ_CHANGES, values: [] }).lines
}

/** A new version: any integer of SQLite, as text. */
const createVersion = (): string => randomBytes(8).readBigInt64BE().toString()

interface BatchOptions {
  /** Throws when nothing may be written; called within the transaction. */
  check?: (() => void) | undefined
  /** The documents that the operations change, inserted ones left out: no look-up has answered with them. Absent: nobody knows. */
  changed?: readonly Touched[] | undefined
}

/**
 * Runs operations as one transaction, with one sync of the disk for all. An operation that is refused changes nothing,
 * and the others go on, because SQLite undoes a failed statement only. When the transaction fails, all operations have failed.
 */
export function runBatch (
  connection: Connection, tables: ReadonlyMap<string, Table>, operations: readonly Operation[], { check, changed }: BatchOptions = {}
): BatchResult {
  const { database } = connection
  try {
    connection.run({ sql: 'BEGIN IMMEDIATE', values: [] })
    check?.()
    const before = readVersion(connection)
    const outcomes = operations.map((operation) => attempt(connection, tables, operation))
    // The triggers have cleared the version, though look-ups see no change.
    if (before !== null && operations.every(({ quiet }) => quiet === true)) connection.run({ sql: SET_VERSION, values: [before] })
    const next = createVersion()
    const isRenewed = connection.run({ sql: SET_VERSION, values: [next] }) === 1
    if (isRenewed) connection.run({ sql: WRITE_CHANGES, values: [addChange(readChanges(connection), before, next, changed ?? null)] })
    const after = isRenewed ? next : before!
    connection.run({ sql: 'COMMIT', values: [] })
    return { outcomes, versions: { before, after } }
  } catch (error) {
    try {
      if (database.isTransaction) database.exec('ROLLBACK')
    } catch {
      // The first error says more, and a transaction does not outlive its connection.
    }
    const outcome = { failure: toFailure(error) }
    return { outcomes: operations.map(() => outcome), versions: null }
  }
}

function attempt (connection: Connection, tables: ReadonlyMap<string, Table>, operation: Operation): Outcome {
  try {
    return { value: run(connection, tables, operation) }
  } catch (error) {
    // A full disk or a failed read rolls back the transaction, and with it the whole batch. Nothing is committed to a damaged file.
    if (!connection.database.isTransaction || isDamage(error)) throw error
    if (error instanceof TypeError) return { mistake: error.message }
    const field = findDuplicateField(error)
    return field === null ? { failure: toFailure(error) } : { duplicate: field }
  }
}

function run (connection: Connection, tables: ReadonlyMap<string, Table>, operation: Operation): Value {
  if (operation.kind === 'run') return connection.run(operation)
  if (operation.kind === 'state') return writeState(connection, operation)
  if (operation.kind === 'series') {
    for (const statement of operation.statements) connection.run(statement)
    return operation.statements.length
  }
  const doc = connection.get<{ doc: string }>(operation)?.doc ?? null
  if (doc === null) return null
  const table = tables.get(operation.collection)!
  const change = JSON.parse(operation.change) as Change
  const document = applyChange(JSON.parse(doc) as Document, change)
  const changed = [...Object.keys(change.set ?? {}), ...(change.unset ?? []), ...Object.keys(change.increment ?? {})]
  const statement = table.rewrite(document, changed)
  connection.run(statement)
  // The document as text.
  return statement.values[0] as string
}

/** @throws TypeError when a field to increment is not a number */
function applyChange (document: Document, { set = {}, unset = [], increment = {} }: Change): Document {
  const fields: Record<string, Json> = { ...document, ...set }
  for (const field of unset) delete fields[field]
  for (const [field, by] of Object.entries(increment)) {
    const value = (Object.hasOwn(fields, field) ? fields[field] : null) ?? 0
    if (typeof value !== 'number') throw new TypeError(`${field} is not a number and cannot be incremented`)
    fields[field] = value + by
  }
  return fields as unknown as Document
}
