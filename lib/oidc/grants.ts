import { defined } from '../defined.ts'
import type { GrantRecord, TokenRecord } from '../records/token.ts'
import { toTimestamp } from '../clock.ts'
import type { Tokens } from '../tokens/tokens.ts'
import { type Valid, checkValidity } from '../tokens/validity.ts'
import { findSession } from './context.ts'
import { type AdapterParts, type ModelAdapter, type Payload, toPayload } from './model-adapter.ts'
import { toScopeParameter, narrowGranted } from './scopes.ts'

/** The grant id of a token that was minted without a session: this prefix and the token's id. */
const MINTED = 'minted:'

/** oidc-provider needs a grant for every token. For a token minted without a session it is derived from the token's record. */
export function nameMintedGrant (token_id: string): string {
  return MINTED + token_id
}

/** Ends a token session. A derived grant is not stored, so there is nothing to end. */
export async function endGrant (tokens: Tokens, id: string): Promise<void> {
  if (!id.startsWith(MINTED)) await tokens.endGrant(id)
}

/** Grants: each authorization has its own, which is the token session. codes.ts writes it. */
export function adaptGrants ({ readRegistry, tokens, times, getContext }: AdapterParts): ModelAdapter {
  async function findGrant (id: string): Promise<Valid<GrantRecord> | null> {
    const held = findSession(getContext())
    if (held?.grant?.id !== id) return await tokens.find<GrantRecord>('grants', id)
    const linked = { user_id: held.user, client_id: held.client, registry_id: await readRegistry() }
    return checkValidity({ document: held.grant, linked }, toTimestamp(times.now()))
  }

  return {
    async find (id) {
      const found = id.startsWith(MINTED) ? await tokens.find<TokenRecord>('access_tokens', id.slice(MINTED.length)) : await findGrant(id)
      if (found === null || found.client === null) return undefined
      const { record, client } = found
      const registry = await readRegistry()
      if (id.startsWith(MINTED) || record.payload === undefined) {
        const payload = { kind: 'Grant', accountId: record.user_id, clientId: record.client_id, openid: { scope: toScopeParameter(record, client, registry) } }
        return toPayload({ ...record, payload }, id, times)
      }
      const { openid, ...rest } = record.payload as Payload & { openid?: { scope?: string } }
      // A scope that the client has lost since is no longer granted.
      const payload = defined({ ...rest, openid: openid === undefined ? undefined : { ...openid, scope: narrowGranted(openid.scope, client, registry) } })
      return toPayload({ ...record, payload }, id, times)
    },
    destroy: (id) => endGrant(tokens, id)
  }
}
