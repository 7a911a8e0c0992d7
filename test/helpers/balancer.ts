import { once } from 'node:events'
import { Agent, createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { createMint } from '../../testing/mint.ts'
import { call } from './upstream.ts'
import { waitUntil } from './wait.ts'

/** Milliseconds between two polls of a backend's readiness. */
const INTERVAL = 20

interface Backend { url: string, agent: Agent, isReady: boolean, inFlight: number }

/** A reverse proxy that sends each request once, to one of the backends that were ready at the last poll. */
export class Balancer {
  readonly #backends = new Set<Backend>()
  readonly #server = createServer((request, response) => this.#relay(request, response))
  #next = 0
  /** Errors on the way to a backend. */
  readonly failures: string[] = []

  async listen (): Promise<string> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening')
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Resolves when the balancer sends requests there. */
  async add (url: string): Promise<void> {
    const backend: Backend = { url, agent: new Agent({ keepAlive: true }), isReady: false, inFlight: 0 }
    this.#backends.add(backend)
    void this.#watch(backend)
    await waitUntil(`${url} is ready`, () => backend.isReady)
  }

  /** Resolves when the balancer has seen that this backend is not ready, and no request to it is in flight. */
  async hasLeft (url: string): Promise<void> {
    await waitUntil(`${url} has no request and is not ready`, () => ![...this.#backends].some((backend) => backend.url === url && (backend.isReady || backend.inFlight > 0)))
  }

  remove (url: string): void {
    for (const backend of this.#backends) {
      if (backend.url !== url) continue
      this.#backends.delete(backend)
      backend.agent.destroy()
    }
  }

  async close (): Promise<void> {
    for (const { url } of this.#backends) this.remove(url)
    this.#server.closeAllConnections()
    this.#server.close()
  }

  async #watch (backend: Backend): Promise<void> {
    while (this.#backends.has(backend)) {
      backend.isReady = await call(`${backend.url}/health/ready`).then(({ status }) => status === 200, () => false)
      await delay(INTERVAL)
    }
  }

  #relay (request: IncomingMessage, response: ServerResponse): void {
    const ready = [...this.#backends].filter(({ isReady }) => isReady)
    const backend = ready[this.#next++ % ready.length]
    const fail = (reason: string) => {
      this.failures.push(`${request.method} ${request.url}: ${reason}`)
      response.destroy()
    }
    if (backend === undefined) return fail('no backend is ready')
    const { method = 'GET', headers } = request
    const upstream = httpRequest(`${backend.url}${request.url}`, { method, headers: { ...headers, connection: 'keep-alive' }, agent: backend.agent })
    backend.inFlight++
    upstream.on('close', () => { backend.inFlight-- })
    upstream.on('error', (error: NodeJS.ErrnoException) => fail(`${error.code} from ${backend.url}, reused: ${upstream.reusedSocket}`))
    upstream.on('response', (answer: IncomingMessage) => {
      response.writeHead(answer.statusCode!, { 'content-type': answer.headers['content-type'] ?? 'text/plain' })
      answer.on('aborted', () => fail('the answer was cut')).pipe(response)
    })
    request.pipe(upstream)
  }
}

/** Headers with the tokens of `count` users, each with their own, so that no client waits for a write of another. */
export async function mintMany (services: Parameters<typeof createMint>[0], count: number): Promise<{ authorization: string }[]> {
  const mint = createMint(services)
  return await Promise.all(Array.from({ length: count }, async (_, index) => (await mint({ user: `busy${index}` })).headers))
}

/** Keep-alive clients that send one request after another. */
export class BusyClients {
  readonly failures: string[] = []
  /** Number of answers. */
  answered = 0
  #isStopped = false
  readonly #running: Promise<void>[]

  /** @param everyone headers for each client */
  constructor (url: string, everyone: Record<string, string>[]) {
    this.#running = everyone.map((headers, index) => this.#run(url, index, headers))
  }

  /** Resolves after `count` more answers. */
  async more (count: number): Promise<void> {
    const goal = this.answered + count
    await waitUntil(`${count} more answers`, () => this.answered >= goal)
  }

  async stop (): Promise<void> {
    this.#isStopped = true
    await Promise.all(this.#running)
  }

  async #run (url: string, index: number, headers: Record<string, string>): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    for (let turn = index; !this.#isStopped; turn++) {
      const path = ['/api/v1/auth/tokeninfo', '/api/v1/user', '/api/v1/client/list?limit=5', '/api/v1/user'][turn % 4]!
      const body = turn % 4 === 3 ? JSON.stringify({ data: { name: `client ${index}` } }) : undefined
      try {
        const status = await ask(`${url}${path}`, agent, headers, body)
        if (status >= 300) this.failures.push(`${path}: ${status}`)
      } catch (error) {
        this.failures.push(`${path}: ${String(error)}`)
      }
      this.answered++
    }
    agent.destroy()
  }
}

async function ask (url: string, agent: Agent, headers: Record<string, string>, body?: string): Promise<number> {
  const request = httpRequest(url, {
    method: body === undefined ? 'GET' : 'PATCH', agent, headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }) }
  })
  request.end(body)
  const [response] = await once(request, 'response') as [IncomingMessage]
  await once(response.resume(), 'close')
  if (!response.complete) throw new Error('the answer was cut')
  return response.statusCode!
}
