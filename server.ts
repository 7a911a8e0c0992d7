/**
 * The process: environment -> app, listening until it is told to stop.
 * @module
 */
import { enableCompileCache } from 'node:module'
import { join } from 'node:path'

// Where the code is: whoever may write there could change the code as well, which holds for no folder that is shared.
// Where nobody may, there is none.
enableCompileCache(join(import.meta.dirname, 'node_modules/.cache/fastify-identity'))
const { runServer } = await import('./cli/process/serve.ts')
await runServer(process.argv.slice(2))
