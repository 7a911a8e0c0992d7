// An API of its own. It admits access tokens that were requested for it, with the scope that each route needs.
import Fastify from 'fastify'
// In an app of your own: import remoteAuth from 'fastify-identity/remote'
import remoteAuth from '../../plugins/remote.ts'

const { ISSUER = 'http://127.0.0.1:3000', PORT = '8083' } = process.env

// The id of the resource, as it is declared at the service. It need not be the address of this server.
const audience = 'https://orders.example.com'

const app = Fastify()
await app.register(remoteAuth, { issuer: ISSUER })

// For users, through any app that they have allowed to read their orders.
app.get('/orders', { onRequest: app.identity.guard({ audience, scopes: ['orders:read'] }) }, async ({ caller }) =>
  ({ orders: [{ id: 1, of: caller.user.account }], by: caller.client.clientId }))

// For programs that act for themselves. `subject: 'any'` would admit users and programs.
app.get('/report', { onRequest: app.identity.guard({ audience, scopes: ['orders:report'], subject: 'client' }) }, async ({ caller }) =>
  ({ orders: 1, by: caller.client.clientId }))

await app.listen({ port: Number(PORT), host: '127.0.0.1' })
console.log(`Orders API: http://127.0.0.1:${app.server.address().port}`)
