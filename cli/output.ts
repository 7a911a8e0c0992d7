import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { renderList } from '../lib/lists/listing.ts'
import type { Context, Result } from './command.ts'
import { wrap } from './look.ts'
import { type Hints, Table, toFieldLines } from './table.ts'

/** Milliseconds for which a reader of our output may pause: a day, since a user may be paging through it. */
const STALL_TIMEOUT = 24 * 60 * 60 * 1000

/** Control characters of a terminal, and those that change the writing direction. Users choose these texts. */
// eslint-disable-next-line no-control-regex
const UNSAFE = /[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

/** A value as it is shown on a terminal. */
export function toCell (value: unknown): string {
  const text = value === undefined || value === null ? '' : String(value)
  return text.replace(UNSAFE, '?')
}

/** Prints one result: a line for each field, or JSON. */
export function printResult ({ stdout, json, look }: Pick<Context, 'stdout' | 'json' | 'look'>, result: Result): void {
  const [record, note] = Array.isArray(result) ? result as [object, string?] : [result]
  if (json) {
    stdout.write(`${JSON.stringify(record)}\n`)
    return
  }
  const fields = Object.entries(record).filter(([, value]) => value !== undefined)
    .map(([name, value]): [string, string] => [name, toCell(Array.isArray(value) ? value.join(' ') : value)])
  stdout.write(toFieldLines(fields, look))
  if (note !== undefined) stdout.write(`\n${look.width === undefined ? note : wrap(note, { width: look.width })}\n`)
}

/** The field or the value of each column, by heading. */
export type Columns<T> = Record<string, (keyof T & string) | ((record: T) => unknown)>

/** The cells of a record. */
export function toCells<T> (record: T, columns: Columns<T>): string[] {
  return Object.values(columns).map((read) => toCell(typeof read === 'function' ? read(record) : record[read]))
}

/** A list that has been read, for `printList`. */
export async function * toBatches<T> (list: T[]): AsyncGenerator<T[]> {
  if (list.length > 0) yield list
}

/** The rows of a list as text, while it is read. */
async function * writeTable<T> (batches: AsyncIterable<T[]>, columns: Columns<T>, table: Table): AsyncGenerator<string> {
  let count = 0
  for await (const batch of batches) {
    count += batch.length
    yield table.write(batch.map((record) => toCells(record, columns)))
  }
  yield count === 0 ? 'none\n' : table.end()
}

/** Prints a list while it is read, as a table or as `{ "data": [...] }`. */
export async function printList<T> (
  { stdout, json, look, signal }: Context, batches: AsyncIterable<T[]>, columns: Columns<T>, hints: Hints = {}
): Promise<void> {
  const body = json
    ? await renderList({ batches }, { format: 'object', stallTimeout: STALL_TIMEOUT })
    : Readable.from(writeTable(batches, columns, new Table(Object.keys(columns), look, hints)))
  await pipeline(typeof body === 'string' ? [body] : body, stdout, { end: false, signal })
  if (json) stdout.write('\n')
}
