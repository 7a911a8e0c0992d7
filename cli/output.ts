import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { renderList } from '../lib/lists/listing.ts'
import type { Context, Result } from './command.ts'

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
export function printResult ({ stdout, json }: Pick<Context, 'stdout' | 'json'>, result: Result): void {
  const [record, note] = Array.isArray(result) ? result as [object, string?] : [result]
  if (json) {
    stdout.write(`${JSON.stringify(record)}\n`)
    return
  }
  const entries = Object.entries(record).filter(([, value]) => value !== undefined)
  const width = Math.max(...entries.map(([name]) => name.length))
  for (const [name, value] of entries) stdout.write(`${name.padEnd(width)}  ${toCell(Array.isArray(value) ? value.join(' ') : value)}\n`)
  if (note !== undefined) stdout.write(`\n${note}\n`)
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

function toLine (cells: string[], widths: number[]): string {
  return `${cells.map((cell, index) => cell.padEnd(widths[index] ?? 0)).join('  ').trimEnd()}\n`
}

/** The column widths come from the first batch: the heading is written before the others arrive. */
async function * writeTable<T> (batches: AsyncIterable<T[]>, columns: Columns<T>): AsyncGenerator<string> {
  const headings = Object.keys(columns)
  let widths: number[] | undefined
  for await (const batch of batches) {
    const rows = batch.map((record) => toCells(record, columns))
    if (widths === undefined) {
      widths = headings.map((heading, index) => Math.max(heading.length, ...rows.map((row) => row[index]?.length ?? 0)))
      yield toLine(headings, widths)
    }
    yield rows.map((row) => toLine(row, widths ?? [])).join('')
  }
  if (widths === undefined) yield 'none\n'
}

/** Prints a list while it is read, as a table or as `{ "data": [...] }`. */
export async function printList<T> ({ stdout, json, signal }: Context, batches: AsyncIterable<T[]>, columns: Columns<T>): Promise<void> {
  const body = json
    ? await renderList({ batches }, { format: 'object', stallTimeout: STALL_TIMEOUT })
    : Readable.from(writeTable(batches, columns))
  await pipeline(typeof body === 'string' ? [body] : body, stdout, { end: false, signal })
  if (json) stdout.write('\n')
}
