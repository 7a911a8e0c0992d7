import { once } from 'node:events'
import { setImmediate as yieldTurn } from 'node:timers/promises'
import { format } from 'fast-csv'
import type { Client } from '../../schemas/client.ts'
import { IdentityError } from '../errors.ts'

/** The columns of a CSV without `fields`. */
const COLUMNS: readonly (keyof Client)[] = ['clientId', 'createdAt', 'modifiedAt', 'clientSecret', 'redirectUris', 'scopes', 'userId', 'name', 'image']

interface CsvOptions {
  /** Whether to put a `'` before a cell that a spreadsheet would run as a formula. */
  escapeFormulae: boolean
  /** The columns. Absent: COLUMNS. */
  columns?: readonly string[] | undefined
  /** Whether a record belongs in the list. Absent: checks that it is a client. */
  isRecord?: ((record: object) => boolean) | undefined
}

/** Invisible characters. A spreadsheet may skip them, and fast-csv drops NUL. The patterns below handle line breaks. */
const INVISIBLE = '(?![\\r\\n])[\\s\\p{Cc}\\p{Cf}\\p{Z}\\p{Default_Ignorable_Code_Point}\\u2800]'

/** The first character of a formula (OWASP, CSV Injection), including full-width forms. */
const SIGN = '[=+\\-@\\uff1d\\uff0b\\uff0d\\uff20]'

/** A text that a spreadsheet may treat as the start of a formula. */
const FORMULA = new RegExp(`^\\0*(?:[\\t\\r\\n]|(?:${INVISIBLE})*${SIGN})`, 'u')

/** The end of a cell in a spreadsheet with `;` as list separator. There a quote in the middle of a line gives no protection. */
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
 * Writes records as CSV (RFC 4180): a byte-order mark, the header, and one line per record, each with a newline at its end. It
 * yields one buffer per batch. The first buffer also contains the header, even when there are no records.
 * @throws IdentityError ErrRsc for a record that `isRecord` refuses
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
    // Lets the formatter emit its lines, and keeps a fast source with a fast reader from starving the event loop.
    await yieldTurn()
    yield takeLines()
  }
  csv.end()
  await once(csv, 'end')
  yield takeLines()
}
