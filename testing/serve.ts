/** `node testing/serve.ts [--port N]` serves the kit on a socket, for suites in other languages. */
import { parseArgs } from 'node:util'
import { serveTesting } from './server.ts'

/**
 * Serves until stdin closes or SIGTERM or SIGINT arrives, so that it never outlives the suite that started it.
 * Prints one line of JSON on stdout: `{ "url": "http://127.0.0.1:PORT" }`.
 * @param args `--port N`; absent: a free port
 * @throws Error that names an invalid argument
 */
export async function runTesting (args: string[] = process.argv.slice(2)): Promise<void> {
  const { values } = parseArgs({ args, options: { port: { type: 'string', default: '0' } } })
  const port = Number(values.port)
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new Error('--port takes a number from 0 to 65535')
  const ended = new Promise<void>((resolve) => {
    process.stdin.once('end', resolve).once('close', resolve).once('error', () => resolve()).resume()
    process.once('SIGTERM', () => resolve()).once('SIGINT', () => resolve())
  })
  const { url, close } = await serveTesting({ port })
  process.stdout.write(`${JSON.stringify({ url })}\n`)
  await ended
  // An open stdin would keep the process alive.
  process.stdin.destroy()
  await close()
}

if (import.meta.main) {
  runTesting().catch((error: Error) => {
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 1
  })
}
