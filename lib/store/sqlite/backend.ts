import { type Connection } from './connection.ts'
import { type Operation, type Value } from './operations.ts'
import { type Table } from './sql.ts'
import { type Filter, type ListQuery } from '../port.ts'

/** What a collection stands on: a file with its threads (file.ts), or memory (memory.ts). */
export interface Backend {
  /** The main thread's own connection, for look-ups. */
  readonly connection: Connection
  readonly tables: ReadonlyMap<string, Table>
  write (operation: Operation): Promise<Value>
  count (table: Table, filter?: Filter): Promise<number>
  /** The JSON of the documents, in batches. */
  list (table: Table, query: ListQuery): AsyncIterable<string[]>
  /** Finishes what was accepted. */
  close (): Promise<void>
}
