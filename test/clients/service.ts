import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { generateSecretKey } from '../../lib/crypto/secrets.ts'
import { findFreePort } from '../helpers/port.ts'
import { runProgram, serviceEnv, startProgram } from '../helpers/process.ts'

export const BIN = join(import.meta.dirname, 'node_modules/.bin')
export const PYTHON = join(import.meta.dirname, 'node_modules/.venv/bin')

const run = promisify(execFile)

/** Runs a tool in the folder `document`. It must find nothing: the test shows what it printed otherwise. */
export async function check (t: Test, folder: string, name: string, args: string[], env: Record<string, string> = {}): Promise<string> {
  try {
    const { stdout } = await run(join(folder, name), args, {
      cwd: join(import.meta.dirname, 'document'), env: { PATH: process.env.PATH, ...env }, maxBuffer: 64 * 1024 * 1024
    })
    t.pass(name)
    return stdout
  } catch (error) {
    const { message, stdout = '', stderr = '' } = error as Error & { stdout?: string, stderr?: string }
    t.comment(`${stdout}${stderr}`)
    t.fail(`${name}: ${message.slice(0, 200)}`)
    return ''
  }
}

/** The service as `npm start` runs it, on a database of its own, with every feature on, so that its document has every route. */
export async function startService (t: Test) {
  const url = `http://127.0.0.1:${await findFreePort()}`
  const secretKey = generateSecretKey().toString('base64')
  const env = serviceEnv(t.testdir(), {
    PORT: new URL(url).port,
    IDENTITY_SECRET_KEY: secretKey,
    IDENTITY_ISSUER: url,
    IDENTITY_MAIL_URL: `smtp://127.0.0.1:${await findFreePort()}`,
    IDENTITY_MAIL_FROM: 'accounts@example.com',
    IDENTITY_SIGN_UP: 'on',
    IDENTITY_SELF_DELETE: 'on',
    IDENTITY_RATE_LIMIT: 'off'
  })
  const { stdout } = await runProgram(t, 'cli.ts', { args: ['bootstrap', '--json'], env })
  const { access_token: token } = JSON.parse(stdout) as { access_token: string }
  const service = startProgram(t, 'server.ts', { env })
  await service.seen(/listening/i)

  async function call (method: string, path: string, body?: object): Promise<Record<string, string>> {
    const response = await fetch(`${url}/api/v1${path}`, {
      method, headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' }, ...(body !== undefined && { body: JSON.stringify(body) })
    })
    if (!response.ok) throw new Error(await response.text())
    return (await response.json() as { data: Record<string, string> }).data
  }

  /** Registers a confidential client. */
  async function register (data: object) {
    const { clientId = '' } = await call('POST', '/client', { data, credentials: true })
    const { clientSecret = '' } = await call('GET', `/client/${clientId}`)
    return { client_id: clientId, client_secret: clientSecret }
  }
  return { url, token, call, register, database: env.DATABASE_URL!, secretKey }
}
