import type { Adapter, AdapterPayload } from 'oidc-provider'
import { defined } from '../defined.ts'
import { adaptCodes, adaptDeviceCodes } from './codes.ts'
import { adaptGrants } from './grants.ts'
import type { AdapterParts, ModelAdapter, Payload } from './model-adapter.ts'
import { adaptInteractions, adaptProofs, adaptPushedRequests } from './requests.ts'
import { adaptSignInSessions } from './sign-in-sessions.ts'
import { adaptAccessTokens, adaptClientCredentials, adaptRefreshTokens } from './tokens.ts'

const MODELS: Record<string, (parts: AdapterParts) => ModelAdapter> = {
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

/** Models whose objects oidc-provider changes. It gets a copy of theirs: the store's documents are shared by all readers, and frozen. */
const CHANGED: ReadonlySet<string> = new Set(['Session', 'Interaction'])

/**
 * Maps oidc-provider's storage to our store. Records hold hashes instead of tokens, codes and cookies, and the epochs of the
 * sign-in they came from. A revoked or expired record is not found.
 */
export function createAdapterFactory (parts: AdapterParts): (model: string) => Adapter {
  return function createAdapter (model) {
    const adapt = MODELS[model]
    const adapter: ModelAdapter = adapt === undefined ? {} : adapt(parts)
    const isChanged = CHANGED.has(model)
    const toOwn = (payload: Payload | undefined): AdapterPayload | undefined => isChanged ? structuredClone(payload) : payload
    // Drops undefined members, as JSON does.
    const toPlain = (payload: object): Payload => isChanged ? JSON.parse(JSON.stringify(payload)) as Payload : defined(payload) as Payload
    const refuse = (method: string) => new TypeError(`${model} has no use for ${method}`)
    return {
      async upsert (id, payload, expiresIn) {
        if (adapter.upsert === undefined || expiresIn === undefined) throw refuse('upsert')
        await adapter.upsert(id, toPlain(payload), expiresIn)
      },
      async find (id) {
        return toOwn(await adapter.find?.(id))
      },
      async findByUid (uid) {
        return toOwn(await adapter.findByUid?.(uid))
      },
      async findByUserCode (code) {
        return toOwn(await adapter.findByUserCode?.(code))
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
