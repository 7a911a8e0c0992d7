import Fastify, { type FastifyInstance } from 'fastify'
import { bridge, type BridgeOptions } from '../../routes/bridge.ts'

interface Teardown {
  teardown: (fn: () => unknown) => unknown
}

/** An app with only a bridge, listening on a free port. */
export async function startBridge (
  t: Teardown, options: BridgeOptions, prepare: (app: FastifyInstance) => unknown = () => {}
): Promise<{ app: FastifyInstance, url: string, root: string }> {
  const app = Fastify({ forceCloseConnections: true })
  t.teardown(async () => await app.close())
  await prepare(app)
  await app.register(bridge, { prefix: '/clients', ...options })
  const root = await app.listen({ port: 0, host: '127.0.0.1' })
  return { app, url: `${root}/clients`, root }
}

/** The body of an error. */
export function errorBody (statusCode: number, code: string, error: string, message: string) {
  return { statusCode, code, error, message }
}
