import { BATCH_SIZE, type CollectionSpec, type CountQuery, type Filter, type ListQuery, type PageQuery } from '../port.ts'
import type { Part } from './reader.ts'
import type { Opener } from '../state.ts'
import type { Backend } from './backend.ts'
import { Connection } from './connection.ts'
import { guard } from './failure.ts'
import { type Operation, type Value, readVersion, runBatch, unwrap } from './operations.ts'
import { migrate } from './schema.ts'
import { Table, quote, toId } from './sql.ts'

/** `sqlite::memory:`, for tests: one connection on the main thread, whose data is lost when it is closed. */
export class MemoryBackend implements Backend {
  readonly connection = new Connection(':memory:', { busy: 0 })
  readonly tables: ReadonlyMap<string, Table>
  readonly cache = null

  constructor (collections: readonly CollectionSpec[], opener?: Opener) {
    migrate(this.connection, collections, opener)
    this.tables = new Map(collections.map((spec) => [spec.name, new Table(spec)]))
  }

  verify (): void {}

  read<R> (run: (connection: Connection) => R): R {
    return guard(() => run(this.connection))
  }

  async write (operation: Operation): Promise<Value> {
    return unwrap(runBatch(this.connection, this.tables, [operation]).outcomes[0]!)
  }

  async count (table: Table, filter?: Filter, { limit }: CountQuery = {}): Promise<number> {
    return guard(() => this.connection.getRow<{ count: number }>(table.count(filter, limit)).count)
  }

  async page (table: Table, query: PageQuery): Promise<Part> {
    const { sql, values } = table.list(query, 'doc')
    return { docs: guard(() => this.connection.all<{ doc: string }>(sql, ...values)).map(({ doc }) => doc), done: true }
  }

  /** Reads the ids first and then the documents: a cursor of the only connection would see concurrent writes. */
  async * stream (table: Table, query: ListQuery): AsyncGenerator<string[], void, undefined> {
    const { sql, values } = table.list(query, 'bytes')
    const ids = guard(() => this.connection.all<{ bytes: Uint8Array }>(sql, ...values).map(toId))
    const find = `SELECT "doc" FROM ${table.name} WHERE ${quote('id')} = ?`
    for (let start = 0; start < ids.length; start += BATCH_SIZE) {
      const docs = guard(() =>
        ids.slice(start, start + BATCH_SIZE).flatMap((id) => this.connection.get<{ doc: string }>({ sql: find, values: [id] })?.doc ?? []))
      if (docs.length > 0) yield docs
    }
  }

  async ping (): Promise<void> {
    guard(() => readVersion(this.connection))
  }

  async close (): Promise<void> {
    this.connection.close()
  }
}
