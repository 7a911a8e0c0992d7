import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** Sends a GET over a raw socket, to observe every byte and the end of the connection. The socket is still paused. */
export async function ask (url: string, path: string, headers: Record<string, string>): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port) })
  await once(socket, 'connect')
  const lines = Object.entries({ host: `${hostname}:${port}`, connection: 'close', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`)
  return socket
}

/** A response read from a socket until the end of the connection. */
export interface Answer {
  status: number
  headers: Record<string, string>
  body: string
  /** Whether the body is complete, by its length or its last chunk. */
  complete: boolean
}

/** Decodes a chunked body (RFC 9112, 7.1). */
function readChunks (raw: Buffer): { body: Buffer, complete: boolean } {
  const chunks: Buffer[] = []
  for (let at = 0; ;) {
    const end = raw.indexOf('\r\n', at)
    const size = end === -1 ? Number.NaN : Number.parseInt(raw.toString('latin1', at, end), 16)
    if (size === 0) return { body: Buffer.concat(chunks), complete: true }
    if (Number.isNaN(size) || end + 2 + size > raw.length) return { body: Buffer.concat([...chunks, raw.subarray(end + 2)]), complete: false }
    chunks.push(raw.subarray(end + 2, end + 2 + size))
    at = end + 2 + size + 2
  }
}

/** Reads until the connection closes for any reason. */
export async function readAnswer (socket: Socket): Promise<Answer> {
  const parts: Buffer[] = []
  socket.on('data', (part) => parts.push(part))
  await new Promise((resolve) => socket.once('close', resolve).on('error', () => {}))
  const raw = Buffer.concat(parts)
  const split = raw.indexOf('\r\n\r\n')
  const [first = '', ...lines] = raw.toString('latin1', 0, split).split('\r\n')
  const headers = Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]))
  const rest = raw.subarray(split + 4)
  const { body, complete } = headers['transfer-encoding'] === 'chunked'
    ? readChunks(rest)
    : { body: rest, complete: rest.length === Number(headers['content-length']) }
  return { status: Number(first.split(' ')[1]), headers, body: body.toString('utf8'), complete }
}
