import { type CollectionSpec, StoreLostError } from '../port.ts'
import type { Connection } from './connection.ts'
import { CHANGES_TABLE, KEYS_TABLE, LAYOUT_TABLE, PROBE_TABLE, STATE_TABLE, listItemFields, toItemsTable } from './sql.ts'

/** The names of all tables that these collections need. */
export function listTables (specs: readonly CollectionSpec[]): string[] {
  return [STATE_TABLE, CHANGES_TABLE, PROBE_TABLE, LAYOUT_TABLE, KEYS_TABLE, ...specs.flatMap((spec) =>
    [spec.name, ...listItemFields(spec).map((field) => toItemsTable(spec, field))])]
}

/** The names of the tables that a file has, without SQLite's own. */
export function readTables (connection: Pick<Connection, 'all'>): Set<string> {
  return new Set(connection.all<{ name: string }>("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'").map(({ name }) => name))
}

/**
 * Creates a check that the file still has the tables of these collections. It reads one number, and the names of the tables only when the
 * number says that some program has changed the schema.
 * @returns a function that throws StoreLostError when a table is missing
 */
export function createTableCheck (connection: Connection, specs: readonly CollectionSpec[]): () => void {
  const expected = listTables(specs)
  let accepted: number | undefined
  return () => {
    const { schema_version: found } = connection.getRow<{ schema_version: number }>({ sql: 'PRAGMA schema_version', values: [] })
    if (found === accepted) return
    const names = readTables(connection)
    const missing = expected.find((name) => !names.has(name))
    if (missing !== undefined) throw new StoreLostError(`no such table: ${missing}`)
    accepted = found
  }
}
