import type { Connection } from './connection.ts'
import type { DocumentCache } from './cache.ts'
import type { Operation, Value } from './operations.ts'
import type { Table } from './sql.ts'
import type { CountQuery, Filter, ListQuery, PageQuery, Rendering } from '../port.ts'
import type { Part } from './reader.ts'
import type { Touched } from './changes.ts'

/** Where a store's collections read and write: a file with its threads (file.ts), or memory (memory.ts). */
export interface Backend {
  /** The main thread's own connection, for look-ups. */
  readonly connection: Connection
  readonly tables: ReadonlyMap<string, Table>
  /** Null in memory, where a look-up costs little more than its decoding. */
  readonly cache: DocumentCache | null
  /** Throws ErrDb when the database file was removed, replaced or damaged. It checks at most once per turn of the event loop. */
  verify (): void
  /** Verifies the file, and reads on this thread, which takes microseconds. Throws ErrDb for any failure. */
  read<R> (run: (connection: Connection) => R): R
  /** @param touched null for a write that changes no existing document */
  write (operation: Operation, touched: Touched | null): Promise<Value>
  count (table: Table, filter?: Filter, query?: CountQuery): Promise<number>
  /** The first documents that a query finds, as many as fit one answer. */
  page (table: Table, query: PageQuery): Promise<Part>
  /** Batches of documents, as JSON. */
  stream (table: Table, query: ListQuery): AsyncIterable<string[]>
  /** See Collection.render. */
  readonly render?: ((table: Table, query: ListQuery, rendering: Rendering) => AsyncIterable<string>) | undefined
  /** Rejects while the file cannot be read or written. */
  ping (): Promise<void>
  /** Waits for the accepted operations, and closes the connections. */
  close (): Promise<void>
}
