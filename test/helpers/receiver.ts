import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

export interface Received { path: string, type: string | undefined, body: URLSearchParams }

/** The answer of a receiver: a status, optionally with headers. A pending promise makes the receiver hang. */
type Reply = number | { status: number, headers: Record<string, string> }

/** A server that records the forms that are posted to it. */
export async function startReceiver (t: Test, reply: (received: Received) => Reply | Promise<Reply> = () => 200) {
  const received: Received[] = []
  async function receive (request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = ''
    for await (const part of request.setEncoding('utf8')) text += String(part)
    const one = { path: request.url ?? '', type: request.headers['content-type'], body: new URLSearchParams(text) }
    received.push(one)
    const answer = await reply(one)
    const { status, headers } = typeof answer === 'number' ? { status: answer, headers: {} } : answer
    response.writeHead(status, headers).end()
  }
  const server = createServer((request, response) => { void receive(request, response) })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { received, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}
