import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** How a receiver of webhooks and logout tokens behaves. Nobody listens at the port of one that is down. */
export type Receiver = 'hangs' | 'is down' | 'answers 503'

let server: Server | undefined

export function stopReceiver (): void {
  server?.close()
  server?.closeAllConnections()
  server = undefined
}

/** Starts a receiver in place of the previous one. Resolves to its port. */
export async function startReceiver (receiver: Receiver): Promise<number> {
  stopReceiver()
  server = createServer((request, response) => {
    request.resume()
    if (receiver === 'answers 503') response.writeHead(503).end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  if (receiver === 'is down') stopReceiver()
  return port
}
