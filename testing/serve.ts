/** `node testing/serve.ts [--port N] [--until-stdin-ends]` serves the kit on a socket, for suites in other languages. */
import { parseArgs } from 'node:util'
import { serveTesting } from './server.ts'

/**
 * Serves until SIGTERM or SIGINT. Prints one line of JSON on stdout, `{ "url": "http://127.0.0.1:PORT" }`, and at the end one
 * line on stderr with the reason for stopping.
 * @param args `--port N`; absent: a free port. `--until-stdin-ends` also stops when stdin ends, so that the kit never outlives a
 *   suite that keeps its stdin open
 * @throws Error that names an invalid argument
 */
export async function runTesting (args: string[] = process.argv.slice(2)): Promise<void> {
  const { values } = parseArgs({ args, options: { port: { type: 'string', default: '0' }, 'until-stdin-ends': { type: 'boolean' } } })
  const port = Number(values.port)
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new Error('--port takes a number from 0 to 65535')
  const watchesStdin = values['until-stdin-ends'] === true
  const ended = new Promise<string>((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => resolve(signal))
    if (!watchesStdin) return
    for (const event of ['end', 'close', 'error']) process.stdin.once(event, () => resolve('stdin ended'))
    process.stdin.resume()
  })
  const { url, close } = await serveTesting({ port })
  process.stdout.write(`${JSON.stringify({ url })}\n`)
  process.stderr.write(`fastify-identity testing: stopped, ${await ended}\n`)
  // An open stdin would keep the process alive.
  if (watchesStdin) process.stdin.destroy()
  await close()
}

if (import.meta.main) {
  runTesting().catch((error: Error) => {
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 1
  })
}
