import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { createServer, type AddressInfo } from 'node:net'

/** The connections of visitors. */
export const agent = new Agent({ keepAlive: true, maxSockets: 64 })

/** Sends one request. @returns the status, the body, the cookies, and where a redirect leads */
export async function send (url: string, { method = 'GET', headers = {}, body }: { method?: string, headers?: Record<string, string>, body?: string } = {}) {
  const sent = request(url, { method, headers: { accept: 'text/html', ...headers }, agent })
  sent.end(body)
  const [response] = await once(sent, 'response')
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk)
  const cookies = ((response.headers['set-cookie'] ?? []) as string[]).map((line) => line.split(';')[0]!)
  return { status: response.statusCode as number, text: Buffer.concat(chunks).toString(), cookies, location: response.headers.location as string | undefined }
}

/** The value of a hidden field. */
export const readField = (page: string, name: string) => new RegExp(`name="${name}" value="([^"]*)"`).exec(page)?.[1] ?? ''

/** Sends a form as a page of the service does. */
export async function post (origin: string, path: string, cookie: string, fields: Record<string, string>) {
  const headers = { cookie, origin, 'content-type': 'application/x-www-form-urlencoded' }
  return await send(origin + path, { method: 'POST', headers, body: new URLSearchParams(fields).toString() })
}

export const median = (values: number[]) => values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)]!

/** A free port of 127.0.0.1. */
export async function findPort (): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  return port
}
