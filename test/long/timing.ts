import { Agent, request } from 'node:http'

/** The value below which this share of the times is. */
export const share = (times: readonly number[], part: number): number => times.toSorted((one, other) => one - other)[Math.floor(times.length * part)]!

export const median = (times: readonly number[]): number => share(times, 0.5)

/** Requests one after the other on one connection. */
export function createClient (url: string) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  return {
    close: () => agent.destroy(),
    async post (path: string, body: string, headers: Record<string, string>): Promise<{ status: number, time: number }> {
      const begin = performance.now()
      return await new Promise((resolve, reject) => {
        const message = request(url + path, { method: 'POST', agent, headers: { ...headers, 'content-length': String(Buffer.byteLength(body)) } }, (response) => {
          response.resume().on('end', () => resolve({ status: response.statusCode ?? 0, time: performance.now() - begin }))
        })
        message.on('error', reject).end(body)
      })
    }
  }
}
