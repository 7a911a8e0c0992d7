// `npm run test:clients`: tools of others read the OpenAPI document, and clients that they generate call the service.
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import t from 'tap'
import { Browser } from '../oidc/browser.ts'
import { type App, askCode } from '../oidc/harness.ts'
import { BIN, PYTHON, check, startService } from './service.ts'

const GENERATED = join(import.meta.dirname, 'node_modules/.generated')
const DOCUMENT = join(GENERATED, 'document.json')
const ANN = { account: 'ann@example.com', password: 'correct horse battery staple' }

/** Signs Ann in through the pages: what a program needs to redeem the code. */
async function getCode (url: string, app: App): Promise<Record<string, string>> {
  const { url: asked, verifier } = askCode(app, { scope: 'openid account:read' })
  const page = await (await new Browser(url).open(asked)).submit(ANN)
  return {
    CODE: page.left?.searchParams.get('code') ?? '',
    VERIFIER: verifier,
    REDIRECT_URI: app.redirect_uri,
    CLIENT_ID: app.client_id,
    CLIENT_SECRET: app.client_secret
  }
}

t.setTimeout(600_000)

t.test('the OpenAPI document', async (t) => {
  const { url, token, call, register } = await startService(t)
  await mkdir(GENERATED, { recursive: true })
  await writeFile(DOCUMENT, await (await fetch(`${url}/openapi.json`)).text())
  const redirect_uri = 'https://app.example/callback'
  await call('POST', '/user', { data: ANN })
  const app = { ...await register({ name: 'Generated', redirectUris: [redirect_uri], scopes: ['account:read'], first_party: true }), redirect_uri }
  const expected = { created: true, account: ANN.account, changed: 204, code: 'ErrNotFound', oauth: 'invalid_grant' }

  await t.test('spectral finds nothing', async (t) => {
    await check(t, BIN, 'spectral', ['lint', '--ruleset', 'spectral.json', '--fail-severity', 'hint', DOCUMENT])
  })

  await t.test('redocly finds nothing', async (t) => {
    await check(t, BIN, 'redocly', ['lint', '--extends', 'recommended-strict', DOCUMENT], { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' })
  })

  await t.test('a client by openapi-fetch', async (t) => {
    await check(t, BIN, 'openapi-typescript', [DOCUMENT, '--output', join(GENERATED, 'document.d.ts')])
    await check(t, BIN, 'tsc', ['--project', 'tsconfig.json'])
    const shown = await check(t, dirname(process.execPath), 'node', ['fetch.ts'], { URL: url, TOKEN: token, ...await getCode(url, app) })
    t.strictSame(JSON.parse(shown), { ...expected, pages: ['fetch@example.com', ANN.account, 'admin'] })
  })

  await t.test('a client by openapi-python-client', async (t) => {
    const folder = join(GENERATED, 'fastify_identity_client')
    const text = await check(t, PYTHON, 'openapi-python-client', [
      'generate', '--path', DOCUMENT, '--meta', 'none', '--output-path', folder, '--overwrite', '--config', 'python.yaml', '--fail-on-warning'
    ])
    t.notMatch(text, 'Warning', 'no part of the document is passed over')
    const shown = await check(t, PYTHON, 'python', ['python.py'], { PYTHONPATH: GENERATED, URL: url, TOKEN: token, ...await getCode(url, app) })
    t.strictSame(JSON.parse(shown), { ...expected, pages: ['python@example.com', 'fetch@example.com', ANN.account, 'admin'] })
  })
})
