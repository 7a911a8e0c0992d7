import { type Adapter, type AdapterPayload } from 'oidc-provider'
import { type ClientRecord } from '../records.ts'
import { toMetadata } from './clients.ts'
import { adaptCodes, adaptDeviceCodes } from './codes.ts'
import { adaptGrants } from './grants.ts'
import { type AdapterParts, type ModelAdapter, type Payload } from './parts.ts'
import { adaptInteractions, adaptProofs, adaptPushedRequests } from './requests.ts'
import { adaptSessions } from './sessions.ts'
import { adaptAccessTokens, adaptClientCredentials, adaptRefreshTokens } from './tokens.ts'

/** The client API's clients, read for every request: what changes there counts at once. */
function adaptClients ({ store, box, firstParty }: AdapterParts): ModelAdapter {
  const clients = store.collection<ClientRecord>('clients')
  return {
    async find (id) {
      const record = await clients.get(id)
      return record === null ? undefined : toMetadata(record, box, firstParty)
    }
  }
}

const MODELS: Record<string, (parts: AdapterParts) => ModelAdapter> = {
  Client: adaptClients,
  Grant: adaptGrants,
  Session: adaptSessions,
  Interaction: adaptInteractions,
  PushedAuthorizationRequest: adaptPushedRequests,
  ReplayDetection: adaptProofs,
  AuthorizationCode: adaptCodes,
  DeviceCode: adaptDeviceCodes,
  AccessToken: adaptAccessTokens,
  ClientCredentials: adaptClientCredentials,
  RefreshToken: adaptRefreshTokens
}

/**
 * oidc-provider's storage on ours. Records hold hashes where oidc-provider has tokens, codes and cookies, stand on the epochs
 * of the sign-in they came from, and are found only while those stand.
 */
export function createAdapterFactory (parts: AdapterParts): (model: string) => Adapter {
  return function createAdapter (model) {
    const adapt = MODELS[model]
    const adapter: ModelAdapter = adapt === undefined ? {} : adapt(parts)
    const refuse = (method: string) => new TypeError(`${model} has no use for ${method}`)
    return {
      async upsert (id, payload, expiresIn) {
        if (adapter.upsert === undefined || expiresIn === undefined) throw refuse('upsert')
        // What is undefined is absent, here as in JSON.
        await adapter.upsert(id, JSON.parse(JSON.stringify(payload)) as Payload, expiresIn)
      },
      async find (id) {
        return await adapter.find?.(id) as AdapterPayload | undefined
      },
      async findByUid (uid) {
        return await adapter.findByUid?.(uid) as AdapterPayload | undefined
      },
      async findByUserCode (code) {
        return await adapter.findByUserCode?.(code) as AdapterPayload | undefined
      },
      async consume (id) {
        if (adapter.consume === undefined) throw refuse('consume')
        await adapter.consume(id)
      },
      async destroy (id) {
        await adapter.destroy?.(id)
      },
      async revokeByGrantId (grantId) {
        await adapter.revokeByGrantId?.(grantId)
      }
    }
  }
}
