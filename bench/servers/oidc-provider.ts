import { Provider, type Adapter, type AdapterPayload } from 'oidc-provider'
import { CLIENTS, TOKENS, clientAt, userAt } from '../fixture.ts'
import { toRaw } from '../http.ts'
import { issueLoad } from '../loads.ts'
import { readOptions, serve } from './serve.ts'

// oidc-provider's introspection, and its tokens for clients. Its own memory adapter forgets tokens past a thousand; this one is bounded by memory only.

const { issue = false } = readOptions<{ issue?: boolean }>()

class MapAdapter implements Adapter {
  static readonly #models = new Map<string, Map<string, AdapterPayload>>()
  readonly #records: Map<string, AdapterPayload>

  constructor (model: string) {
    this.#records = MapAdapter.#models.get(model) ?? new Map()
    MapAdapter.#models.set(model, this.#records)
  }

  async upsert (id: string, payload: AdapterPayload) { this.#records.set(id, payload) }
  async find (id: string) { return this.#records.get(id) }
  async findByUserCode () { return undefined }
  async findByUid () { return undefined }
  async destroy (id: string) { this.#records.delete(id) }
  async consume (id: string) { this.#records.get(id)!.consumed = Math.floor(Date.now() / 1000) }
  async revokeByGrantId () {}
}

const resource = { client_id: 'introspector', client_secret: 'a secret of the one who asks' }
const clients = Array.from({ length: CLIENTS }, (_, index) => ({
  client_id: clientAt(index).clientId,
  client_secret: clientAt(index).secret ?? 'a secret that is not used here',
  redirect_uris: clientAt(index).redirectUris,
  grant_types: ['authorization_code', 'client_credentials']
}))

const provider = new Provider('http://127.0.0.1', {
  adapter: MapAdapter,
  clients: [{ ...resource, redirect_uris: [], response_types: [], grant_types: [] }, ...clients],
  features: {
    clientCredentials: { enabled: true },
    introspection: { enabled: true, allowedPolicy: async () => true },
    devInteractions: { enabled: false }
  },
  findAccount: async (_ctx, id) => ({ accountId: id, claims: async () => ({ sub: id }) }),
  ttl: { AccessToken: 86_400, ClientCredentials: 3_600, Grant: 86_400 },
  cookies: { keys: ['not used'] }
})

const requests: string[] = []
const proofs: string[] = []
const basic = Buffer.from(`${resource.client_id}:${encodeURIComponent(resource.client_secret)}`).toString('base64')
for (let index = 0; index < TOKENS; index++) {
  const { clientId, scopes } = clientAt(index % CLIENTS)
  const { user_id } = userAt(index)
  const client = (await provider.Client.find(clientId))!
  const grant = new provider.Grant({ clientId, accountId: user_id })
  grant.addOIDCScope(scopes.join(' '))
  const token = await new provider.AccessToken({
    client, accountId: user_id, grantId: await grant.save(), scope: scopes.join(' '), gty: 'authorization_code', expiresWithSession: false
  } as ConstructorParameters<typeof provider.AccessToken>[0]).save()
  requests.push(toRaw({
    method: 'POST',
    path: '/token/introspection',
    headers: { authorization: `Basic ${basic}`, 'content-type': 'application/x-www-form-urlencoded' },
    body: `token=${token}`
  }))
  proofs.push(user_id)
}

const { createServer } = await import('node:http')
await serve(createServer(provider.callback()), { load: issue ? issueLoad('/token') : { requests, proofs } })
