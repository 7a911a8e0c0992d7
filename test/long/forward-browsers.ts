import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Browser, chromium } from 'playwright-core'
import { startIdentity } from '../../testing/index.ts'
import { findFreePort } from '../helpers/port.ts'
import { waitUntil } from '../helpers/wait.ts'
import { executablePath, typeIn } from '../pages/chromium.ts'

const MODULES = '/usr/lib/apache2/modules'
const LOADED = ['mpm_event', 'authn_core', 'authz_core', 'authz_user', 'proxy', 'proxy_http', 'headers', 'auth_openidc']
/** Seconds from the sign-in to the first refresh: more than until the sign-out, which must be enough by itself. */
const REFRESH = 15
const PASSWORD = 'a password of a person'

function equal (name: string, found: unknown, expected: unknown): void {
  if (JSON.stringify(found) !== JSON.stringify(expected)) throw new Error(`${name}: ${JSON.stringify(found)} in place of ${JSON.stringify(expected)}`)
}

/** The program behind Apache: it answers the user that it is told. */
async function startApi () {
  const server = createServer(({ headers }, response) => response.end(String(headers['identity-user']))).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { port: (server.address() as AddressInfo).port, close: () => { server.closeAllConnections(); server.close() } }
}

/** Signs somebody in behind the Apache of docs/forward-auth.md, and out again. */
export async function run (): Promise<string> {
  for (const [command, ...args] of [['apache2', '-v'], ['test', '-e', `${MODULES}/mod_auth_openidc.so`], ['test', '-e', executablePath ?? 'a Chromium']] as const) {
    if (spawnSync(command, args).status !== 0) return `browsers behind a proxy (skipped: no ${command} ${args.join(' ')})`
  }
  const page = await readFile(new URL('../../docs/forward-auth.md', import.meta.url), 'utf8')
  const [, block = ''] = /^```apache\n([^]*?)^```$/m.exec(page) ?? []
  const [issuerPort, port] = [await findFreePort(), await findFreePort()]
  const [issuer, app] = [`http://localhost:${issuerPort}`, `http://localhost:${port}`]
  const kit = await startIdentity({ oidc: { issuer } })
  await kit.listen({ port: issuerPort })
  const { user_id } = await kit.mint({ user: 'ann@example.com' })
  const operator = { user_id: '', isAdmin: true }
  await kit.app.identity.users.patch(user_id, { data: { password: PASSWORD } }, operator)
  const { clients } = kit.app.identity
  const { clientId } = await clients.create({
    data: { redirectUris: [`${app}/.oidc/callback`], backchannelLogoutUri: `${app}/.oidc/callback?logout=backchannel`, scopes: [], name: 'The app', userId: user_id, first_party: true },
    credentials: true
  }, operator)
  const { clientSecret = '' } = await clients.require(clientId, operator)
  const api = await startApi()
  const dir = await mkdtemp(join(tmpdir(), 'forward-browsers-'))
  await chmod(dir, 0o755)
  const text = block.replaceAll('https://id.example.com', issuer).replaceAll('https://app.example.com', app).replace('CLIENT_ID', clientId)
    .replace('CLIENT_SECRET', clientSecret).replace('PASSPHRASE', 'of-this-test').replace('8081', String(api.port)).replace(' 3300 ', ` ${3600 - REFRESH} `)
  await writeFile(join(dir, 'apache.conf'), `ServerRoot ${dir}
ServerName localhost
PidFile ${dir}/pid
ErrorLog "|/bin/cat"
Listen 127.0.0.1:${port}
${LOADED.map((name) => `LoadModule ${name}_module ${MODULES}/mod_${name}.so`).join('\n')}
OIDCCacheShmMax 500
Mutex file:${dir} default
${process.getuid?.() === 0 ? 'User www-data\nGroup www-data' : ''}
${text}`)
  let log = ''
  let browser: Browser | undefined
  const child = spawn('apache2', ['-X', '-f', join(dir, 'apache.conf')], { stdio: ['ignore', 'pipe', 'pipe'] })
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (part: string) => { log += part })
  try {
    await waitUntil('Apache answers', async () => {
      if (child.exitCode !== null) throw new Error(`Apache has ended: ${log}`)
      return await fetch(app, { redirect: 'manual' }).then(() => true, () => false)
    })
    browser = await chromium.launch({ executablePath: executablePath ?? '', args: ['--no-sandbox', '--disable-gpu'] })
    const forged = { 'identity-user': 'root', oidc_claim_sub: 'root', 'x-remote-user': 'root' }
    const tab = await (await browser.newContext({ extraHTTPHeaders: forged })).newPage()
    await tab.goto(`${app}/orders?of=ann`)
    equal('a browser without a session goes to the service', new URL(tab.url()).origin, issuer)
    await typeIn(tab, { account: 'ann@example.com', password: PASSWORD })
    await tab.waitForURL(`${app}/orders?of=ann`)
    equal('and comes back to the page that it asked for, as its user', await tab.textContent('body'), user_id)
    await tab.goto(app)
    equal('and stays that user', await tab.textContent('body'), user_id)
    equal('a token is no session', (await fetch(app, { redirect: 'manual', headers: (await kit.mint({ user: user_id })).headers })).status, 401)
    await tab.goto(`${issuer}/api/v1/auth/session/end`)
    await tab.getByRole('button', { name: 'Sign out', exact: true }).click()
    await tab.waitForLoadState()
    await kit.flush()
    await tab.goto(app)
    equal('the end of the sign-in is that of the session', new URL(tab.url()).origin, issuer)
    await typeIn(tab, { account: 'ann@example.com', password: PASSWORD })
    await tab.waitForURL(`${app}/`)
    await kit.app.identity.users.patch(user_id, { disable: true }, operator)
    await waitUntil('the session of a disabled person ends', async () => {
      await tab.goto(app)
      return new URL(tab.url()).origin === issuer
    })
    return 'browsers behind a proxy: mod_auth_openidc'
  } catch (error) {
    throw new Error(`${String(error)}\n${log.slice(-4000)}`, { cause: error })
  } finally {
    await browser?.close()
    if (child.exitCode === null) {
      const closed = once(child, 'close')
      child.kill('SIGKILL')
      await closed
    }
    api.close()
    await kit.close()
    await rm(dir, { recursive: true, force: true })
  }
}
