import type { AddressInfo } from 'node:net'
import type { Server } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { expose, type Calls } from '../expose.ts'
import { readThreadTimes } from '../machine.ts'
import type { Load, Ready, Usage } from '../types.ts'

/** The options that this server process was started with. */
export function readOptions<T extends object> (): T {
  return JSON.parse(process.argv[2] ?? '{}') as T
}

export const usage = async (): Promise<Usage> => {
  const { main, all } = readThreadTimes(process.pid)
  const { active, idle } = performance.eventLoopUtilization()
  return { cpu: all, main, rss: process.memoryUsage.rss(), active, idle }
}

/**
 * Listens, and sends the parent the port and the load.
 * @param options.port absent: a free one
 */
export async function serve (app: FastifyInstance | Server, { load, port = 0, calls = {} }: { load?: Load, port?: number, calls?: Calls } = {}): Promise<void> {
  if ('ready' in app) {
    await app.listen({ host: '127.0.0.1', port })
  } else {
    await new Promise<void>((resolve) => app.listen(port, '127.0.0.1', resolve))
  }
  expose({ usage, ...calls })
  const { port: actual } = ('ready' in app ? app.server : app).address() as AddressInfo
  const ready: Ready = { port: actual, ...(load && { load }) }
  process.send!({ ready })
}
