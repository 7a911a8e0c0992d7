import { setImmediate as breathe } from 'node:timers/promises'
import { CsvFormatterStream, FormatterOptions } from 'fast-csv'
import { isPlainStart } from './csv-line.ts'
import { IdentityError } from '../errors.ts'
import type { ListItem, ListRecord } from './list-reader.ts'

/** The columns of a client list, in the order of service.md, 4.4. */
export const CLIENT_COLUMNS = [
  'clientId', 'createdAt', 'modifiedAt', 'clientSecret', 'redirectUris', 'scopes', 'userId', 'name', 'image'
] as const

export interface CsvOptions {
  /** Put a `'` before a cell that a spreadsheet would run as a formula. */
  escapeFormulae: boolean
}

/**
 * What a spreadsheet may take for the start of a formula (OWASP, CSV Injection), the full-width forms included.
 * fast-csv drops NUL, so that one in front does not hide the character behind it.
 */
const FORMULA = /^\0*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/

/**
 * fast-csv's formatter without its stream: rows go in and their text is collected, a batch at a time. A stream event for
 * each row would cost more than the row.
 */
class Formatter extends CsvFormatterStream<string[], string[]> {
  #text = ''
  #failed: Error | undefined

  readonly #settle = (error?: Error | null): void => {
    if (error != null) this.#failed = error
  }

  override push (chunk: Buffer | string): boolean {
    this.#text += chunk.toString()
    return true
  }

  add (cells: string[]): void {
    this._transform(cells, 'utf8', this.#settle)
  }

  /** Adds a row that is written. It is never the first: that is the header. */
  addRow (row: string): void {
    this.#text += `\n${row}`
  }

  close (): void {
    this._flush(this.#settle)
  }

  collect (): Buffer {
    if (this.#failed !== undefined) throw this.#failed
    const text = this.#text
    this.#text = ''
    return Buffer.from(text)
  }
}

/** The text of a cell. */
function toText (value: unknown): string {
  if (typeof value === 'string') return value
  if (value === undefined || value === null) return ''
  return JSON.stringify(value)
}

/** The same, escaped. */
function toSafeText (value: unknown): string {
  const text = toText(value)
  return !isPlainStart(text) && FORMULA.test(text) ? `'${text}` : text
}

/** The cells of one client, in the order of the columns. Throws ErrRsc for a record that is none. */
function toCells (client: ListRecord, cell: (value: unknown) => string): string[] {
  if (typeof client.clientId !== 'string') throw new IdentityError('ErrRsc', 'the upstream sent a list that is not one of clients')
  // Written out: a loop over names costs as much as the rest of the row.
  return [
    cell(client.clientId), cell(client.createdAt), cell(client.modifiedAt), cell(client.clientSecret), cell(client.redirectUris),
    cell(client.scopes), cell(client.userId), cell(client.name), cell(client.image)
  ]
}

/**
 * Writes clients as CSV: a byte-order mark, the header line, a row for each client, every line ended by a newline.
 * RFC 4180's quoting, and nothing trimmed; NUL characters are left out. One buffer for each batch, and the first one
 * holds the head even when the list is empty. Throws ErrRsc for a record that is not a client.
 * @param batches of clients, or of rows that are written
 */
export async function * toCsv (batches: AsyncIterable<Iterable<ListItem>>, options: CsvOptions): AsyncGenerator<Buffer> {
  const formatter = new Formatter(new FormatterOptions({ writeBOM: true, includeEndRowDelimiter: true }))
  const cell = options.escapeFormulae ? toSafeText : toText
  formatter.add([...CLIENT_COLUMNS])
  for await (const batch of batches) {
    for (const item of batch) {
      if (typeof item === 'string') formatter.addRow(item)
      else formatter.add(toCells(item, cell))
    }
    yield formatter.collect()
    // A fast source and a fast reader would pass batches for long without anyone else's turn.
    await breathe()
  }
  formatter.close()
  yield formatter.collect()
}
