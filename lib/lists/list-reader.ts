import { isUtf8 } from 'node:buffer'
import { JSONParser, TokenType } from '@streamparser/json'
import { hasControls } from './csv-line.ts'
import { IdentityError } from '../errors.ts'

export type ListRecord = Record<string, unknown>
/** A record, or the row that was made of its line. */
export type ListItem = ListRecord | string

/** Makes a row of a line of JSON; null for one to be parsed. What holds controls is not given to it. */
export type ToRow = (line: string) => string | null

/** Bytes of one record at most, give or take a chunk: what is held of a list at any time. */
const MAX_RECORD = 1024 * 1024
/** Bytes of a document at a time: the parser takes longer over them than JSON.parse, and keeps the records till the end. */
const DOCUMENT_STEP = 16 * 1024
const NEWLINE = 0x0a
const OPENING_BRACKET = 0x5b
const OPENING_BRACE = 0x7b
const JSON_SPACE = new Set([0x20, 0x09, 0x0a, 0x0d])

const notAList = () => new IdentityError('ErrRsc', 'the upstream sent a list that is not one')

function isRecord (value: unknown): value is ListRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function parseLine (line: string): ListRecord {
  let record: unknown
  try {
    record = JSON.parse(line)
  } catch {
    // The parser's own message repeats a part of the line, which may hold a secret.
    throw notAList()
  }
  if (!isRecord(record)) throw notAList()
  return record
}

/** What is on the complete lines of each part, looked at when it is asked for. Blank lines are allowed. */
function * parseLines (parts: readonly Buffer[], toRow: ToRow | undefined): Generator<ListItem> {
  for (const bytes of parts) {
    if (!isUtf8(bytes)) throw notAList()
    const makeRow = toRow !== undefined && !hasControls(bytes) ? toRow : () => null
    const text = bytes.toString('utf8')
    for (let start = 0, end = 0; start < text.length; start = end + 1) {
      end = text.indexOf('\n', start)
      if (end === -1) end = text.length
      const line = text.slice(start, end)
      const row = makeRow(line)
      if (row !== null) yield row
      else if (line.trim() !== '') yield parseLine(line)
    }
  }
}

/** Newline-delimited JSON: a chunk is cut at its last newline, where no character is split either. */
async function * readLines (body: AsyncIterable<Buffer>, toRow: ToRow | undefined): AsyncGenerator<Iterable<ListItem>> {
  let pieces: Buffer[] = []
  let held = 0
  for await (const chunk of body) {
    const end = chunk.lastIndexOf(NEWLINE) + 1
    if (end > 0) {
      // The line that was begun is put together; the others stay where they are.
      const newline = chunk.indexOf(NEWLINE)
      if (held + newline > MAX_RECORD) throw notAList()
      const first = held === 0 ? 0 : newline + 1
      yield parseLines([Buffer.concat([...pieces, chunk.subarray(0, first)]), chunk.subarray(first, end)], toRow)
      pieces = []
      held = 0
    }
    if (end < chunk.length) {
      pieces.push(chunk.subarray(end))
      held += chunk.length - end
      if (held > MAX_RECORD) throw notAList()
    }
  }
  if (held > 0) yield parseLines([Buffer.concat(pieces)], toRow)
}

/**
 * Watches for the member `data` of the outer object and that it is an array, which the parser's paths cannot tell:
 * neither an empty list from none, nor an array from an object of records.
 */
class Wrapper {
  #depth = 0
  #key: unknown
  #awaitsData = false
  #found = false

  get found (): boolean {
    return this.#found
  }

  see (token: TokenType, value: unknown): void {
    if (this.#awaitsData) {
      if (token !== TokenType.LEFT_BRACKET || this.#found) throw notAList()
      this.#found = true
      this.#awaitsData = false
    }
    if (token === TokenType.LEFT_BRACKET || token === TokenType.LEFT_BRACE) this.#depth++
    else if (token === TokenType.RIGHT_BRACKET || token === TokenType.RIGHT_BRACE) this.#depth--
    else if (this.#depth === 1) {
      if (token === TokenType.COLON) this.#awaitsData = this.#key === 'data'
      else this.#key = value
    }
  }
}

/**
 * The parser (0.0.26) decodes a string in runs, and drops U+FEFF at the start of each for a byte-order mark. It has no
 * option for that, so its decoder is replaced by one that keeps what it finds.
 */
function keepMarks (parser: JSONParser): void {
  const strings: object | undefined = Reflect.get(Reflect.get(parser, 'tokenizer') as object, 'bufferedString')
  if (strings !== undefined) Reflect.set(strings, 'decoder', new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }))
}

/** Takes a document in pieces and gives the records that each completes. */
class DocumentReader {
  readonly #parser: JSONParser
  readonly #wrapper: Wrapper | undefined
  #records: ListRecord[] = []

  /** @param opening the first byte of the document */
  constructor (opening: number) {
    const bare = opening === OPENING_BRACKET
    if (!bare && opening !== OPENING_BRACE) throw notAList()
    // No path matches what holds the records: the parser would keep every one of them, keepStack or not.
    this.#parser = new JSONParser({ paths: [bare ? '$.*' : '$.data.*'], keepStack: false })
    keepMarks(this.#parser)
    this.#parser.onValue = ({ value }) => {
      if (!isRecord(value)) throw notAList()
      this.#records.push(value)
    }
    if (bare) return
    const wrapper = this.#wrapper = new Wrapper()
    this.#parser.onToken = ({ token, value }) => wrapper.see(token, value)
  }

  read (chunk: Buffer): ListRecord[] {
    this.#records = []
    this.#try(() => this.#parser.write(chunk))
    return this.#records
  }

  end (): void {
    this.#try(() => { if (!this.#parser.isEnded) this.#parser.end() })
    if (this.#wrapper?.found === false) throw notAList()
  }

  #try (step: () => void): void {
    try {
      step()
    } catch {
      // The parser's own message repeats a part of the text, which may hold a secret.
      throw notAList()
    }
  }
}

/** One JSON document: a list that is bare, or wrapped as `data`. */
async function * readDocument (body: AsyncIterable<Buffer>): AsyncGenerator<Iterable<ListRecord>> {
  let reader: DocumentReader | undefined
  let held = 0
  for await (const chunk of body) {
    for (let start = 0; start < chunk.length; start += DOCUMENT_STEP) {
      const part = chunk.subarray(start, start + DOCUMENT_STEP)
      const opening = reader === undefined ? part.find((byte) => !JSON_SPACE.has(byte)) : undefined
      if (opening !== undefined) reader = new DocumentReader(opening)
      const records = reader?.read(part) ?? []
      held = records.length > 0 ? 0 : held + part.length
      if (held > MAX_RECORD) throw notAList()
      if (records.length > 0) yield records
    }
  }
  if (reader === undefined) throw notAList()
  reader.end()
}

/**
 * Reads a list of records as it streams, in batches of what each chunk completes. Holds one chunk and at most one
 * unfinished record. Throws ErrRsc when the body is not a list: where its bytes show it, in a batch or before one.
 * @param contentType of the body: NDJSON, or JSON as an array or as an object whose `data` is one
 * @param toRow spares NDJSON the parsing, where it can
 */
export function readList (body: AsyncIterable<Buffer>, contentType: string, toRow?: ToRow): AsyncGenerator<Iterable<ListItem>> {
  const type = contentType.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  if (/^application\/(x-)?(ndjson|jsonl)$/.test(type)) return readLines(body, toRow)
  if (/^application\/(.+\+)?json$/.test(type)) return readDocument(body)
  throw notAList()
}
