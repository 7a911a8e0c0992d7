/**
 * Tables. On a terminal they keep to its width; elsewhere they are complete.
 * @module
 */
import { cut, type Look, measure, pad, wrap } from './look.ts'

const GAP = '  '

/** The fewest columns of a text that is cut. */
const LEAST = 10

/** As many columns of a text are enough to read a list: others give way before more is cut. */
const ENOUGH = 20

/** A stored time, of which a narrow terminal shows the minute. */
const TIME = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d(?:\.\d+)?Z$/

/** An id: a ULID, and mostly eight random characters. */
const ID = /\b[0-7][0-9A-HJKMNP-TV-Z]{25}([0-9A-Za-z]{8})?\b/

const IDS = new RegExp(ID, 'g')

/** The end of an id. Its beginning is a time, which ids of one day share. */
const shortenId = (id: string): string => `…${id.slice(-8)}`

const sum = (numbers: number[]): number => numbers.reduce((total, one) => total + one, 0)

/** A list of names, such as scopes, which may be broken. */
const LIST = /^[\w:.-]+(,[\w:.-]+)+$/

const breakList = (list: string): string => list.replaceAll(',', ', ')

/** Writes fields, a line for each. A terminal breaks long lines at spaces. */
export function toFieldLines (fields: [name: string, value: string][], { width, paint }: Look): string {
  const indent = Math.max(...fields.map(([name]) => name.length)) + 2
  return fields.map(([name, value]) =>
    `${paint('bold', name.padEnd(indent))}${width === undefined ? value : wrap(value.replace(LIST, breakList), { width, indent })}\n`).join('')
}

/** How a table is written: with these widths, or as a record for each row where there is no room for columns. */
type Layout = { columns: number[], widths: number[], isShort: boolean } | 'records'

/** What a narrow terminal may do to columns, by their headings. */
export interface Hints {
  /** Ids that may be shortened, because a name stands beside. */
  short?: readonly string[]
  /** What commands take: it is cut last. */
  keep?: readonly string[]
  /** Columns that are left out first, in this order. Those without a value are left out before. */
  leave?: readonly string[]
}

/** A table that is written batch by batch. The first one decides the widths. */
export class Table {
  readonly #headings: string[]
  readonly #look: Look
  readonly #hints: Hints
  #layout: Layout | undefined
  #isShortened = false

  constructor (headings: string[], look: Look, hints: Hints = {}) {
    this.#headings = headings
    this.#look = look
    this.#hints = hints
  }

  /** The text of further rows. */
  write (rows: string[][]): string {
    const isFirst = this.#layout === undefined
    this.#layout ??= this.#chooseLayout(rows)
    if (this.#layout === 'records') return this.#writeRecords(rows, isFirst)
    const { columns, widths, isShort } = this.#layout
    const pick = (row: string[]) => columns.map((column) => row[column] ?? '')
    if (rows.some((row) => row.some((cell, column) => cell !== '' && !columns.includes(column)))) this.#isShortened = true
    const lines = (isShort ? rows.map((row) => this.#shorten(row)) : rows).map((row) => this.#writeLine(pick(row), widths))
    return (isFirst ? `${this.#look.paint('bold', this.#writeLine(pick(this.#headings), widths).trimEnd())}\n` : '') + lines.join('')
  }

  /** The text after the last row: what a reader of shortened cells does. */
  end (): string {
    return this.#isShortened ? `\n${this.#look.paint('dim', 'Shortened to fit: --json shows everything.')}\n` : ''
  }

  #measure (rows: string[][]): number[] {
    return this.#headings.map((heading, index) => Math.max(heading.length, ...rows.map((row) => measure(row[index] ?? ''))))
  }

  /** Chooses the columns of a narrow table. Those without a value go first, and then those of `leave`, in its order, until the rest fits. */
  #chooseColumns (rows: string[][]): number[] {
    const widths = this.#measure(rows).map((one) => Math.min(one, ENOUGH))
    let columns = this.#headings.map((_, column) => column).filter((column) => rows.some((row) => row[column] !== ''))
    for (const heading of this.#hints.leave ?? []) {
      if (sum(columns.map((column) => widths[column] ?? 0)) <= this.#findRoom(columns)) break
      columns = columns.filter((column) => this.#headings[column] !== heading)
    }
    return columns
  }

  #findRoom (columns: number[]): number {
    return (this.#look.width ?? Infinity) - GAP.length * (columns.length - 1)
  }

  #chooseLayout (rows: string[][]): Layout {
    const all = this.#headings.map((_, column) => column)
    const natural = this.#measure(rows)
    if (sum(natural) <= this.#findRoom(all)) return { columns: all, widths: natural, isShort: false }
    const shortened = rows.map((row) => this.#shorten(row))
    const columns = this.#chooseColumns(shortened)
    const room = this.#findRoom(columns)
    const measured = this.#measure(shortened)
    const widths = columns.map((column) => measured[column] ?? 0)
    const headings = columns.map((column) => this.#headings[column] ?? '')
    // What somebody copies is never cut in the middle.
    const isWhole = (column = 0) => shortened.some((row) => ID.test(row[column] ?? '') || /^\d{4}-\d\d-\d\d /.test(row[column] ?? ''))
    const least = widths.map((one, index) => isWhole(columns[index]) ? one : Math.min(one, Math.max(LEAST, headings[index]?.length ?? 0)))
    if (sum(least) > room) {
      this.#isShortened = false
      return 'records'
    }
    const isKept = headings.map((heading) => this.#hints.keep?.includes(heading) === true)
    while (sum(widths) > room) {
      // The widest that may be cut gives way.
      const spare = widths.map((one, index) => one > (least[index] ?? 0) ? one : 0)
      const first = spare.map((one, index) => isKept[index] === true ? 0 : one)
      const widest = first.some((one) => one > 0) ? first.indexOf(Math.max(...first)) : spare.indexOf(Math.max(...spare))
      widths[widest] = (widths[widest] ?? 0) - 1
    }
    return { columns, widths, isShort: true }
  }

  #shorten (row: string[]): string[] {
    return row.map((cell, index) => {
      const time = cell.replace(TIME, '$1 $2')
      const shortened = this.#hints.short?.includes(this.#headings[index] ?? '') === true ? time.replace(IDS, shortenId) : time
      if (shortened !== cell) this.#isShortened = true
      return shortened
    })
  }

  #writeLine (row: string[], widths: number[]): string {
    const join = (cells: string[]) => cells.map((cell, index) => pad(cell, widths[index] ?? 0)).join(GAP).trimEnd()
    const line = join(row)
    if (this.#look.width === undefined || measure(line) <= this.#look.width) return `${line}\n`
    this.#isShortened = true
    return `${join(row.map((cell, index) => cut(cell, widths[index] ?? 0)))}\n`
  }

  #writeRecords (rows: string[][], isFirst: boolean): string {
    return rows.map((row, index) => {
      const fields = row.map((cell, column): [string, string] => [this.#headings[column] ?? '', cell]).filter(([, cell]) => cell !== '')
      return `${isFirst && index === 0 ? '' : '\n'}${toFieldLines(fields, this.#look)}`
    }).join('')
  }
}
