// MCP's own tools, unmodified, against the service and examples/mcp-server: the scenarios of the conformance suite for authorization servers,
// and the Inspector in Chromium. Their documents are on a host of this machine, over TLS with an authority of its own.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, readdir } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import t, { type Test } from 'tap'
import { startIdentity } from '../../testing/index.ts'
import { findFreePort } from '../helpers/port.ts'
import { Browser } from '../oidc/browser.ts'
import { press, skip, startChromium, typeIn, withTab } from '../pages/chromium.ts'

const BIN = join(import.meta.dirname, 'node_modules/.bin')
const PERSON = { account: 'ann', password: 'correct horse' }
const OPERATOR = { user_id: '', isAdmin: true }

t.setTimeout(600_000)

const pem = await readFile(new URL('../fixtures/tls-hooks.pem', import.meta.url), 'utf8')
const authorities = getCACertificates('default')
setDefaultCACertificates([...authorities, pem.slice(pem.indexOf('-----BEGIN CERT'))])
t.teardown(() => setDefaultCACertificates(authorities))

/** The host of a document, with the redirect URI of a tool. Any port of it will do. */
async function serveDocument (t: Test): Promise<{ host: string, document: (name: string, path: string) => string }> {
  const documents = new Map<string, object>()
  const server = createServer({ key: pem, cert: pem }, ({ url = '' }, response) => {
    const document = documents.get(url)
    response.writeHead(document === undefined ? 404 : 200, { 'content-type': 'application/json' }).end(JSON.stringify(document))
  }).listen(0, 'localhost')
  await once(server, 'listening')
  t.teardown(() => { server.close(); server.closeAllConnections() })
  const host = `localhost:${(server.address() as AddressInfo).port}`
  return {
    host,
    document (client_name, path) {
      const client_id = `https://${host}/${documents.size}.json`
      documents.set(new URL(client_id).pathname, { client_id, client_name, redirect_uris: [`http://127.0.0.1${path}`, `http://localhost${path}`], token_endpoint_auth_method: 'none' })
      return client_id
    }
  }
}

/** Starts a program, which is ended with the test. @returns a function that resolves with the first match in what it prints */
function start (t: Test, program: string, args: string[], env: Record<string, string> = {}) {
  const child: ChildProcess = spawn(program, args, { cwd: t.testdir(), env: { PATH: process.env.PATH, HOME: t.testdirName, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  const closed = once(child, 'close')
  let text = ''
  for (const stream of [child.stdout!, child.stderr!]) stream.setEncoding('utf8').on('data', (chunk: string) => { text += chunk })
  t.teardown(async () => {
    child.kill('SIGKILL')
    await closed
    if (!t.passing()) t.comment(text)
  })
  return {
    closed,
    async see (pattern: RegExp): Promise<string> {
      while (!pattern.test(text)) {
        if (child.exitCode !== null) throw new Error(`${program} exited: ${text}`)
        await Promise.race([once(child.stdout!, 'data'), once(child.stderr!, 'data'), closed])
      }
      return pattern.exec(text)![0]
    }
  }
}

const { host, document } = await serveDocument(t)
const port = await findFreePort()
const resource = `http://127.0.0.1:${port}/mcp`
const kit = await startIdentity({
  t,
  rateLimit: false,
  oidc: { documents: { hosts: [host] } },
  resources: [{ id: resource, name: 'Notes', scopes: { 'notes:read': 'read your notes' }, documents: ['notes:read'], selfService: ['notes:read'] }]
})
const { url } = await kit.listen()
const { user_id } = await kit.app.identity.users.create({ data: PERSON })
const { clients } = kit.app.identity

async function register (redirectUri: string): Promise<string> {
  const { clientId } = await clients.create({ data: { name: 'Registered', redirectUris: [redirectUri], scopes: ['notes:read'], userId: user_id } }, OPERATOR)
  return clientId
}

await t.test('the conformance suite', async (t) => {
  const ids = { 'by document': document('The suite', '/callback'), registered: await register('http://127.0.0.1/callback') }
  for (const version of ['2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28']) {
    for (const [name, id] of Object.entries(ids)) {
      await t.test(`${version}, ${name}`, async (t) => {
        const suite = start(t, join(BIN, 'conformance'), ['authorization', '--url', url, '--client-id', id, '--resource', resource, '--port', String(await findFreePort()), '--spec-version', version, '--output-dir', 'results'])
        const link = await suite.see(new RegExp(`${url}/api/v1/auth/authorize\\?\\S+`))
        const shown = await (await new Browser(url).open(link)).submit(PERSON)
        t.match(shown.text, /read your notes/)
        await fetch((await shown.submit({ decision: 'allow' })).left!)
        await suite.closed
        const files = (await readdir(join(t.testdirName, 'results'), { recursive: true })).filter((file) => file.endsWith('checks.json'))
        const checks = (await Promise.all(files.map(async (file) => JSON.parse(await readFile(join(t.testdirName, 'results', file), 'utf8')) as { id: string, status: string, errorMessage?: string }[]))).flat()
        for (const { id, status, errorMessage } of checks) t.equal(status, 'SUCCESS', `${id} ${errorMessage ?? ''}`)
        t.strictSame([...new Set(checks.map(({ id }) => id))].filter((id) => !id.endsWith('-cimd')).sort(), ['authorization-code-grant', 'authorization-server-metadata'])
      })
    }
  }
})

await t.test('the Inspector in Chromium', { skip }, async (t) => {
  startChromium(t)
  const id = document('The Inspector', '/oauth/callback')
  const server = start(t, process.execPath, [new URL('../../examples/mcp-server/server.js', import.meta.url).pathname], { ISSUER: url, PORT: String(port) })
  await server.see(/MCP server/)
  const web = String(await findFreePort())
  const inspector = start(t, join(BIN, 'mcp-inspector'), ['--web', '--transport', 'http', '--server-url', resource], {
    CLIENT_PORT: web, MCP_AUTO_OPEN_ENABLED: 'false', MCP_INSPECTOR_API_TOKEN: 'known', MCP_INSPECTOR_SECRET_STORE: 'memory'
  })
  await inspector.see(/up and running/)
  await withTab(t, {}, async (tab) => {
    await tab.goto(`http://localhost:${web}/?MCP_INSPECTOR_API_TOKEN=known`)
    await press(tab, 'Client settings')
    await press(tab, 'OAuth Client ID Metadata Document')
    await tab.getByText('Use Client ID Metadata Document').click()
    await tab.getByRole('textbox', { name: 'Client ID metadata document URL' }).fill(id)
    await tab.getByRole('button', { name: 'Close', exact: true }).click()
    await tab.getByRole('switch', { name: /Connect or disconnect/ }).click({ force: true })
    await tab.waitForURL((place) => place.origin === url)
    await typeIn(tab, PERSON)
    t.match(await tab.locator('main').innerText(), /It calls itself The Inspector[^]*read your notes[^]*an app on this computer/)
    await press(tab, 'Allow')
    await tab.getByText('Tools', { exact: true }).first().click()
    await tab.getByText('list_notes').first().click()
    await press(tab, 'Execute Tool')
    await tab.getByText(`One note of ann, for ${id}`).first().waitFor()
    // It loads fonts and icons from elsewhere.
    tab.complaints.length = 0
  })
  t.match(await kit.app.identity.clients.require(id, OPERATOR), { name: 'The Inspector', document: { host } })
})
