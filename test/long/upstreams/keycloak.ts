import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { findFreePort } from '../../helpers/port.ts'
import { CLIENT, GROUP, PEOPLE, type PeerKind, type Person } from './peer.ts'

const VERSION = '26.7.3'
const ARCHIVE = process.env.KEYCLOAK_ARCHIVE ?? join(homedir(), `.m2/repository/org/keycloak/keycloak-quarkus-dist/${VERSION}/keycloak-quarkus-dist-${VERSION}.tar.gz`)

/** Milliseconds until it listens. It builds itself first, which takes a minute of two idle cores. */
const START = 1_200_000

const REALM = 'people'

/** The name and the password of its administrator. */
const ADMIN = 'admin'

const toUser = ({ account, password, name, email, isVerified }: Person) => (
  { username: account, email, emailVerified: isVerified, enabled: true, firstName: name, lastName: 'Example', credentials: [{ type: 'password', value: password, temporary: false }] })

/** The names of a person's groups and roles, in the ID token. */
const MAPPERS = [
  { name: 'groups', protocol: 'openid-connect', protocolMapper: 'oidc-group-membership-mapper', config: { 'claim.name': 'groups', 'full.path': 'false', 'id.token.claim': 'true' } },
  { name: 'roles', protocol: 'openid-connect', protocolMapper: 'oidc-usermodel-realm-role-mapper', config: { 'claim.name': 'realm_access.roles', multivalued: 'true', 'id.token.claim': 'true' } }
]

/** A realm where people make themselves an account with any address, which nobody checks. */
const createRealm = (redirectUri: string, logoutUri?: string) => ({
  realm: REALM,
  enabled: true,
  registrationAllowed: true,
  verifyEmail: false,
  roles: { realm: [{ name: GROUP }] },
  groups: [{ name: GROUP, realmRoles: [GROUP] }],
  clients: [{ clientId: CLIENT.clientId, secret: CLIENT.clientSecret, redirectUris: [`${new URL(redirectUri).origin}/*`], protocolMappers: MAPPERS, protocol: 'openid-connect', publicClient: false, standardFlowEnabled: true, ...(logoutUri !== undefined && { attributes: { 'backchannel.logout.url': logoutUri, 'backchannel.logout.session.required': 'true' } }) }],
  users: [toUser(PEOPLE.ada), toUser(PEOPLE.cara), toUser(PEOPLE.dora)]
})

export const keycloak: PeerKind = {
  name: `Keycloak ${VERSION}`,
  skip: !existsSync(ARCHIVE) && `no Keycloak: mvn dependency:get -Dartifact=org.keycloak:keycloak-quarkus-dist:${VERSION}:tar.gz -Dtransitive=false, or KEYCLOAK_ARCHIVE names the file`,
  async start (t, { redirectUri, logoutUri }) {
    const directory = mkdtempSync(join(tmpdir(), 'keycloak-'))
    execFileSync('tar', ['-xf', ARCHIVE, '-C', directory, '--strip-components=1'])
    const imported = join(directory, 'data/import')
    mkdirSync(imported, { recursive: true })
    writeFileSync(join(imported, `${REALM}.json`), JSON.stringify(createRealm(redirectUri, logoutUri)))
    const port = await findFreePort()
    const args = ['start-dev', '--import-realm', '--http-host=127.0.0.1', `--http-port=${port}`]
    // A group of its own: the script starts Java, and does not end it when it is killed.
    const child = spawn(join(directory, 'bin/kc.sh'), args, {
      detached: true, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, KC_BOOTSTRAP_ADMIN_USERNAME: ADMIN, KC_BOOTSTRAP_ADMIN_PASSWORD: ADMIN }
    })
    const closed = once(child, 'close')
    let text = ''
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (part: string) => { text += part })
    const stop = async () => {
      if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid!, 'SIGKILL')
      await closed
    }
    t.teardown(async () => {
      await stop()
      rmSync(directory, { recursive: true })
      if (!t.passing()) process.stderr.write(text)
    })
    const end = Date.now() + START
    while (!text.includes('Listening on:')) {
      if (child.exitCode !== null || Date.now() > end) throw new Error(`Keycloak did not start:\n${text}`)
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
    return {
      issuer: `http://127.0.0.1:${port}/realms/${REALM}`,
      async signIn (tab, { account, password }) {
        await tab.locator('input#password').waitFor()
        const field = tab.locator('input#username')
        // A browser that is signed in there already is asked for the password only.
        if (await field.isVisible()) await field.fill(account)
        await tab.locator('input#password').fill(password)
        await tab.locator('#kc-login').click()
      },
      async register (tab, { account, password, name, email, isVerified }) {
        if (isVerified) throw new Error('nobody verifies an address there')
        await tab.getByRole('link', { name: 'Register' }).click()
        await tab.locator('input#username').fill(account)
        await tab.locator('input#password').fill(password)
        await tab.locator('input#password-confirm').fill(password)
        await tab.locator('input#email').fill(email)
        await tab.locator('input#firstName').fill(name)
        await tab.locator('input#lastName').fill('Example')
        await tab.locator('[type=submit]').click()
      },
      async administer (person, what) {
        const origin = `http://127.0.0.1:${port}`
        const form = new URLSearchParams({ grant_type: 'password', client_id: 'admin-cli', username: ADMIN, password: ADMIN })
        const { access_token: token } = await (await fetch(`${origin}/realms/master/protocol/openid-connect/token`, { method: 'POST', body: form })).json() as { access_token: string }
        const call = async (method: string, path: string, body?: object) => (
          await fetch(`${origin}/admin/realms/${REALM}${path}`, { method, headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' }, ...(body && { body: JSON.stringify(body) }) }))
        const find = async (path: string) => (await (await call('GET', path)).json() as { id: string }[])[0]?.id ?? ''
        const user = `/users/${await find(`/users?exact=true&username=${person.account}`)}`
        const membership = `${user}/groups/${await find(`/groups?search=${GROUP}`)}`
        const { status } = await ({
          create: async () => await call('POST', '/users', toUser(person)),
          'sign out': async () => await call('POST', `${user}/logout`),
          disable: async () => await call('PUT', user, { enabled: false }),
          delete: async () => await call('DELETE', user),
          'add to the group': async () => await call('PUT', membership),
          'remove from the group': async () => await call('DELETE', membership)
        })[what]()
        if (status !== (what === 'create' ? 201 : 204)) throw new Error(`${what}: status ${status}`)
      },
      stop
    }
  }
}
