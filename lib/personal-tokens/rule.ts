import type { PersonalTokens } from '../../schemas/options.ts'
import { toTimestamp } from '../clock.ts'
import type { ClientRecord } from '../records/client.ts'
import type { TokenRecord } from '../records/token.ts'
import { normalizeUri } from '../resources/uris.ts'
import type { PersonalRule } from '../tokens/validity.ts'

/** The id of the client that personal access tokens belong to. It is built in: no store has it, so no list and no change meets it. */
export const PERSONAL_CLIENT_ID = 'personal'

const DAY = 24 * 60 * 60_000

/** The built-in client, as one token uses it: with the scopes that this token has. */
function toClient ({ scopes = [], resource_id, created_at }: TokenRecord): ClientRecord {
  return {
    id: PERSONAL_CLIENT_ID,
    name: 'Personal access token',
    createdAt: created_at,
    modifiedAt: created_at,
    redirectUris: [],
    scopes,
    ...(resource_id !== undefined && { declared: Object.fromEntries(scopes.map((scope) => [scope, resource_id])) }),
    epoch: 0
  }
}

/**
 * Lets personal access tokens count as far as the settings allow them now: none is older than `maxDays`, and none has another scope or
 * another resource than those that the settings name.
 */
export function createPersonalRule ({ maxDays, scopes: allowed, resources }: Pick<PersonalTokens, 'maxDays' | 'scopes' | 'resources'>): PersonalRule {
  const uris = resources?.map(normalizeUri)
  return (found) => {
    const document = found.document as typeof found.document & TokenRecord
    const { scopes = [], resource, created_at, expired_at } = document
    if (allowed !== undefined && !scopes.every((scope) => allowed.includes(scope))) return null
    if (resource !== undefined && uris !== undefined && !uris.includes(normalizeUri(resource))) return null
    const last = toTimestamp(Date.parse(created_at) + maxDays * DAY)
    return {
      ...found,
      document: last < expired_at ? { ...document, expired_at: last } : document,
      linked: { ...found.linked, client_id: toClient(document) }
    }
  }
}
