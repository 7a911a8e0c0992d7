import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { findFreePort } from '../../helpers/port.ts'
import { CLIENT, PEOPLE, type PeerKind, type Person } from './peer.ts'

const VERSION = '26.7.3'
const ARCHIVE = process.env.KEYCLOAK_ARCHIVE ?? join(homedir(), `.m2/repository/org/keycloak/keycloak-quarkus-dist/${VERSION}/keycloak-quarkus-dist-${VERSION}.tar.gz`)

/** Milliseconds until it listens. It builds itself first, which takes a minute of two idle cores. */
const START = 1_200_000

const REALM = 'people'

const toUser = ({ account, password, name, email, isVerified }: Person) => (
  { username: account, email, emailVerified: isVerified, enabled: true, firstName: name, lastName: 'Example', credentials: [{ type: 'password', value: password, temporary: false }] })

/** A realm where people make themselves an account with any address, which nobody checks. */
const createRealm = (redirectUri: string) => ({
  realm: REALM,
  enabled: true,
  registrationAllowed: true,
  verifyEmail: false,
  clients: [{ clientId: CLIENT.clientId, secret: CLIENT.clientSecret, redirectUris: [redirectUri], protocol: 'openid-connect', publicClient: false, standardFlowEnabled: true }],
  users: [toUser(PEOPLE.ada), toUser(PEOPLE.cara)]
})

export const keycloak: PeerKind = {
  name: `Keycloak ${VERSION}`,
  skip: !existsSync(ARCHIVE) && `no Keycloak: mvn dependency:get -Dartifact=org.keycloak:keycloak-quarkus-dist:${VERSION}:tar.gz -Dtransitive=false, or KEYCLOAK_ARCHIVE names the file`,
  async start (t, { redirectUri }) {
    const directory = mkdtempSync(join(tmpdir(), 'keycloak-'))
    execFileSync('tar', ['-xf', ARCHIVE, '-C', directory, '--strip-components=1'])
    const imported = join(directory, 'data/import')
    mkdirSync(imported, { recursive: true })
    writeFileSync(join(imported, `${REALM}.json`), JSON.stringify(createRealm(redirectUri)))
    const port = await findFreePort()
    const args = ['start-dev', '--import-realm', '--http-host=127.0.0.1', `--http-port=${port}`]
    // A group of its own: the script starts Java, and does not end it when it is killed.
    const child = spawn(join(directory, 'bin/kc.sh'), args, { detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
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
      stop
    }
  }
}
