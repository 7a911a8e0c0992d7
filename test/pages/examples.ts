import type { Test } from 'tap'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { within } from '../helpers/upstream.ts'
import type { App, Harness } from '../oidc/harness.ts'

const EXAMPLES = join(import.meta.dirname, '../../examples')

export interface Example {
  /** Resolves when its output matches the pattern. Rejects if the program exits first. */
  seen (pattern: RegExp): Promise<RegExpExecArray>
  /** Resolves when it has exited, to its exit code and its output. */
  ended (): Promise<{ code: number, text: string }>
}

/** Starts an example as its README does. It is killed when the test ends. */
export function startExample (t: Test, file: string, env: Record<string, string>): Example {
  const child = spawn(process.execPath, [join(EXAMPLES, file)], { env: { PATH: process.env.PATH, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  let text = ''
  const checks = new Set<() => void>()
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
      for (const check of checks) check()
    })
  }
  const closed = once(child, 'close')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await closed
  })
  return {
    seen: async (pattern) => await within(`${pattern} from ${file}`, new Promise((resolve, reject) => {
      const check = () => {
        const match = pattern.exec(text)
        if (match !== null) resolve(match)
      }
      checks.add(check)
      check()
      child.once('close', () => reject(new Error(`${file} exited before ${pattern}: ${text}`)))
    })),
    ended: async () => await within(`end of ${file}`, closed.then(([code]) => ({ code, text })))
  }
}

const client = (app: App) => ({ CLIENT_ID: app.client_id, ...(app.client_secret !== '' && { CLIENT_SECRET: app.client_secret }) })

/** Starts a web example on a free port, and registers its redirect URIs. */
export async function startWebExample (t: Test, { kit, url, user }: Harness, app: App, file: string, paths: string[]): Promise<string> {
  const example = startExample(t, file, { ISSUER: url, PORT: '0', ...client(app) })
  const [, origin = ''] = await example.seen(/(http:\/\/127\.0\.0\.1:\d+)/)
  await kit.app.identity.clients.patch(app.client_id, { data: { redirectUris: paths.map((path) => origin + path) } }, { user_id: user.user_id, isAdmin: false })
  return origin
}

/** Starts an example without a browser. */
export const startTerminalExample = (t: Test, { url }: Harness, app: App, file: string) => startExample(t, file, { ISSUER: url, ...client(app) })
