import { createServer } from 'node:http'
import Provider from 'oidc-provider'

/** oidc-provider alone, which sends logout tokens. In the process of the service it would have that one's settings. */
const [issuer = '', service = ''] = process.argv.slice(2)

const client = (id: string, hasSessions: boolean) => ({
  client_id: id,
  client_secret: 'a secret of a test',
  redirect_uris: [`${service}/api/v1/auth/upstream/${id}/callback`],
  backchannel_logout_uri: `${service}/api/v1/auth/upstream/${id}/backchannel-logout`,
  backchannel_logout_session_required: hasSessions
})

const provider = new Provider(issuer, {
  clients: [client('named', true), client('bare', false)],
  clientAuthMethods: ['client_secret_basic'],
  features: { backchannelLogout: { enabled: true } },
  // Its own would refuse the loopback address.
  fetch: async (url: string | URL, { dispatcher: _, ...options }: RequestInit & { dispatcher?: unknown } = {}) => await fetch(url, options),
  findAccount: (_context: unknown, accountId: string) => ({ accountId, claims: () => ({ sub: accountId, email: `${accountId}@example.org`, email_verified: true }) }),
  claims: { email: ['email', 'email_verified'] }
} as ConstructorParameters<typeof Provider>[1])
provider.on('backchannel.error', (_context: unknown, error: Error) => console.error(error.message))
const serve = provider.callback()
createServer((request, response) => { void serve(request, response) }).listen(Number(new URL(issuer).port), '127.0.0.1', () => console.log('listening'))
