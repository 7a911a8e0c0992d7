import { peek } from '../../peek.ts'
import { isSpace } from './records.ts'

const MARK = Buffer.from([0xef, 0xbb, 0xbf])

/** Bytes of space at the beginning that are read. */
const SPACE = 64 * 1024

/** How a file begins. */
export interface Beginning {
  /** Why the file cannot be read. */
  problem?: string
  /** The first byte that is not space. Undefined for an empty file. */
  opening: number | undefined
  /** The whole file, without a byte-order mark. */
  chunks: AsyncGenerator<Buffer>
}

/** The first byte after a byte-order mark. */
export const findStart = (first: Buffer): number => first.indexOf(MARK) === 0 ? MARK.length : 0
const findOpening = (first: Buffer): number | undefined => first.subarray(findStart(first)).find((byte) => !isSpace(byte))

/** Reads a file up to its first byte that is not space. */
export async function begin (body: AsyncIterable<Buffer>): Promise<Beginning> {
  const { first, readFrom } = await peek(body, (first) => first.length >= SPACE || (first.length >= MARK.length && findOpening(first) !== undefined))
  const [start, opening] = [findStart(first), findOpening(first)]
  const text = first.subarray(start)
  const isUtf16 = text.length > 1 && text[0]! + text[1]! === 0x1fd
  const isBlank = opening === undefined && text.length >= SPACE
  const problem = isUtf16 ? 'the file is UTF-16: save it as UTF-8' : isBlank ? 'the file is empty' : undefined
  return { ...(problem !== undefined && { problem }), opening, chunks: readFrom(start) }
}
