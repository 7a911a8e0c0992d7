import type { Adapter, AdapterPayload } from 'oidc-provider'
import type { ClientRecord } from '../records.ts'
import { toMetadata } from './clients.ts'
import { adaptCodes, adaptDeviceCodes } from './codes.ts'
import { adaptGrants } from './grants.ts'
import type { AdapterParts, ModelAdapter, Payload } from './model-adapter.ts'
import { adaptInteractions, adaptProofs, adaptPushedRequests } from './requests.ts'
import { adaptSignInSessions } from './sign-in-sessions.ts'
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
  Session: adaptSignInSessions,
  Interaction: adaptInteractions,
  PushedAuthorizationRequest: adaptPushedRequests,
  ReplayDetection: adaptProofs,
  AuthorizationCode: adaptCodes,
  DeviceCode: adaptDeviceCodes,
  AccessToken: adaptAccessTokens,
  ClientCredentials: adaptClientCredentials,
  RefreshToken: adaptRefreshTokens
}

/** What is found, as oidc-provider's own: it writes to it, and the store shares what it gives with all who ask for it. */
function own (payload: Payload | undefined): AdapterPayload | undefined {
  return structuredClone(payload) as AdapterPayload | undefined
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
        return own(await adapter.find?.(id))
      },
      async findByUid (uid) {
        return own(await adapter.findByUid?.(uid))
      },
      async findByUserCode (code) {
        return own(await adapter.findByUserCode?.(code))
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
