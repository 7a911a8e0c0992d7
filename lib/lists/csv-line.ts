/**
 * The CSV of a client straight from its JSON, where nothing in it needs a closer look: the fields in the service's own
 * order, no space between them, no escape, and no text that CSV would quote or that may be a formula. Then a quote begins
 * or ends a text and nothing else, and what is between two of them is the cell. Most clients are such; the rest are parsed,
 * and written by fast-csv.
 */

const ID = '{"clientId":"'
const CREATED = '","createdAt":"'
const MODIFIED = '","modifiedAt":"'
const SECRET = ',"clientSecret":"'
const URIS = ',"redirectUris":['
const SCOPES = ',"scopes":['
const USER = ',"userId":"'
const NAME = ',"name":"'
const IMAGE = ',"image":"'

/** Whether there are bytes that JSON has in no text, other than newlines. */
export function hasControls (bytes: Uint8Array): boolean {
  const isControl = (byte: number) => byte < 0x20 && byte !== 0x0a
  if (bytes.length < 8) return bytes.some(isControl)
  let at = 0
  // Four at a time: taking a space from a byte below it, and from none of ASCII above, sets its highest bit.
  const head = -bytes.byteOffset & 3
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + head, (bytes.length - head) >> 2)
  for (; at < head; at++) if (isControl(bytes[at]!)) return true
  for (let index = 0; index < words.length; index++) {
    const word = words[index]!
    if (((word - 0x20202020) & ~word & 0x80808080) === 0) continue
    for (let byte = 0; byte < 4; byte++) if (isControl(bytes[head + index * 4 + byte]!)) return true
  }
  for (at = head + words.length * 4; at < bytes.length; at++) if (isControl(bytes[at]!)) return true
  return false
}

/** Whether a cell that begins so is no formula, whatever a spreadsheet takes for one: a digit, a letter, and most else beyond ASCII. */
export function isPlainStart (text: string): boolean {
  const code = text.charCodeAt(0)
  return (code >= 0x30 && code <= 0x39) || (code >= 0x41 && code <= 0xff00)
}

/** Reads one line from left to right. After what it does not know it is `lost`, and all that it said is void. */
class LineReader {
  #line = ''
  #at = 0
  lost = false

  start (line: string): void {
    this.#line = line
    this.#at = 0
    // fast-csv quotes what holds a bar, too.
    this.lost = line.includes('\\') || line.includes('|')
  }

  /** The text between this mark and the next quote. */
  readText (mark: string): string {
    const start = this.#at + mark.length
    const end = this.#line.indexOf('"', start)
    if (!this.#line.startsWith(mark, this.#at) || end === -1) {
      this.lost = true
      return ''
    }
    this.#at = end
    const text = this.#line.slice(start, end)
    if (text.includes(',') || (end > start && !isPlainStart(text))) this.lost = true
    return text
  }

  /** The same, where it is there, and behind its closing quote; the empty text otherwise. */
  readOptional (mark: string): string {
    if (!this.#line.startsWith(mark, this.#at)) return ''
    const text = this.readText(mark)
    this.#at++
    return text
  }

  /** The cell of an array of texts, which CSV quotes: a quote in it is two. */
  readArray (mark: string): string {
    const line = this.#line
    let at = this.#at + mark.length
    if (!line.startsWith(mark, this.#at)) this.lost = true
    if (line.startsWith(']', at)) {
      this.#at = at + 1
      return '[]'
    }
    let cell = '"['
    for (let first = true; !this.lost; first = false) {
      const end = line.indexOf('"', at + 1)
      if (!line.startsWith('"', at) || end === -1) break
      cell += `${first ? '' : ','}""${line.slice(at + 1, end)}""`
      if (line.startsWith(']', end + 1)) {
        this.#at = end + 2
        return `${cell}]"`
      }
      at = end + 2
      if (!line.startsWith(',', end + 1)) break
    }
    this.lost = true
    return ''
  }

  skip (mark: string): void {
    if (!this.#line.startsWith(mark, this.#at)) this.lost = true
    this.#at += mark.length
  }

  /** Whether all of it was read. */
  get ended (): boolean {
    return !this.lost && this.#at === this.#line.length
  }
}

const reader = new LineReader()

/**
 * The row of a client, without its newline; null for a line to be parsed.
 * @param line of bytes without controls, see above
 */
export function toPlainRow (line: string): string | null {
  reader.start(line)
  if (reader.lost) return null
  const id = reader.readText(ID)
  const created = reader.readText(CREATED)
  const modified = reader.readText(MODIFIED)
  reader.skip('"')
  const secret = reader.readOptional(SECRET)
  const uris = reader.readArray(URIS)
  const scopes = reader.readArray(SCOPES)
  const user = reader.readOptional(USER)
  const name = reader.readOptional(NAME)
  const image = reader.readOptional(IMAGE)
  reader.skip('}')
  return reader.ended ? `${id},${created},${modified},${secret},${uris},${scopes},${user},${name},${image}` : null
}
