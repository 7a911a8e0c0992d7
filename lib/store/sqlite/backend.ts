import type { Connection } from './connection.ts'
import type { DocumentCache } from './cache.ts'
import type { Operation, Value } from './operations.ts'
import type { Table } from './sql.ts'
import type { Filter, ListQuery, Rendering } from '../port.ts'
import type { Touched } from './writer.ts'

/** What a collection stands on: a file with its threads (file.ts), or memory (memory.ts). */
export interface Backend {
  /** The main thread's own connection, for look-ups. */
  readonly connection: Connection
  readonly tables: ReadonlyMap<string, Table>
  /** What look-ups decoded; null where decoding again is all there is to save. */
  readonly cache: DocumentCache | null
  /** `touched` is null for a write that changes no document that is there. */
  write (operation: Operation, touched: Touched | null): Promise<Value>
  count (table: Table, filter?: Filter): Promise<number>
  /** The JSON of the documents, in batches. */
  list (table: Table, query: ListQuery): AsyncIterable<string[]>
  /** See Collection.render. */
  readonly render?: ((table: Table, query: ListQuery, rendering: Rendering) => AsyncIterable<string>) | undefined
  /** Rejects while nothing can be written. */
  check (): Promise<void>
  /** Finishes what was accepted. */
  close (): Promise<void>
}
