import type { CollectionSpec } from '../port.ts'
import { OPENER, type Opener, checkState } from '../state.ts'
import type { Connection } from './connection.ts'
import { findDuplicateField } from './failure.ts'
import {
  CHANGES_TABLE, KEYS_TABLE, LAYOUT_TABLE, PROBE_TABLE, READ_CHANGES, READ_VERSION, STATE, STATE_TABLE, listColumns, listItemFields, nameSearchIndex, quote,
  toColumns, toItemsTable
} from './sql.ts'
import { LAYOUT, createState, findState, readUserVersion } from './state.ts'

const KEYS = quote(KEYS_TABLE)

/** Everything that a release may change when it opens a file, as one text. */
const SCHEMA_STATE = `SELECT (SELECT user_version FROM pragma_user_version) || (SELECT "doc" FROM ${LAYOUT}) || (SELECT group_concat(collection || '.' || key) FROM ${KEYS}) AS state`

/** The version tables of layout 1 and of builds before the first release of layout 2. */
const FORMER = ['"store.version"', '"store.state"']

const EVENTS = ['INSERT', 'UPDATE', 'DELETE'] as const

/** Rows per step when a new column is filled. */
const STEP = 100

/** Whether the file is new: no release and no other program has written to it. */
export function isNew (connection: Connection): boolean {
  return readUserVersion(connection) === 0 && connection.get({ sql: 'SELECT 1 FROM sqlite_schema', values: [] }) === undefined
}

/** Whether the file has everything the collections need. Throws when this process may not use it: see checkState. */
export function isCurrent (connection: Connection, specs: readonly CollectionSpec[], opener: Opener = OPENER): boolean {
  const oldestReader = readUserVersion(connection)
  const names = new Set(connection.all<{ name: string }>("SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'").map(({ name }) => name))
  if (oldestReader === 0) {
    if (names.size > 0) throw new Error('it has tables of another program')
    return false
  }
  const hasState = names.has(LAYOUT_TABLE)
  checkState(findState(connection), opener)
  const hasAll = (wanted: readonly string[]): boolean => wanted.every((name) => names.has(name))
  return hasState && oldestReader >= opener.layout.oldestReader && hasAll([STATE_TABLE, CHANGES_TABLE, PROBE_TABLE]) &&
    specs.every((spec) => hasAll([
      spec.name,
      ...listTriggers(spec).map((event) => nameTrigger(spec, event)),
      ...listItemFields(spec).map((field) => toItemsTable(spec, field)),
      ...listIndexes(spec).map(({ name }) => name)
    ]) && compareColumns(connection, spec).every((keys) => keys.length === 0))
}

