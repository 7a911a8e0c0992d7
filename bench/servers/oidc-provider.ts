import { Provider, type Adapter, type AdapterPayload } from 'oidc-provider'
import { CLIENTS, TOKENS, clientAt, userAt } from '../fixture.ts'
import { introspectionLoad, issueLoad } from '../loads.ts'
import { readOptions, serve } from './serve.ts'

// oidc-provider's introspection, and its tokens for clients. Its memory adapter evicts tokens beyond a thousand; this one evicts none.

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

const resource = { client_id: 'introspector', client_secret: 'the secret of the resource server' }
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

const tokens: string[] = []
for (let index = 0; index < TOKENS; index++) {
  const { clientId, scopes } = clientAt(index % CLIENTS)
  const { user_id } = userAt(index)
  const client = (await provider.Client.find(clientId))!
  const grant = new provider.Grant({ clientId, accountId: user_id })
  grant.addOIDCScope(scopes.join(' '))
  tokens.push(await new provider.AccessToken({
    client, accountId: user_id, grantId: await grant.save(), scope: scopes.join(' '), gty: 'authorization_code', expiresWithSession: false
  } as ConstructorParameters<typeof provider.AccessToken>[0]).save())
}

const { createServer } = await import('node:http')
await serve(createServer(provider.callback()), {
  load: issue ? issueLoad({ path: '/token' }) : introspectionLoad('/token/introspection', { id: resource.client_id, secret: resource.client_secret }, tokens)
})
