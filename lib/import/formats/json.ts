import { isUtf8 } from 'node:buffer'
import type { ImportItem } from '../../../schemas/import.ts'
import { readLines } from '../read-lines.ts'
import { begin } from './begin.ts'
import { Collector, isSpace, MAX_RECORD, TOO_LONG } from './records.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const COMMA = 0x2c
const BRACKET = 0x5b
const BRACE = 0x7b

/** Characters of a key that are kept. */
const KEY = 64

const isOpening = (byte: number): boolean => byte === BRACE || byte === BRACKET
const isClosing = (byte: number): boolean => byte === BRACE + 2 || byte === BRACKET + 2

/**
 * Splits JSON arrays into the objects that they have, by brackets and strings alone: what is within a record is parsed afterwards. So a
 * record that is too long, too deep or not JSON is refused by itself, and is never held whole. Files that were joined are read one after
 * the other. `line` counts the records.
 */
class ArraySplitter {
  readonly #key: string | undefined
  readonly #collector = new Collector()
  #line = 1
  #depth = 0
  /** The depth within the array; undefined outside of it. */
  #list: number | undefined
  #wasFound = false
  #isOver = false
  #inString = false
  #isEscaped = false
  #inRecord = false
  /** The beginning of the last string outside of a record: a key of the outer object. */
  #text = ''
  /** Whether the next value is that of `key`. */
  #isNext = false

  /** @param key the member of the outer object that is the array; undefined: the array is the document */
  constructor (key: string | undefined) {
    this.#key = key
  }

  /** @returns the records that the chunk completes */
  read (chunk: Buffer): ImportItem[] {
    const found: ImportItem[] = []
    if (this.#isOver) return found
    let start = 0
    for (let at = 0; at < chunk.length && !this.#isOver; at++) {
      const byte = chunk[at]!
      if (this.#inString) at = this.#readString(chunk, at)
      else if (byte === QUOTE) this.#beginString()
      else if (isOpening(byte)) {
        if (this.#open(byte)) start = at
      } else if (isClosing(byte)) {
        if (this.#close()) {
          this.#collector.add(chunk.subarray(start, at + 1))
          found.push(this.#take())
        }
      } else if (!this.#inRecord && !isSpace(byte)) this.#readOther(byte)
    }
    if (this.#inRecord) this.#collector.add(chunk.subarray(start))
    if (this.#isOver) found.push({ line: this.#line, reason: 'is not an object; nothing after it was read' })
    return found
  }

  end (): ImportItem[] {
    if (this.#isOver) return []
    if (this.#depth > 0) return [{ line: this.#line, reason: 'the file ends here: it is not complete' }]
    if (this.#wasFound) return []
    return [{ line: 1, reason: this.#key === undefined ? 'the file is empty' : `the file has no list "${this.#key}"` }]
  }

  #take (): ImportItem {
    const bytes = this.#collector.take()
    const line = this.#line++
    if (bytes === null) return { line, reason: TOO_LONG }
    if (!isUtf8(bytes)) return { line, reason: 'is not UTF-8' }
    try {
      return { line, value: JSON.parse(bytes.toString()) as unknown }
    } catch {
      // The message would repeat a part of the text.
      return { line, reason: 'is not valid JSON' }
    }
  }

  get #isBetween (): boolean {
    return this.#list === this.#depth && !this.#inRecord
  }

  #beginString (): void {
    this.#inString = true
    this.#text = ''
    if (this.#isBetween) this.#isOver = true
  }

  /** @returns where the string or the chunk ends */
  #readString (chunk: Buffer, start: number): number {
    // Most of a file is text, so this loop has local variables only.
    let [at, isEscaped, isOpen] = [start, this.#isEscaped, true]
    for (; at < chunk.length; at++) {
      const byte = chunk[at]
      if (isEscaped) isEscaped = false
      else if (byte === BACKSLASH) isEscaped = true
      else if (byte === QUOTE) {
        isOpen = false
        break
      }
    }
    this.#isEscaped = isEscaped
    this.#inString = isOpen
    if (!this.#inRecord && this.#text.length < KEY) this.#text += chunk.toString('latin1', start, Math.min(at, start + KEY))
    return at
  }

  #readOther (byte: number): void {
    if (byte === COLON) this.#isNext = this.#depth === 1 && this.#text === this.#key
    else if (byte === COMMA) this.#isNext = false
    else if (this.#isBetween) this.#isOver = true
  }

  /** @returns whether a record begins */
  #open (byte: number): boolean {
    const begins = this.#isBetween && byte === BRACE
    if (this.#isBetween && !begins) this.#isOver = true
    this.#depth++
    if (begins) this.#inRecord = true
    else if (!this.#inRecord && byte !== BRACE && (this.#depth === 1 || this.#isNext)) {
      this.#list = this.#depth
      this.#wasFound = true
    }
    this.#isNext = false
    return begins
  }

  /** @returns whether a record ends */
  #close (): boolean {
    this.#depth = Math.max(0, this.#depth - 1)
    const ends = this.#inRecord && this.#depth === this.#list
    if (ends) this.#inRecord = false
    else if (this.#list !== undefined && this.#depth < this.#list) this.#list = undefined
    return ends
  }
}

/**
 * Reads a file of JSON: lines, an array, or an object that has the array.
 * @param key the member of the object that is the array; undefined: objects are lines
 */
export async function * readJson (body: AsyncIterable<Buffer>, key?: string): AsyncGenerator<ImportItem[]> {
  const { problem, opening, chunks } = await begin(body)
  if (problem !== undefined) return yield [{ line: 1, reason: problem }]
  if (opening !== BRACKET && (opening !== BRACE || key === undefined)) return yield * readLines(chunks, MAX_RECORD)
  const splitter = new ArraySplitter(key)
  for await (const chunk of chunks) yield splitter.read(chunk)
  yield splitter.end()
}
