import type { GrantRecord, TokenRecord } from '../records.ts'
import type { Tokens } from '../tokens/tokens.ts'
import { type AdapterParts, type ModelAdapter, toPayload } from './model-adapter.ts'
import { describeMinted } from './scopes.ts'

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
export function adaptGrants ({ tokens, times }: AdapterParts): ModelAdapter {
  return {
    async find (id) {
      const found = id.startsWith(MINTED)
        ? await tokens.find<TokenRecord>('access_tokens', id.slice(MINTED.length))
        : await tokens.find<GrantRecord>('grants', id)
      if (found === null || found.client === null) return undefined
      const { record, client } = found
      const minted = { kind: 'Grant', accountId: record.user_id, clientId: record.client_id, openid: { scope: describeMinted(record, client) } }
      const payload = id.startsWith(MINTED) ? minted : record.payload ?? minted
      return toPayload({ ...record, payload }, id, times)
    },
    destroy: (id) => endGrant(tokens, id)
  }
}
