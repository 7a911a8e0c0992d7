import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process'
import { once } from 'node:events'
import { basename, join } from 'node:path'
import { within } from './upstream.ts'

const ROOT = join(import.meta.dirname, '../..')

/** A compile cache, as in `npm start` and `npm test`: half of a short program's time is the stripping of types. */
const NODE_COMPILE_CACHE = join(ROOT, 'node_modules/.cache/tests')

interface Teardown {
  teardown: (fn: () => unknown) => unknown
}

export interface Started {
  child: ChildProcess
  pid: number
  /** Its output so far. */
  stdout (): string
  stderr (): string
  /** The lines of stdout that are JSON, which is the log. */
  log (): { msg: string, level: number, [field: string]: unknown }[]
  /** Resolves when its output matches the pattern. Rejects if the process exits first. */
  seen (pattern: RegExp): Promise<RegExpExecArray>
  /** Resolves when it has exited and its output is complete: its exit code, or the name of the signal. */
  ended: Promise<number | string>
}

/** The environment of a service on an SQLite store in this folder, on a free port, with cheap hashes. */
export function serviceEnv (dir: string, env: Record<string, string> = {}): Record<string, string> {
  return { DATABASE_URL: `sqlite:${join(dir, 'identity.db')}`, PORT: '0', IDENTITY_BCRYPT_COST: '4', IDENTITY_PASSWORD_MIN: '1', ...env }
}

export interface StartOptions {
  args?: string[]
  env: Record<string, string>
  stdio?: StdioOptions
  cwd?: string
}

/** Starts one of our programs. It is killed when the test ends. */
export function startProgram (t: Teardown, file: 'server.ts' | 'cli.ts', { args = [], ...options }: StartOptions): Started {
  return startCommand(t, process.execPath, { ...options, args: [join(ROOT, file), ...args] })
}

/** Starts a command. It is killed when the test ends. */
export function startCommand (t: Teardown, command: string, { args = [], env, stdio = ['ignore', 'pipe', 'pipe'], cwd = ROOT }: StartOptions): Started {
  // tap adds its loader to NODE_OPTIONS, which doubles the time of a short program. Most of these programs are killed, and would
  // report no coverage.
  const { NODE_OPTIONS, ...rest } = env
  const options = NODE_OPTIONS === undefined ? [] : [`NODE_OPTIONS=${NODE_OPTIONS}`]
  const child = spawn('env', ['-u', 'NODE_OPTIONS', ...options, command, ...args], { cwd, stdio, env: { PATH: process.env.PATH, NODE_COMPILE_CACHE, ...rest } })
  const file = basename(args[0] ?? command)
  const written = { stdout: '', stderr: '' }
  const changed = new Set<() => void>()
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      written[name] += text
      for (const check of changed) check()
    })
  }
  const ended = within(`end of ${file}`, once(child, 'close').then(([code, signal]) => code ?? signal), 300_000)
  ended.catch(() => {})
  t.teardown(async () => {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  })

  function seen (pattern: RegExp): Promise<RegExpExecArray> {
    return within(`${pattern} from ${file}`, new Promise((resolve, reject) => {
      const onClose = () => reject(new Error(`${file} exited before ${pattern}: ${written.stderr}`))
      const check = () => {
        const match = pattern.exec(written.stdout) ?? pattern.exec(written.stderr)
        if (match === null) return
        changed.delete(check)
        child.off('close', onClose)
        resolve(match)
      }
      child.once('close', onClose)
      changed.add(check)
      check()
    }))
  }

  return {
    child,
    pid: child.pid ?? 0,
    stdout: () => written.stdout,
    stderr: () => written.stderr,
    log: () => written.stdout.split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line)),
    seen,
    ended
  }
}

/** Runs one of our programs until it exits. */
export async function runProgram (t: Teardown, file: 'server.ts' | 'cli.ts', options: StartOptions): Promise<{ code: number | string, stdout: string, stderr: string }> {
  const program = startProgram(t, file, options)
  const code = await program.ended
  return { code, stdout: program.stdout(), stderr: program.stderr() }
}
