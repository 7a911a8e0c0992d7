import { JSONParser, TokenType } from '@streamparser/json'
import { IdentityError } from '../errors.ts'

type ListRecord = Record<string, unknown>

/** The maximum size of a record in bytes. It bounds the buffer, apart from one chunk. */
const MAX_RECORD = 1024 * 1024
/** Bytes per parsing step. The parser is slower than JSON.parse, and keeps its records in memory until the step is done. */
const DOCUMENT_STEP = 16 * 1024
const NEWLINE = 0x0a
const OPENING_BRACKET = 0x5b
const OPENING_BRACE = 0x7b
const JSON_SPACE = new Set([0x20, 0x09, 0x0a, 0x0d])

/** The error has no cause, because a parser's message repeats a part of the text, which may contain a secret. */
const notAList = () => new IdentityError('ErrRsc', 'the upstream sent a list that is not one')

const createDecoder = () => new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const decoder = createDecoder()

function checkRecord (value: unknown): ListRecord {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw notAList()
  return value as ListRecord
}

/** Parses complete lines. Blank ones are allowed. */
function parseLines (bytes: Buffer): ListRecord[] {
  try {
    return decoder.decode(bytes).split('\n').filter((line) => line.trim() !== '').map((line) => checkRecord(JSON.parse(line)))
  } catch {
    throw notAList()
  }
}

/** Reads newline-delimited JSON. A batch ends at the last newline of a chunk, so that no character is split. */
async function * readLines (body: AsyncIterable<Buffer>): AsyncGenerator<ListRecord[]> {
  let pieces: Buffer[] = []
  let held = 0
  for await (const chunk of body) {
    const end = chunk.lastIndexOf(NEWLINE) + 1
    if (held + (end === 0 ? chunk.length : chunk.indexOf(NEWLINE)) > MAX_RECORD) throw notAList()
    if (end > 0) {
      yield parseLines(Buffer.concat([...pieces, chunk.subarray(0, end)]))
      pieces = []
      held = 0
    }
    pieces.push(chunk.subarray(end))
    held += chunk.length - end
  }
  yield parseLines(Buffer.concat(pieces))
}

/**
 * Checks that the outer object has exactly one member `data`, and that it is an array. The parser's paths cannot check this: they
 * do not match anything in an empty list, and do not distinguish an array from an object of records.
 */
class WrapperCheck {
  #depth = 0
  #key: unknown
  #expectsList = false
  #found = false

  get found (): boolean {
    return this.#found
  }

  see (token: TokenType, value: unknown): void {
    if (this.#expectsList) {
      if (token !== TokenType.LEFT_BRACKET || this.#found) throw notAList()
      this.#found = true
      this.#expectsList = false
    }
    if (token === TokenType.LEFT_BRACKET || token === TokenType.LEFT_BRACE) this.#depth++
    else if (token === TokenType.RIGHT_BRACKET || token === TokenType.RIGHT_BRACE) this.#depth--
    else if (this.#depth === 1) {
      if (token === TokenType.COLON) this.#expectsList = this.#key === 'data'
      else this.#key = value
    }
  }
}

/**
 * Makes a parser keep U+FEFF. The parser decodes a string in parts, and its decoder drops U+FEFF at the start of each part as a
 * byte-order mark. The parser has no option for this, so its private decoder is replaced.
 * @throws Error when the parser has no such decoder. package.json pins the version that this code was written for
 */
export function replaceDecoder (parser: object): void {
  const strings: unknown = (parser as { tokenizer?: { bufferedString?: unknown } }).tokenizer?.bufferedString
  if (typeof strings !== 'object' || strings === null || !(Reflect.get(strings, 'decoder') instanceof TextDecoder)) {
    throw new Error('@streamparser/json has no tokenizer.bufferedString.decoder: its version is not the one this code was written for')
  }
  Reflect.set(strings, 'decoder', createDecoder())
}

// Makes an incompatible version fail when this module is loaded, not at the first list.
replaceDecoder(new JSONParser())

/** Parses a document in steps, and returns the records that each step completes. */
class DocumentParser {
  readonly #parser: JSONParser
  readonly #wrapper: WrapperCheck | undefined
  #records: ListRecord[] = []

  /** @param opening the first byte of the document */
  constructor (opening: number) {
    const isBare = opening === OPENING_BRACKET
    if (!isBare && opening !== OPENING_BRACE) throw notAList()
    // With a path that also matches the list itself, the parser would keep every record, even with keepStack off.
    this.#parser = new JSONParser({ paths: [isBare ? '$.*' : '$.data.*'], keepStack: false })
    replaceDecoder(this.#parser)
    this.#parser.onValue = ({ value }) => { this.#records.push(checkRecord(value)) }
    if (isBare) return
    const wrapper = this.#wrapper = new WrapperCheck()
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
      throw notAList()
    }
  }
}

/** Reads one JSON document: an array, or an object whose `data` is an array. */
async function * readDocument (body: AsyncIterable<Buffer>): AsyncGenerator<ListRecord[]> {
  let parser: DocumentParser | undefined
  let held = 0
  for await (const chunk of body) {
    for (let start = 0; start < chunk.length; start += DOCUMENT_STEP) {
      const part = chunk.subarray(start, start + DOCUMENT_STEP)
      const opening = parser === undefined ? part.find((byte) => !JSON_SPACE.has(byte)) : undefined
      if (opening !== undefined) parser = new DocumentParser(opening)
      const records = parser?.read(part) ?? []
      held = records.length > 0 ? 0 : held + part.length
      if (held > MAX_RECORD) throw notAList()
      if (records.length > 0) yield records
    }
  }
  if (parser === undefined) throw notAList()
  parser.end()
}

/**
 * Reads a streamed list. Each batch has the records that a chunk completes, and may be empty. One chunk and at most one incomplete
 * record are buffered.
 * @param contentType the type of the body: NDJSON, or JSON as an array or as an object whose `data` is an array
 * @throws IdentityError ErrRsc when the body is not a list, as soon as its bytes show it
 */
export function readList (body: AsyncIterable<Buffer>, contentType: string): AsyncGenerator<ListRecord[]> {
  const type = contentType.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  if (/^application\/(x-)?(ndjson|jsonl)$/.test(type)) return readLines(body)
  if (/^application\/(.+\+)?json$/.test(type)) return readDocument(body)
  throw notAList()
}
