import { existsSync } from 'node:fs'
import type { Document } from '../port.ts'
import { DatabaseSync } from './node-sqlite.ts'
import { quote } from './sql.ts'
import { readTables } from './tables.ts'

/** Documents of a page: between two pages, the service that uses the file may check it in. */
const PAGE = 1000

/** Reads a collection of a file that a service may have open. */
export function * readFileAside (path: string, collection: string): Generator<Document[]> {
  if (!existsSync(path)) return
  const database = new DatabaseSync(path, { readOnly: true })
  try {
    if (!readTables({ all: <T> (sql: string) => database.prepare(sql).all() as T[] }).has(collection)) return
    const read = database.prepare(`SELECT "doc" FROM ${quote(collection)} WHERE "id" > ? ORDER BY "id" LIMIT ${PAGE}`)
    for (let last = ''; ;) {
      const page = (read.all(last) as { doc: string }[]).map(({ doc }) => JSON.parse(doc) as Document)
      if (page.length === 0) return
      yield page
      last = page.at(-1)!.id
    }
  } finally {
    database.close()
  }
}
