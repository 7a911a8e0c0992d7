import { once } from 'node:events'
import { setImmediate as yieldTurn } from 'node:timers/promises'
import { format } from 'fast-csv'
import type { Client } from '../../schemas/client.ts'
import { IdentityError } from '../errors.ts'

/** The columns of a CSV without `fields`. */
const COLUMNS: readonly (keyof Client)[] = ['clientId', 'createdAt', 'modifiedAt', 'clientSecret', 'redirectUris', 'scopes', 'userId', 'name', 'image']

export interface CsvOptions {
  /** Put a `'` before a cell that a spreadsheet would run as a formula. */
  escapeFormulae: boolean
  /** The columns; the usual ones by default. */
  columns?: readonly string[] | undefined
  /** Whether a record is one of the list. Absent: whether it is a client. */
  isRecord?: ((record: object) => boolean) | undefined
}

/** Characters that show nothing: a spreadsheet may skip them, and fast-csv drops NUL. Line breaks are for the next patterns. */
const INVISIBLE = '(?![\\r\\n])[\\s\\p{Cc}\\p{Cf}\\p{Z}\\p{Default_Ignorable_Code_Point}\\u2800]'

/** The first character of a formula (OWASP, CSV Injection), the full-width forms included. */
const SIGN = '[=+\\-@\\uff1d\\uff0b\\uff0d\\uff20]'

/** What a spreadsheet may take for the start of a formula. */
const FORMULA = new RegExp(`^\\0*(?:[\\t\\r\\n]|(?:${INVISIBLE})*${SIGN})`, 'u')

/** The end of a cell where the list separator is a semicolon: there a quote in the middle of a line protects nothing. */
const NEXT_FORMULA = new RegExp(`[;\\r\\n](?=(?:"|${INVISIBLE})*${SIGN})|;(?="*[\\t\\r\\n])`, 'gu')

function toCell (value: unknown, { escapeFormulae }: CsvOptions): string {
  const text = typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value)
  if (!escapeFormulae) return text
  return (FORMULA.test(text) ? "'" : '') + text.replace(NEXT_FORMULA, "$&'")
}

function toRow (record: object, options: CsvOptions): string[] {
  const fields = record as Record<string, unknown>
  const { isRecord = () => typeof fields.clientId === 'string' } = options
  if (!isRecord(record)) throw new IdentityError('ErrRsc', 'the upstream sent a list that is not one of clients')
  return (options.columns ?? COLUMNS).map((column) => toCell(fields[column], options))
}

/**
 * Writes records as CSV (RFC 4180): a byte-order mark, the header, one line per record, each ended by a newline. One
 * buffer per batch; the first also holds the header, even when there are no clients.
 * @throws IdentityError ErrRsc for a record that is not a client
 */
export async function * toCsv (batches: AsyncIterable<readonly object[]>, options: CsvOptions): AsyncGenerator<Buffer> {
  const csv = format<string[], string[]>({ writeBOM: true, includeEndRowDelimiter: true })
  let lines: Buffer[] = []
  const takeLines = () => {
    const buffer = Buffer.concat(lines)
    lines = []
    return buffer
  }
  csv.on('data', (line: Buffer) => lines.push(line))
  csv.write([...options.columns ?? COLUMNS])
  for await (const batch of batches) {
    if (batch.length === 0) continue
    for (const record of batch) csv.write(toRow(record, options))
    // The formatter emits its lines meanwhile, and a fast source with a fast reader does not starve the event loop.
    await yieldTurn()
    yield takeLines()
  }
  csv.end()
  await once(csv, 'end')
  yield takeLines()
}
