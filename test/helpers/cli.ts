import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { runCommandLine } from '../../cli/main.ts'
import type { Streams } from '../../cli/command.ts'
import './plain-threads.ts'

export interface Ran {
  code: number
  stdout: string
  stderr: string
  /** Parses stdout, which must be one JSON object. */
  json (): Record<string, string>
}

export interface RunOptions {
  stdin?: string | Readable
  /** Whether stdout and stderr are terminals, of this many columns or 80. */
  terminal?: boolean | number
  signal?: AbortSignal
}

/** Returns a function that runs command lines in this process, on an SQLite store in this folder. */
export function createCli (dir: string, env: Record<string, string> = {}) {
  const given = { DATABASE_URL: `sqlite:${join(dir, 'identity.db')}`, IDENTITY_BCRYPT_COST: '4', IDENTITY_PASSWORD_MIN: '1', ...env }

  return async function run (line: string | string[], { stdin = '', terminal = false, signal = new AbortController().signal }: RunOptions = {}): Promise<Ran> {
    const argv = typeof line === 'string' ? line.split(' ').filter(Boolean) : line
    const stream = () => Object.assign(new PassThrough(), { isTTY: terminal !== false, ...(typeof terminal === 'number' && { columns: terminal }) })
    const [stdout, stderr] = [stream(), stream()]
    const streams: Streams = { stdin: typeof stdin === 'string' ? Readable.from([stdin]) : stdin, stdout, stderr }
    const written = Promise.all([text(stdout), text(stderr)])
    const code = await runCommandLine(argv, given, streams, signal)
    stdout.end()
    stderr.end()
    const [out, err] = await written
    return { code, stdout: out, stderr: err, json: () => JSON.parse(out) }
  }
}
