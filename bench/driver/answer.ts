/** A complete answer at the start of a buffer. */
export interface Answer {
  status: number
  /** Offsets of the start and the end of its body; a chunked body includes its framing. */
  body: number
  end: number
}

const HEAD_END = Buffer.from('\r\n\r\n')
const LAST_CHUNK = Buffer.from('\r\n0\r\n\r\n')

/** Reads an HTTP/1.1 answer; null while it is incomplete. */
export function readAnswer (bytes: Buffer): Answer | null {
  const head = bytes.indexOf(HEAD_END)
  if (head === -1) return null
  const text = bytes.toString('latin1', 0, head)
  const status = Number(text.slice(9, 12))
  const body = head + HEAD_END.length
  const end = status === 204 || status === 304 ? body : endOf(bytes, text, body)
  return end === -1 || end > bytes.length ? null : { status, body, end }
}

function endOf (bytes: Buffer, head: string, body: number): number {
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
  if (length !== undefined) return body + Number(length)
  if (!/\r\ntransfer-encoding: *chunked/i.test(head)) throw new Error('an answer without a length')
  // JSON contains no bare line break, so this is the last chunk and not content. In an empty body it begins with the head's line break.
  const last = bytes.indexOf(LAST_CHUNK, body - 2)
  return last === -1 ? -1 : last + LAST_CHUNK.length
}
