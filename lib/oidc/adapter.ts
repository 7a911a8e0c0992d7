import type { Adapter, AdapterPayload } from 'oidc-provider'
import { findUsable } from '../clients/usable.ts'
import { toTimestamp } from '../clock.ts'
import { isDocumentUrl } from '../documents/ids.ts'
import { readRegistry } from '../resources/registry.ts'
import { toMetadata } from './clients.ts'
import { adaptCodes, adaptDeviceCodes } from './codes.ts'
import { findDocumentClient } from './document-clients.ts'
import { adaptGrants } from './grants.ts'
import type { AdapterParts, ModelAdapter, Payload } from './model-adapter.ts'
import { adaptInteractions, adaptProofs, adaptPushedRequests } from './requests.ts'
import { adaptSignInSessions } from './sign-in-sessions.ts'
import { adaptAccessTokens, adaptClientCredentials, adaptRefreshTokens } from './tokens.ts'

/** Clients, read for every request, so that a change takes effect at once. */
function adaptClients (parts: AdapterParts): ModelAdapter {
  const { store, times, callers } = parts
  return {
    async find (id) {
      // The `sub` of an assertion may be of any type.
      if (typeof id !== 'string') return undefined
      if (isDocumentUrl(id)) return await findDocumentClient(parts, id)
      const record = await findUsable(store, id, toTimestamp(times.now()))
      if (record === null) return undefined
      return toMetadata(record, await readRegistry(store), await callers.present(record))
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

/** A copy for oidc-provider, which modifies the objects that it receives. The store's documents are shared by all readers. */
function copy (payload: Payload | undefined): AdapterPayload | undefined {
  return structuredClone(payload)
}

/**
 * Maps oidc-provider's storage to our store. Records hold hashes instead of tokens, codes and cookies, and the epochs of the
 * sign-in they came from. A revoked or expired record is not found.
 */
export function createAdapterFactory (parts: AdapterParts): (model: string) => Adapter {
  return function createAdapter (model) {
    const adapt = MODELS[model]
    const adapter: ModelAdapter = adapt === undefined ? {} : adapt(parts)
    const refuse = (method: string) => new TypeError(`${model} has no use for ${method}`)
    return {
      async upsert (id, payload, expiresIn) {
        if (adapter.upsert === undefined || expiresIn === undefined) throw refuse('upsert')
        // Drops undefined members, as JSON does.
        await adapter.upsert(id, JSON.parse(JSON.stringify(payload)) as Payload, expiresIn)
      },
      async find (id) {
        return copy(await adapter.find?.(id))
      },
      async findByUid (uid) {
        return copy(await adapter.findByUid?.(uid))
      },
      async findByUserCode (code) {
        return copy(await adapter.findByUserCode?.(code))
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