/** Creates missing tables, columns, indexes and triggers, in one transaction. May take long: a new column is filled from all documents. */
export function migrate (connection: Connection, specs: readonly CollectionSpec[], opener: Opener = OPENER): void {
  const { database } = connection
  database.exec('BEGIN IMMEDIATE')
  try {
    if (!isCurrent(connection, specs, opener)) {
      removeEarlier(connection)
      database.exec(`CREATE TABLE IF NOT EXISTS ${KEYS} (collection TEXT, key TEXT, PRIMARY KEY (collection, key)) WITHOUT ROWID`)
      database.exec(`CREATE TABLE IF NOT EXISTS ${STATE} ("version" INTEGER);
        INSERT INTO ${STATE} SELECT random() WHERE NOT EXISTS (${READ_VERSION})`)
      database.exec(`CREATE TABLE IF NOT EXISTS ${quote(CHANGES_TABLE)} ("lines" TEXT NOT NULL);
        INSERT INTO ${quote(CHANGES_TABLE)} SELECT '' WHERE NOT EXISTS (${READ_CHANGES})`)
      database.exec(`CREATE TABLE IF NOT EXISTS ${quote(PROBE_TABLE)} ("id" INTEGER PRIMARY KEY, "data" BLOB)`)
      for (const spec of specs) createTable(connection, spec)
      createState(connection, opener.layout)
    }
    database.exec('COMMIT')
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}

/**
 * Creates a check for every transaction: whether the file still has the declared form. Another release that opens the file may
 * declare other keys. The documents that this process writes would lack their columns, and the other process would not find them. So
 * only the process that opened the file last goes on. The other one fails its writes, and with them its readiness check. The same
 * happens to a process that may no longer use the file.
 * @returns a function that throws Error when the check fails
 */
export function createSchemaCheck (connection: Connection, specs: readonly CollectionSpec[], opener: Opener = OPENER): () => void {
  let accepted: string | undefined
  return () => {
    const found = connection.getRow<{ state: string }>({ sql: SCHEMA_STATE, values: [] }).state
    if (found === accepted) return
    if (!isCurrent(connection, specs, opener)) throw new Error('another release has opened the database since: only processes of one release can write to it')
    accepted = found
  }
}

/** Removes the version tables of earlier builds, with their triggers. */
function removeEarlier ({ database }: Connection): void {
  for (const table of FORMER) {
    const triggers = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger' AND instr(sql, ?) > 0").all(table)
    for (const { name } of triggers) database.exec(`DROP TRIGGER ${quote(String(name))}`)
    database.exec(`DROP TABLE IF EXISTS ${table}`)
  }
}

function createTable (connection: Connection, spec: CollectionSpec): void {
  const { database } = connection
  const table = quote(spec.name)
  // All columns at once: each ALTER TABLE reads the whole schema anew.
  const declared = listColumns(spec).map((key) => `, ${quote(key)}`).join('')
  database.exec(`CREATE TABLE IF NOT EXISTS ${table} ("id" TEXT NOT NULL PRIMARY KEY, "doc" TEXT NOT NULL${declared})`)
  const columns = new Set(connection.all<{ name: string }>('SELECT name FROM pragma_table_info(?)', spec.name).map(({ name }) => name))
  const [missing, foreign] = compareColumns(connection, spec)
  for (const key of missing) if (!columns.has(key)) database.exec(`ALTER TABLE ${table} ADD COLUMN ${quote(key)}`)
  fill(connection, spec, missing)
  for (const { name, unique, keys } of listIndexes(spec)) {
    try {
      database.exec(`CREATE ${unique ? 'UNIQUE ' : ''}INDEX IF NOT EXISTS ${quote(name)} ON ${table} (${keys.map(quote).join(', ')})`)
    } catch (error) {
      if (findDuplicateField(error) === null) throw error
      throw new Error(`documents of ${spec.name} have duplicate values of ${keys[0]}, which must be unique`, { cause: error })
    }
  }
  for (const event of listTriggers(spec)) {
    database.exec(`CREATE TRIGGER IF NOT EXISTS ${quote(nameTrigger(spec, event))} AFTER ${event} ON ${table}
      BEGIN UPDATE ${STATE} SET "version" = NULL WHERE "version" IS NOT NULL; END`)
  }
  for (const field of listItemFields(spec)) createItems(connection, spec, field)
  for (const key of missing) connection.run({ sql: `INSERT INTO ${KEYS} VALUES (?, ?)`, values: [spec.name, key] })
  for (const key of foreign) connection.run({ sql: `DELETE FROM ${KEYS} WHERE collection = ? AND key = ?`, values: [spec.name, key] })
}

/**
 * Creates the table of a field of unique items or of words, and the triggers that update it when the field's column is written. A taken unique
 * item is refused before the row is written, because a failed statement undoes nothing (sql.ts).
 */
function createItems (connection: Connection, spec: CollectionSpec, field: string): void {
  const { database } = connection
  const [table, column, items] = [quote(spec.name), quote(field), quote(toItemsTable(spec, field))]
  const check = `SELECT RAISE(FAIL, 'UNIQUE constraint failed: ${toItemsTable(spec, field)}') FROM json_each(NEW.${column}) AS given
    JOIN ${items} AS taken ON taken."item" = given.value WHERE taken."id" <> NEW."id";`
  const add = `INSERT INTO ${items} SELECT DISTINCT given.value, NEW."id" FROM json_each(NEW.${column}) AS given;`
  const isUnique = spec.search?.field !== field
  const remove = isUnique
    ? `DELETE FROM ${items} WHERE "id" = OLD."id";`
    : `DELETE FROM ${items} WHERE "id" = OLD."id" AND "item" IN (SELECT value FROM json_each(OLD.${column}));`
  const change = `UPDATE OF ${column} ON ${table} WHEN OLD.${column} IS NOT NEW.${column}`
  const prefix = `${toItemsTable(spec, field)}.`
  // Triggers of an earlier release read the documents at every update.
  const stale = connection.all<{ name: string }>("SELECT name FROM sqlite_schema WHERE type = 'trigger' AND substr(name, 1, ?) = ?", prefix.length, prefix)
  for (const { name } of stale) database.exec(`DROP TRIGGER ${quote(name)}`)
  const trigger = (name: string, event: string, body: string) => database.exec(`CREATE TRIGGER ${quote(prefix + name)} ${event} BEGIN ${body} END`)
  const key = isUnique ? '"item"' : '"item", "id"'
  database.exec(`CREATE TABLE IF NOT EXISTS ${items} ("item" TEXT NOT NULL, "id" TEXT NOT NULL, PRIMARY KEY (${key})) WITHOUT ROWID`)
  if (isUnique) database.exec(`CREATE INDEX IF NOT EXISTS ${quote(`${prefix}id`)} ON ${items} ("id")`)
  database.exec(`DELETE FROM ${items}; INSERT INTO ${items} SELECT DISTINCT given.value, held."id" FROM ${table} AS held, json_each(held.${column}) AS given`)
  if (isUnique) {
    trigger('inserting', `BEFORE INSERT ON ${table}`, check)
    trigger('changing', `BEFORE ${change}`, check)
  }
  trigger('inserted', `AFTER INSERT ON ${table}`, add)
  trigger('changed', `AFTER ${change}`, `${remove} ${add}`)
  trigger('deleted', `AFTER DELETE ON ${table}`, remove)
}

/** The events that change the version of the content: none in a collection that look-ups ignore. */
function listTriggers ({ hidden }: CollectionSpec): readonly (typeof EVENTS[number])[] {
  return hidden === '' ? [] : EVENTS
}

function nameTrigger ({ name }: CollectionSpec, event: typeof EVENTS[number]): string {
  return `${name}.${event.toLowerCase()}`
}

/** Columns that are declared but not filled, and columns that are filled but not declared. */
function compareColumns (connection: Connection, spec: CollectionSpec): [missing: string[], foreign: string[]] {
  const declared = listColumns(spec)
  const filled = connection.all<{ key: string }>(`SELECT key FROM ${KEYS} WHERE collection = ?`, spec.name).map(({ key }) => key)
  return [declared.filter((key) => !filled.includes(key)), filled.filter((key) => !declared.includes(key))]
}

/** Fills columns from the documents, in steps of bounded memory. */
function fill (connection: Connection, spec: CollectionSpec, keys: string[]): void {
  if (keys.length === 0) return
  const table = quote(spec.name)
  const select = connection.prepare(`SELECT rowid AS row, "doc" FROM ${table} WHERE rowid > ? ORDER BY rowid LIMIT ${STEP}`)
  const update = connection.prepare(`UPDATE ${table} SET ${keys.map((key) => `${quote(key)} = ?`).join(', ')} WHERE rowid = ?`)
  for (let last = 0; ;) {
    const rows = select.all(last) as { row: number, doc: string }[]
    if (rows.length === 0) return
    for (const { row, doc } of rows) {
      update.run(...toColumns(spec, JSON.parse(doc) as object, keys), row)
      last = row
    }
  }
}

/**
 * A unique index allows any number of nulls in SQLite. It does not end with the id, so SQLite sorts runs of equal values as
 * it walks the index; apart from nulls, such a run is a single document.
 */
function listIndexes (spec: CollectionSpec): { name: string, unique: boolean, keys: string[] }[] {
  const { name, unique = [], indexes = [], expiry, search } = spec
  const plain = expiry === undefined || indexes.some(([first]) => first === expiry) ? indexes : [...indexes, [expiry]]
  return [
    ...unique.map((key) => ({ name: `${name}.${key}.unique`, unique: true, keys: [key] })),
    ...plain.map((keys) => ({ name: `${name}.${keys.join('.')}`, unique: false, keys: [...keys, 'id'] })),
    ...(search === undefined ? [] : [{ name: nameSearchIndex(spec), unique: false, keys: [search.order, 'id', search.field] }])
  ]
}
