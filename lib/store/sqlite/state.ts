import type { FoundState, Layout, StoreState } from '../state.ts'
import type { Connection } from './connection.ts'
import { LAYOUT_TABLE, quote } from './sql.ts'

export const LAYOUT = quote(LAYOUT_TABLE)

/** The user_version of a file in a move. Releases without moves refuse such a file as one of a later release. */
const IN_MOVE = 2 ** 31 - 1

/** The oldestReader of a file is its user_version, because earlier releases read only that. The rest of the state is in a table. */
export function readUserVersion (connection: Connection): number {
  return connection.getRow<{ user_version: number }>({ sql: 'PRAGMA user_version', values: [] }).user_version
}

export function readState (connection: Connection): FoundState {
  const { doc, revision } = connection.getRow<{ doc: string, revision: number }>({ sql: `SELECT "doc", "revision" FROM ${LAYOUT}`, values: [] })
  const state = JSON.parse(doc) as StoreState
  const oldestReader = readUserVersion(connection)
  return { state: oldestReader === IN_MOVE ? state : { ...state, oldestReader }, revision }
}

/** The state of a file that may be of an earlier release, which had no table of it. */
export function findState (connection: Connection): StoreState {
  if (connection.get({ sql: 'SELECT 1 FROM sqlite_schema WHERE name = ?', values: [LAYOUT_TABLE] }) !== undefined) return readState(connection).state
  const oldestReader = readUserVersion(connection)
  return { version: oldestReader, oldestReader }
}

/** Creates a missing state. A new file gets the layout of this release. */
export function createState (connection: Connection, { version, oldestReader }: Layout): void {
  const found = readUserVersion(connection)
  const state: StoreState = { version: found === 0 ? version : found, oldestReader: Math.max(found, oldestReader) }
  connection.database.exec(`CREATE TABLE IF NOT EXISTS ${LAYOUT} ("revision" INTEGER NOT NULL, "doc" TEXT NOT NULL)`)
  connection.run({ sql: `INSERT INTO ${LAYOUT} SELECT 0, ? WHERE NOT EXISTS (SELECT 1 FROM ${LAYOUT})`, values: [JSON.stringify(state)] })
  connection.database.exec(`PRAGMA user_version = ${state.oldestReader}`)
}

/** Replaces the state within the transaction of a batch. Returns 0 when it has another revision. */
export function writeState (connection: Connection, { doc, revision }: { doc: string, revision: number }): number {
  const written = connection.run({ sql: `UPDATE ${LAYOUT} SET "doc" = ?, "revision" = "revision" + 1 WHERE "revision" = ?`, values: [doc, revision] })
  const { move, oldestReader } = JSON.parse(doc) as StoreState
  if (written === 1) connection.database.exec(`PRAGMA user_version = ${move === undefined ? oldestReader : IN_MOVE}`)
  return written
}
