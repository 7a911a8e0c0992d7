import { isUtf8 } from 'node:buffer'
import { IMPORT_LIMITS, type ImportItem } from '../../schemas/import.ts'
import { findStart } from './formats/begin.ts'
import { Collector } from './formats/records.ts'

const LINE_FEED = 0x0a

/** Characters that JSON allows around a value; a line of these is empty. */
const EMPTY = /^[ \t\r]*$/

/** The message of a JSON parser repeats a part of the text, so it is not shown. */
function parse (line: number, bytes: Buffer): ImportItem | null {
  if (!isUtf8(bytes)) return { line, reason: 'the line is not UTF-8' }
  const text = bytes.toString()
  if (EMPTY.test(text)) return null
  try {
    return { line, value: JSON.parse(text) as unknown }
  } catch {
    return { line, reason: 'the line is not JSON' }
  }
}

/**
 * Reads NDJSON: the lines that each piece completes, as one group. What is kept between two pieces is less than the longest line: of a
 * line that is too long, only its number.
 */
export async function * readLines (pieces: AsyncIterable<Buffer>, limit: number = IMPORT_LIMITS.line): AsyncGenerator<ImportItem[]> {
  const collector = new Collector(limit)
  let line = 0

  const end = (): ImportItem | null => {
    const taken = collector.take()
    line++
    const bytes = line === 1 && taken !== null ? taken.subarray(findStart(taken)) : taken
    return bytes === null ? { line, reason: `the line is longer than ${limit} bytes` } : parse(line, bytes)
  }

  for await (const piece of pieces) {
    const group: ImportItem[] = []
    let start = 0
    for (let at = piece.indexOf(LINE_FEED); at !== -1; start = at + 1, at = piece.indexOf(LINE_FEED, start)) {
      collector.add(piece.subarray(start, at))
      const item = end()
      if (item !== null) group.push(item)
    }
    // A copy: the piece may be a part of a larger buffer that is used again.
    if (start < piece.length) collector.add(Buffer.from(piece.subarray(start)))
    if (group.length > 0) yield group
  }
  const last = end()
  if (last !== null) yield [last]
}
