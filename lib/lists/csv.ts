import { setImmediate as yieldTurn } from 'node:timers/promises'
import { writeToBuffer } from 'fast-csv'
import { ClientSchema } from '../../schemas/client.ts'
import { IdentityError } from '../errors.ts'

/** The columns of service.md, 4.4: the fields of a client, in the order of its schema. */
const COLUMNS = Object.keys(ClientSchema.properties)

export interface CsvOptions {
  /** Put a `'` before a cell that a spreadsheet would run as a formula. */
  escapeFormulae: boolean
}

/**
 * What a spreadsheet may take for the start of a formula (OWASP, CSV Injection), the full-width forms included.
 * fast-csv drops NUL, so a leading one does not hide the character behind it.
 */
const FORMULA = /^\0*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/

function toCell (value: unknown, { escapeFormulae }: CsvOptions): string {
  const text = typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value)
  return escapeFormulae && FORMULA.test(text) ? `'${text}` : text
}

function toRow (record: object, options: CsvOptions): string[] {
  const fields = record as Record<string, unknown>
  if (typeof fields.clientId !== 'string') throw new IdentityError('ErrRsc', 'the upstream sent a list that is not one of clients')
  return COLUMNS.map((column) => toCell(fields[column], options))
}

/**
 * Writes clients as CSV (RFC 4180): a byte-order mark, the header, one line per client, each ended by a newline. One
 * buffer per batch; the first also holds the header, even when there are no clients.
 * @throws IdentityError ErrRsc for a record that is not a client
 */
export async function * toCsv (batches: AsyncIterable<Iterable<object>>, options: CsvOptions): AsyncGenerator<Buffer> {
  let header: string[][] = [COLUMNS]
  const write = (rows: string[][]) => writeToBuffer([...header, ...rows], { writeBOM: header.length > 0, includeEndRowDelimiter: true })
  for await (const batch of batches) {
    const rows = Array.from(batch, (record) => toRow(record, options))
    if (rows.length === 0) continue
    yield await write(rows)
    header = []
    // A fast source and a fast reader would otherwise starve the event loop.
    await yieldTurn()
  }
  if (header.length > 0) yield await write([])
}
