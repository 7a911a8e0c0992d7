import type { Connection } from './sqlite/connection.ts'
import { isCurrent, isNew, migrate } from './sqlite/schema.ts'
import { checkIntegrity, openCopy } from './sqlite/snapshot.ts'
import { quote } from './sqlite/sql.ts'
import type { CollectionSpec, Document } from './port.ts'

export { isInUse, keepAside, measureDatabase } from './sqlite/snapshot.ts'
export { vacuumInto } from './sqlite/vacuum.ts'

/** Texts of a document by field. */
type Texts = Readonly<Record<string, string>>

/** A copy of an SQLite database that no process uses: a backup, or a draft of a new database file. */
export class Copy {
  readonly #connection: Connection
  readonly #collections: readonly CollectionSpec[]

  constructor (path: string, collections: readonly CollectionSpec[]) {
    this.#connection = openCopy(path)
    this.#collections = collections
  }

  /** @throws Error unless it is an intact database of this service, and not of a later release */
  check (): void {
    checkIntegrity(this.#connection)
    if (isNew(this.#connection)) throw new Error('it is empty')
    // Throws for another program's file, and for one of a later release.
    isCurrent(this.#connection, this.#collections)
  }

  count (collection: string): number {
    return this.#connection.get<{ count: number }>({ sql: `SELECT count(*) AS count FROM ${quote(collection)}`, values: [] })?.count ?? 0
  }

  get<T extends Document> (collection: string, id: string): T | undefined {
    const found = this.#connection.get<{ doc: string }>({ sql: `SELECT "doc" FROM ${quote(collection)} WHERE "id" = ?`, values: [id] })
    return found === undefined ? undefined : JSON.parse(found.doc) as T
  }

  /** Adds the tables that a copy of an earlier release lacks. */
  migrate (): void {
    migrate(this.#connection, this.#collections)
  }

  /** Makes changes as one transaction. */
  change (run: () => void): void {
    this.#connection.database.exec('BEGIN')
    run()
    this.#connection.database.exec('COMMIT')
  }

  clear (collection: string): void {
    this.#connection.run({ sql: `DELETE FROM ${quote(collection)}`, values: [] })
  }

  /** Replaces a document, whose declared keys stay as they are. */
  put (collection: string, document: Document): void {
    this.#connection.run({ sql: `UPDATE ${quote(collection)} SET "doc" = ? WHERE "id" = ?`, values: [JSON.stringify(document), document.id] })
  }

  /** Sets fields of the documents in which a key, or the id, has this value. */
  set (collection: string, fields: Texts, [key, value]: [key: string, value: string]): void {
    const keys = this.#collections.find(({ name }) => name === collection)?.keys ?? {}
    const entries = Object.entries(fields)
    // A declared key has a column too.
    const columns = entries.filter(([field]) => field in keys)
    const sets = [...columns.map(([field]) => `${quote(field)} = ?`), `"doc" = json_set("doc"${', ?, ?'.repeat(entries.length)})`]
    this.#connection.run({
      sql: `UPDATE ${quote(collection)} SET ${sets.join(', ')} WHERE ${quote(key)} = ?`,
      values: [...columns.map(([, text]) => text), ...entries.flatMap(([field, text]) => [`$.${field}`, text]), value]
    })
  }

  /** The documents of a collection that have this text anywhere. */
  find<T extends Document> (collection: string, text: string): T[] {
    return this.#connection.all<{ doc: string }>(
      `SELECT "doc" FROM ${quote(collection)} WHERE instr("doc", ?) > 0`, text
    ).map(({ doc }) => JSON.parse(doc) as T)
  }

  close (): void {
    this.#connection.close()
  }
}
