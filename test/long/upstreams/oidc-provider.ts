import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import Provider from 'oidc-provider'
import { findFreePort } from '../../helpers/port.ts'
import { startCommand } from '../../helpers/process.ts'
import { CLIENT, PEOPLE, type PeerKind } from './peer.ts'

/** oidc-provider with the pages that it brings, in a process of its own: in ours it has the service's settings. */
export const oidcProvider: PeerKind = {
  name: 'oidc-provider alone',
  skip: false,
  async start (t, { redirectUri }) {
    const issuer = `http://127.0.0.1:${await findFreePort()}`
    const { child, seen, ended } = startCommand(t, process.execPath, { args: [fileURLToPath(import.meta.url), issuer, redirectUri], env: {} })
    await seen(/^listening$/m)
    return {
      issuer,
      async signIn (tab, { account, password }) {
        await tab.getByPlaceholder('Enter any login').fill(account)
        await tab.getByPlaceholder('and password').fill(password)
        await tab.getByRole('button', { name: 'Sign-in' }).click()
        const consent = tab.getByRole('button', { name: 'Continue', exact: true })
        // It asks once in a browser.
        await Promise.race([consent.waitFor(), tab.waitForURL(({ hostname }) => hostname === 'localhost')])
        if (await consent.isVisible()) await consent.click()
      },
      async stop () {
        child.kill('SIGKILL')
        await ended
      }
    }
  }
}

if (import.meta.main) {
  const [issuer = '', redirectUri = ''] = process.argv.slice(2)
  const provider = new Provider(issuer, {
    clients: [{ client_id: CLIENT.clientId, client_secret: CLIENT.clientSecret, redirect_uris: [redirectUri] }],
    // Its default for clients, and here the only one.
    clientAuthMethods: ['client_secret_basic'],
    claims: { profile: ['name'], email: ['email', 'email_verified'] },
    async findAccount (_context, accountId) {
      const { name, email, isVerified } = Object.values(PEOPLE).find(({ account }) => account === accountId)!
      return { accountId, claims: () => ({ sub: accountId, name, email, email_verified: isVerified }) }
    }
  })
  const serve = provider.callback()
  createServer((request, response) => { void serve(request, response) }).listen(Number(new URL(issuer).port), '127.0.0.1', () => console.log('listening'))
}
