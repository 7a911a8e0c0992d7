import Assembler from 'stream-json/core/assembler.js'
import { type Token, jsonParser } from 'stream-json/core/parser.js'
import { IdentityError } from '../errors.ts'

type ListRecord = Record<string, unknown>

/** The maximum size of a record in bytes. It bounds the buffer, apart from one chunk. */
const MAX_RECORD = 1024 * 1024
/** Bytes per parsing step. The parser is slower than JSON.parse, and keeps its tokens in memory until the step is done. */
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

/** How many levels of nesting a token adds. */
function toStep ({ name }: Token): number {
  if (name === 'startObject' || name === 'startArray') return 1
  return name === 'endObject' || name === 'endArray' ? -1 : 0
}

/** Parses a document in steps, and returns the records that each step completes. */
class DocumentParser {
  readonly #decoder = createDecoder()
  readonly #parse = jsonParser({ streamValues: false })
  readonly #assembler = new Assembler<ListRecord>()
  #depth = 0
  /** The depth of the records, while the list is open. */
  #list: number | undefined
  #wasFound = false
  /** Whether the next value is that of `data` in the outer object. */
  #isNext = false

  /** @returns the records that the chunk completes */
  read (chunk: Buffer): ListRecord[] {
    try {
      const tokens = this.#parse(this.#decoder.decode(chunk, { stream: true }))
      const records: ListRecord[] = []
      if (typeof tokens === 'symbol') return records
      for (const token of tokens.values) {
        const record = this.#see(token)
        if (record !== undefined) records.push(record)
      }
      return records
    } catch {
      throw notAList()
    }
  }

  /** @throws IdentityError when the document is not complete */
  end (): void {
    try {
      this.#decoder.decode()
    } catch {
      throw notAList()
    }
    if (this.#depth > 0 || !this.#wasFound) throw notAList()
  }

  /** @returns the record that the token completes */
  #see (token: Token): ListRecord | undefined {
    const before = this.#depth
    this.#depth += toStep(token)
    if (this.#list === undefined) this.#find(token, before)
    else if (this.#depth < this.#list) this.#list = undefined
    else {
      if (before === this.#list && token.name !== 'startObject') throw notAList()
      const record = this.#assembler.tapChain(token)
      if (typeof record !== 'symbol') return record
    }
  }

  /** Finds the list outside of it: the document, or the one member `data` of the outer object. */
  #find (token: Token, depth: number): void {
    const begins = this.#isNext || (depth === 0 && token.name === 'startArray')
    if (begins) {
      if (token.name !== 'startArray' || this.#wasFound) throw notAList()
      this.#wasFound = true
      this.#list = this.#depth
    }
    this.#isNext = depth === 1 && token.name === 'keyValue' && token.value === 'data'
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
      if (opening === OPENING_BRACKET || opening === OPENING_BRACE) parser = new DocumentParser()
      else if (opening !== undefined) throw notAList()
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
