import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { findFreePort } from '../test/helpers/port.ts'
import { CORES, pin, readRss, readThreadTimes } from './machine.ts'

/** The options for node in the script `npm start`. */
export function readStartFlags (): string[] {
  const { scripts } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { scripts: { start: string } }
  return scripts.start.split(' ').filter((word) => word.startsWith('--'))
}

/** Milliseconds within which a process must answer, and must exit. */
const DEADLINE = 30_000

/** Makes one request on a new connection; null while nothing listens. */
async function ask (port: number, request: string): Promise<string | null> {
  const { promise, resolve } = Promise.withResolvers<string | null>()
  const socket = connect({ host: '127.0.0.1', port, noDelay: true }, () => socket.write(request))
  socket.on('error', () => resolve(null))
  socket.on('data', (bytes) => resolve(bytes.toString('latin1')))
  const answer = await promise
  socket.destroy()
  return answer
}

/** Milliseconds of time and of processor time until the first answer, and the resident bytes then. */
export interface StartSample { milliseconds: number, cpu: number, rss: number }

/**
 * Starts node with these arguments on two cores and waits for the first 200. The process is then shut down gracefully, which
 * writes Node's compile cache for the next start.
 * @param rest milliseconds before the memory is read
 */
export async function timeStart (args: string[], env: Record<string, string>, request: string, rest = 0): Promise<StartSample> {
  const port = await findFreePort()
  const [command, ...words] = pin([process.execPath, ...args], CORES.two)
  const start = performance.now()
  const { PATH, NODE_DISABLE_COMPILE_CACHE } = process.env
  const child = spawn(command!, words, {
    stdio: ['ignore', 'ignore', 'inherit'], env: { PATH, ...(NODE_DISABLE_COMPILE_CACHE && { NODE_DISABLE_COMPILE_CACHE }), ...env, PORT: String(port) }
  })
  const exit = once(child, 'exit')
  try {
    for (;;) {
      const answer = await ask(port, request)
      const milliseconds = performance.now() - start
      if (answer !== null) {
        if (!answer.startsWith('HTTP/1.1 200')) throw new Error(`${args.join(' ')} answered ${answer.slice(0, 12)}`)
        const cpu = readThreadTimes(child.pid!).all / 1000
        await wait(rest)
        return { milliseconds, cpu, rss: readRss(child.pid!) }
      }
      if (child.exitCode !== null || milliseconds > DEADLINE) throw new Error(`${args.join(' ')} did not answer in time`)
      await wait(1)
    }
  } finally {
    child.kill('SIGTERM')
    const timer = setTimeout(() => child.kill('SIGKILL'), DEADLINE)
    await exit
    clearTimeout(timer)
  }
}
