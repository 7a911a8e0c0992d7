// `npm run test:clients`: tools of others read the OpenAPI document, and clients that they generate call the service.
import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { findFreePort } from '../helpers/port.ts'
import { runProgram, serviceEnv, startProgram } from '../helpers/process.ts'
import { Browser } from '../oidc/browser.ts'
import { askCode } from '../oidc/harness.ts'

const ROOT = import.meta.dirname
const HERE = join(ROOT, 'document')
const BIN = join(ROOT, 'node_modules/.bin')
const PYTHON = join(ROOT, 'node_modules/.venv/bin')
const GENERATED = join(ROOT, 'node_modules/.generated')
const DOCUMENT = join(GENERATED, 'document.json')

const run = promisify(execFile)

/** Runs a tool that must find nothing: a failure has what it printed. */
async function check (t: Test, command: string, args: string[], env: Record<string, string> = {}): Promise<string> {
  try {
    const { stdout } = await run(command, args, { cwd: HERE, env: { PATH: process.env.PATH, ...env }, maxBuffer: 64 * 1024 * 1024 })
    t.pass(basename(command))
    return stdout
  } catch (error) {
    const { message, stdout = '', stderr = '' } = error as Error & { stdout?: string, stderr?: string }
    t.comment(`${stdout}${stderr}`)
    t.fail(message)
    return ''
  }
}

/** The service as `npm start` runs it, with every feature on, so that the document has every route. */
async function startService (t: Test) {
  const url = `http://127.0.0.1:${await findFreePort()}`
  const env = serviceEnv(t.testdir(), {
    PORT: new URL(url).port,
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

  async function call (method: string, path: string, body?: object) {
    const response = await fetch(`${url}/api/v1${path}`, {
      method, headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' }, ...(body !== undefined && { body: JSON.stringify(body) })
    })
    if (!response.ok) throw new Error(await response.text())
    return (await response.json() as { data: Record<string, string> }).data
  }
  return { url, token, call }
}

/** Signs Ann in through the pages: what a program needs to redeem the code. */
async function getCode (url: string, client: { client_id: string, client_secret: string, redirect_uri: string }): Promise<Record<string, string>> {
  const { url: asked, verifier } = askCode(client, { scope: 'openid account:read' })
  const page = await (await new Browser(url).open(asked)).submit(ANN)
  return {
    CODE: page.left?.searchParams.get('code') ?? '',
    VERIFIER: verifier,
    REDIRECT_URI: client.redirect_uri,
    CLIENT_ID: client.client_id,
    CLIENT_SECRET: client.client_secret
  }
}

const ANN = { account: 'ann@example.com', password: 'correct horse battery staple' }

t.setTimeout(600_000)

t.test('the OpenAPI document', async (t) => {
  const { url, token, call } = await startService(t)
  await mkdir(GENERATED, { recursive: true })
  await writeFile(DOCUMENT, await (await fetch(`${url}/openapi.json`)).text())
  const redirect_uri = 'https://app.example/callback'
  await call('POST', '/user', { data: ANN })
  const { clientId = '' } = await call('POST', '/client', { data: { name: 'Generated', redirectUris: [redirect_uri], scopes: ['account:read'], first_party: true }, credentials: true })
  const { clientSecret = '' } = await call('GET', `/client/${clientId}`)
  const client = { client_id: clientId, client_secret: clientSecret, redirect_uri }

  await t.test('spectral finds nothing', async (t) => {
    await check(t, join(BIN, 'spectral'), ['lint', '--ruleset', 'spectral.json', '--fail-severity', 'hint', DOCUMENT])
  })

  await t.test('redocly finds nothing', async (t) => {
    await check(t, join(BIN, 'redocly'), ['lint', '--extends', 'recommended-strict', DOCUMENT], { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' })
  })

  await t.test('a client by openapi-fetch', async (t) => {
    await check(t, join(BIN, 'openapi-typescript'), [DOCUMENT, '--output', join(GENERATED, 'document.d.ts')])
    await check(t, join(BIN, 'tsc'), ['--project', 'tsconfig.json'])
    const shown = await check(t, process.execPath, ['fetch.ts'], { URL: url, TOKEN: token, ...await getCode(url, client) })
    t.strictSame(JSON.parse(shown), {
      created: true, account: ANN.account, pages: ['fetch@example.com', ANN.account, 'admin'], changed: 204, code: 'ErrNotFound', oauth: 'invalid_grant'
    })
  })

  await t.test('a client by openapi-python-client', async (t) => {
    const folder = join(GENERATED, 'fastify_identity_client')
    const text = await check(t, join(PYTHON, 'openapi-python-client'), [
      'generate', '--path', DOCUMENT, '--meta', 'none', '--output-path', folder, '--overwrite', '--config', 'python.yaml', '--fail-on-warning'
    ])
    t.notMatch(text, 'Warning', 'no part of the document is passed over')
    const shown = await check(t, join(PYTHON, 'python'), ['python.py'], { PYTHONPATH: GENERATED, URL: url, TOKEN: token, ...await getCode(url, client) })
    t.strictSame(JSON.parse(shown), {
      created: true, account: ANN.account, pages: ['python@example.com', 'fetch@example.com', ANN.account, 'admin'], changed: 204, code: 'ErrNotFound', oauth: 'invalid_grant'
    })
  })
})
