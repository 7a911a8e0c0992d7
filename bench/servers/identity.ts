import Fastify from 'fastify'
import identity from '../../index.ts'
import { bridge } from '../../routes/bridge.ts'
import { PASSWORD, SECRET_KEY } from '../seed.ts'
import type { RepeatOptions } from '../types.ts'
import { repeat } from './repeat.ts'
import { readOptions, serve } from './serve.ts'

// The service embedded in an app without a log, like the bare route.

interface Options {
  database: string
  /** Listens on this port and serves the bridge to itself under /bridge. */
  bridgePort?: number
  /** Discards mails. Callers set their own address (X-Forwarded-For), because one address may request only a few mails. */
  mails?: boolean
  /** Serves the console. */
  console?: { path: string }
}

const { database, bridgePort, mails = false, console: consoleOptions } = readOptions<Options>()

const app = Fastify({ trustProxy: mails })
await app.register(identity, {
  database,
  secretKey: SECRET_KEY,
  rateLimit: false,
  oidc: { signInLimit: false },
  ...(consoleOptions && { console: consoleOptions }),
  ...(mails && { mail: { local: true, send: async () => {} } })
})
if (bridgePort !== undefined) await app.register(bridge, { prefix: '/bridge', upstream: `http://127.0.0.1:${bridgePort}` })
const create = (account: string) => app.identity.users.create({ data: { account, password: PASSWORD, name: 'New user' } })
const calls = { repeat: (options: RepeatOptions) => repeat(create, options) }
await serve(app, { calls, ...(bridgePort !== undefined && { port: bridgePort }) })
