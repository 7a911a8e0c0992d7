import { subscribe } from 'node:diagnostics_channel'
import type { AddressInfo, Server } from 'node:net'
import { expose } from '../expose.ts'
import type { Ready } from '../types.ts'
import { usage } from './serve.ts'

// Preloaded before server.ts, so that the benchmark learns its port and can ask for its usage. The service runs as it is.

expose({ usage })
subscribe('tracing:net.server.listen:asyncEnd', (message) => {
  const { port } = (message as { server: Server }).server.address() as AddressInfo
  process.send!({ ready: { port } satisfies Ready })
})
