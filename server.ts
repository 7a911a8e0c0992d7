/**
 * The entry point of `npm start`, and of each worker.
 * @module
 */
import { enableCompileCache } from 'node:module'
import { join } from 'node:path'

// Next to the code: a shared folder would let others plant compiled code. Node skips a folder that is not writable.
enableCompileCache(join(import.meta.dirname, 'node_modules/.cache/fastify-identity'))
const { runServer } = await import('./cli/process/serve.ts')
await runServer(process.argv.slice(2))
