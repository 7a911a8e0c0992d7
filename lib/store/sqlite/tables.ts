import { type CollectionSpec, StoreLostError } from '../port.ts'
import type { Connection } from './connection.ts'
import { LAYOUT_TABLE, PROBE_TABLE, STATE_TABLE, toItemsTable } from './sql.ts'

/**
 * Creates a check that the file still has the tables of these collections. It reads one number, and the names of the tables only when the
 * number says that some program has changed the schema.
 * @returns a function that throws StoreLostError when a table is missing
 */
export function createTableCheck (connection: Connection, specs: readonly CollectionSpec[]): () => void {
  const expected = [STATE_TABLE, PROBE_TABLE, LAYOUT_TABLE, ...specs.flatMap((spec) => [spec.name, ...(spec.uniqueItems ?? []).map((field) => toItemsTable(spec, field))])]
  let accepted: number | undefined
  return () => {
    const { schema_version: found } = connection.get<{ schema_version: number }>({ sql: 'PRAGMA schema_version', values: [] })!
    if (found === accepted) return
    const names = new Set(connection.all<{ name: string }>("SELECT name FROM sqlite_schema WHERE type = 'table'").map(({ name }) => name))
    const missing = expected.find((name) => !names.has(name))
    if (missing !== undefined) throw new StoreLostError(`no such table: ${missing}`)
    accepted = found
  }
}
