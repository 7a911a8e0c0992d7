import { once } from 'node:events'
import { setImmediate as yieldTurn } from 'node:timers/promises'
import { format } from 'fast-csv'
import type { Client } from '../../schemas/client.ts'
import { IdentityError } from '../errors.ts'

/** The columns of service.md, 4.4. */
const COLUMNS: readonly (keyof Client)[] = ['clientId', 'createdAt', 'modifiedAt', 'clientSecret', 'redirectUris', 'scopes', 'userId', 'name', 'image']

export interface CsvOptions {
  /** Put a `'` before a cell that a spreadsheet would run as a formula. */
  escapeFormulae: boolean
  /** The columns; absent: those of service.md. */
  columns?: readonly string[] | undefined
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
  return (options.columns ?? COLUMNS).map((column) => toCell(fields[column], options))
}

/**
 * Writes clients as CSV (RFC 4180): a byte-order mark, the header, one line per client, each ended by a newline. One
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
