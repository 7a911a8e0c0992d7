import { isUtf8 } from 'node:buffer'
import type { ImportItem } from '../../../schemas/import.ts'
import { begin } from './begin.ts'
import { Collector, TOO_LONG } from './records.ts'

const QUOTE = 0x22
const LINE_FEED = 0x0a
const RETURN = 0x0d

/** What some spreadsheets put between cells. */
const OTHER_SEPARATOR = /[;\t]/

/** A row of a CSV: its cells, or why it cannot be read. Its number counts rows, the header too. */
export type Row = { line: number, cells: string[] } | { line: number, reason: string }

/** Splits a row into its cells (RFC 4180). Quotes within a cell are doubled. */
function toCells (text: string): string[] {
  const cells: string[] = []
  const pattern = /(?:"([^"]*(?:""[^"]*)*)"|([^",]*))(,|$)/gy
  let isMore = true
  while (isMore) {
    const match = pattern.exec(text)
    // A quote in the middle of a cell.
    if (match === null) return []
    cells.push(match[1]?.replaceAll('""', '"') ?? match[2]!)
    isMore = match[3] === ','
  }
  return cells
}

/**
 * Reads CSV (RFC 4180), a comma between cells. Only quotes and line ends are looked for until a row is complete, and of a row that is too
 * long only the number is kept. csv-parse (7.0) does not read on after a row that is too long or has a quote at a wrong place, takes bytes
 * that are not UTF-8, and needs almost three times the processor time.
 */
export async function * readRows (body: AsyncIterable<Buffer>): AsyncGenerator<Row[]> {
  const { problem, chunks } = await begin(body)
  if (problem !== undefined) return yield [{ line: 1, reason: problem }]
  const collector = new Collector()
  let line = 0
  let isQuoted = false

  const take = (): Row[] => {
    const bytes = collector.take()
    if (bytes?.length === 0 || (bytes?.length === 1 && bytes[0] === RETURN)) return []
    line++
    if (bytes === null) return [{ line, reason: TOO_LONG }]
    if (!isUtf8(bytes)) return [{ line, reason: 'is not UTF-8' }]
    const cells = toCells(bytes.toString().replace(/\r$/, ''))
    return [cells.length === 0 ? { line, reason: 'has a quote in the middle of a cell' } : { line, cells }]
  }

  for await (const chunk of chunks) {
    const rows: Row[] = []
    let start = 0
    for (let at = 0; at < chunk.length; at++) {
      if (chunk[at] === QUOTE) isQuoted = !isQuoted
      else if (chunk[at] === LINE_FEED && !isQuoted) {
        collector.add(chunk.subarray(start, at))
        rows.push(...take())
        start = at + 1
      }
    }
    collector.add(chunk.subarray(start))
    yield rows
  }
  const last = take()
  yield isQuoted ? [{ line: line === 0 ? 1 : line, reason: 'the file ends here, within quotes: it is not complete' }] : last
}

/** Reads a CSV with a header: records by its names. */
export async function * readRecords (body: AsyncIterable<Buffer>): AsyncGenerator<ImportItem[]> {
  let header: string[] | undefined
  for await (const rows of readRows(body)) {
    const [first] = rows
    if (header === undefined && first !== undefined && 'cells' in first && first.cells.length === 1 && OTHER_SEPARATOR.test(first.cells[0]!)) {
      return yield [{ line: first.line, reason: 'the header has no comma: separate the cells with commas' }]
    }
    const records: ImportItem[] = []
    for (const row of rows) {
      if (!('cells' in row)) records.push(row)
      else if (header === undefined) header = row.cells.map((name) => name.trim())
      else if (row.cells.length !== header.length) {
        records.push({ line: row.line, reason: `has ${row.cells.length} cells, and the header has ${header.length}` })
      } else records.push({ line: row.line, value: Object.fromEntries(header.map((name, index) => [name, row.cells[index]!])) })
    }
    yield records
  }
}
