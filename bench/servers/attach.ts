import { subscribe } from 'node:diagnostics_channel'
import { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expose } from '../expose.ts'
import type { Ready } from '../types.ts'
import { usage } from './serve.ts'

// Preloaded before server.ts, so that the benchmark learns its port and can ask for its usage. The service runs as it is.

expose({ usage })
subscribe('tracing:net.server.listen:asyncEnd', (message) => {
  const { server } = message as { server: unknown }
  // The start first tests the port with a plain server (cli/process/listener.ts), which is not the service.
  if (!(server instanceof Server)) return
  const { port } = server.address() as AddressInfo
  process.send!({ ready: { port } satisfies Ready })
})
