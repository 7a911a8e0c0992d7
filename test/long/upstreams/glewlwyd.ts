import { execFileSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { findFreePort } from '../../helpers/port.ts'
import { startCommand } from '../../helpers/process.ts'
import { CLIENT, PEOPLE, type PeerKind } from './peer.ts'

/** Files of the Debian package. */
const PROGRAM = '/usr/bin/glewlwyd'
const DOCS = '/usr/share/doc/glewlwyd'
const PAGES = '/usr/share/glewlwyd/webapp'
const PAGES_SETTINGS = '/usr/share/glewlwyd/templates/config.json'

/** The administrator of a new database. */
const ADMIN = { username: 'admin', password: 'password' }

const SCOPES = ['openid', 'profile', 'email']

/** Its plugin for OpenID Connect, with an additional claim for the word about addresses, of which it knows nothing by itself. */
function createPlugin (iss: string): object {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return {
    iss,
    'jwt-type': 'rsa',
    'jwt-key-size': '256',
    key: privateKey.export({ format: 'pem', type: 'pkcs8' }),
    cert: publicKey.export({ format: 'pem', type: 'spki' }),
    'access-token-duration': 3600,
    'refresh-token-duration': 3600,
    'code-duration': 600,
    'refresh-token-rolling': true,
    'auth-type-code-enabled': true,
    'auth-type-id-token-enabled': true,
    'allowed-scope': ['openid'],
    'subject-type': 'public',
    'pkce-allowed': true,
    'oauth-as-iss-id': true,
    'name-claim': 'mandatory',
    'email-claim': 'mandatory',
    claims: [{ name: 'email_verified', 'user-property': 'verified', type: 'boolean', 'boolean-value-true': 'yes', 'boolean-value-false': 'no', mandatory: true }]
  }
}

/** Settings that its sample of a configuration has, with other values. */
function configure (directory: string, port: number): string {
  const sample = gunzipSync(readFileSync(join(DOCS, 'glewlwyd.conf.sample.gz'))).toString()
  const values = { port, bind_address: '"127.0.0.1"', external_url: `"http://127.0.0.1:${port}"`, static_files_path: `"${directory}/pages/"`, cookie_domain: '"127.0.0.1"', cookie_secure: 0 }
  const changed = Object.entries(values).reduce((text, [name, value]) => text.replace(new RegExp(`^#?${name}\\s*=.*$`, 'm'), `${name}=${value}`), sample)
  return changed.replace('/var/cache/glewlwyd/glewlwyd.db', join(directory, 'glewlwyd.db'))
}

export const glewlwyd: PeerKind = {
  name: 'Glewlwyd',
  skip: !existsSync(PROGRAM) && 'no Glewlwyd: apt-get install glewlwyd',
  scripts: true,
  async start (t, { redirectUri }) {
    const directory = mkdtempSync(join(tmpdir(), 'glewlwyd-'))
    t.teardown(() => rmSync(directory, { recursive: true }))
    const port = await findFreePort()
    const issuer = `http://127.0.0.1:${port}/api/oidc`
    // The package has a folder where its pages read a file.
    cpSync(PAGES, join(directory, 'pages'), { recursive: true, dereference: true, filter: (path) => !path.endsWith('config.json') })
    cpSync(PAGES_SETTINGS, join(directory, 'pages/config.json'))
    if (!statSync(join(directory, 'pages/config.json')).isFile()) throw new Error(`${PAGES_SETTINGS} is no file`)
    execFileSync('sqlite3', [join(directory, 'glewlwyd.db')], { input: gunzipSync(readFileSync(join(DOCS, 'database/init.sqlite3.sql.gz'))) })
    const file = join(directory, 'glewlwyd.conf')
    writeFileSync(file, configure(directory, port))
    const { child, seen, ended } = startCommand(t, PROGRAM, { args: ['-c', file], env: {} })
    await seen(/Glewlwyd started on port/)

    let cookie = ''
    async function call (method: string, path: string, body: object = {}): Promise<void> {
      const response = await fetch(`http://127.0.0.1:${port}/api/${path}`, { method, body: JSON.stringify(body), headers: { 'content-type': 'application/json', cookie } })
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
      cookie ||= response.headers.getSetCookie()[0]?.split(';')[0] ?? ''
    }
    await call('POST', 'auth/', ADMIN)
    const field = { multiple: false, read: true, write: true, 'profile-read': true, 'profile-write': true }
    await call('PUT', 'mod/user/database', { display_name: 'Database', order_rank: 0, parameters: { 'use-glewlwyd-connection': true, 'data-format': { verified: field } } })
    await call('PUT', 'mod/user/database/reset')
    await call('POST', 'mod/plugin', { module: 'oidc', name: 'oidc', display_name: 'OpenID Connect', parameters: createPlugin(issuer) })
    for (const name of SCOPES.slice(1)) await call('POST', 'scope', { name, display_name: name, password_required: false, scheme: {} })
    await call('PUT', 'scope/openid', { display_name: 'openid', password_required: true, password_max_age: 0, scheme: {} })
    await call('POST', 'client', {
      client_id: CLIENT.clientId,
      client_secret: CLIENT.clientSecret,
      password: CLIENT.clientSecret,
      confidential: true,
      enabled: true,
      scope: [],
      redirect_uri: [redirectUri],
      authorization_type: ['code'],
      token_endpoint_auth_method: ['client_secret_post']
    })
    for (const { account, password, name, email, isVerified } of Object.values(PEOPLE)) {
      await call('POST', 'user', { username: account, password, name, email, verified: isVerified ? 'yes' : 'no', enabled: true, scope: SCOPES })
    }
    return {
      issuer,
      async signIn (tab, { account, password }) {
        await tab.locator('#username').fill(account)
        await tab.locator('#password').fill(password)
        await tab.locator('#password').press('Enter')
        const grant = tab.getByRole('button', { name: 'Grant access' })
        const proceed = tab.getByTitle('Continue to client application')
        // It asks once for an account.
        await Promise.race([proceed.waitFor(), tab.waitForURL(({ hostname }) => hostname === 'localhost')])
        if (await grant.isVisible()) {
          for (const scope of SCOPES.slice(1)) await tab.locator(`#grant-${scope}`).check()
          await grant.click()
        }
        if (await proceed.isVisible()) await proceed.click()
      },
      async stop () {
        child.kill('SIGKILL')
        await ended
      }
    }
  }
}
