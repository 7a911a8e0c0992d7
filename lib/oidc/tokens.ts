import type { GrantRecord, TokenRecord, UserRecord } from '../records.ts'
import { toTimestamp } from '../clock.ts'
import type { Store } from '../store/port.ts'
import { type NewToken, type Tokens, hashToken } from '../tokens/tokens.ts'
import { type Valid, isActive } from '../tokens/validity.ts'
import type { OurClient } from './clients.ts'
import { endGrant, nameMintedGrant } from './grants.ts'
import { type AdapterParts, type ModelAdapter, type Payload, type Times, toPayload, toStored } from './model-adapter.ts'
import { describeMinted, splitScopes } from './scopes.ts'

/** Translates oidc-provider's payload into a token to issue. */
function toNewToken (token: string, payload: Payload, ttl: number, kind?: string): NewToken {
  return {
    token,
    ttl,
    fields: {
      // Always stored: the user's consent does not extend to scopes that the client gets later.
      scopes: splitScopes(payload.scope),
      ...(typeof payload.jkt === 'string' && { jkt: payload.jkt }),
      ...(kind !== undefined && { kind }),
      payload: toStored(payload)
    }
  }
}

/** The payload of a token that oidc-provider issued, or that was minted. */
function describeToken ({ record, client }: Valid<TokenRecord>, kind: string, jti: string, times: Times): Payload {
  const payload = record.payload ?? {
    accountId: record.user_id,
    clientId: record.client_id,
    grantId: record.grant_id ?? nameMintedGrant(record.id),
    scope: client === null ? '' : describeMinted(record, client)
  }
  return { ...toPayload({ ...record, payload, consumed: false }, jti, times), kind }
}

/**
 * Revokes a token (RFC 7009) by the one write that ends its session. oidc-provider would delete the token first: interrupted
 * there, the session would go on, and the client could not name it any more.
 */
async function revoke (store: Store, tokens: Tokens, name: 'access_tokens' | 'refresh_tokens', token: string): Promise<void> {
  const record = await store.collection<TokenRecord>(name).get(hashToken(token))
  if (record !== null) await tokens.revoke(record)
}

/** Access tokens: `AccessToken` after a user's sign-in, or `ClientCredentials` for the client's owner. */
function adaptAccess (
  { store, tokens, times }: AdapterParts, kind: 'AccessToken' | 'ClientCredentials', issue: (token: NewToken, payload: Payload) => Promise<void>
): ModelAdapter {
  return {
    upsert: (id, payload, expiresIn) => issue(toNewToken(id, payload, expiresIn, kind), payload),
    async find (id) {
      const found = await tokens.find<TokenRecord>('access_tokens', hashToken(id))
      if (found === null || (found.record.kind ?? 'AccessToken') !== kind) return undefined
      return describeToken(found, kind, id, times)
    },
    destroy: (id) => revoke(store, tokens, 'access_tokens', id),
    revokeByGrantId: (grantId) => endGrant(tokens, grantId)
  }
}

/** Access tokens of users, issued under the grant of their token session. */
export function adaptAccessTokens (parts: AdapterParts): ModelAdapter {
  const { tokens, errors } = parts
  return adaptAccess(parts, 'AccessToken', async (token, { grantId }) => {
    if (!await tokens.issueUnder('access_tokens', token, grantId as string)) throw new errors.InvalidGrant('the session has ended')
  })
}

/** Access tokens of the client credentials grant, issued for the user who owns the client. */
export function adaptClientCredentials (parts: AdapterParts): ModelAdapter {
  const { store, tokens, times, errors, getContext } = parts
  const users = store.collection<UserRecord>('users')
  return adaptAccess(parts, 'ClientCredentials', async (token) => {
    const { clientId, owner: ownerId, epoch } = getContext()?.oidc.client as unknown as OurClient
    const owner = await users.get(ownerId)
    if (owner === null || !isActive(owner, toTimestamp(times.now()))) {
      throw new errors.UnauthorizedClient("the client's owner is deleted, disabled or expired")
    }
    await tokens.issue(token, { user_id: owner.id, client_id: clientId, user_epoch: owner.epoch, client_epoch: epoch })
  })
}

/** Refresh tokens. Each use issues a new one; `tokens.rotate` decides when a second use ends the session. */
export function adaptRefreshTokens ({ store, tokens, times, errors, refreshGrace, refreshMax }: AdapterParts): ModelAdapter {
  const grants = store.collection<GrantRecord>('grants')

  /** Seconds until the token session can no longer be refreshed. */
  async function readTimeLeft (grant_id: string): Promise<number> {
    const grant = await grants.get(grant_id)
    return grant === null ? 0 : Math.floor((Date.parse(grant.created_at) - times.now()) / 1000) + refreshMax
  }

  return {
    async upsert (id, payload, expiresIn) {
      const ttl = Math.min(expiresIn, await readTimeLeft(payload.grantId as string))
      const token = toNewToken(id, payload, ttl)
      if (ttl <= 0 || !await tokens.issueUnder('refresh_tokens', token, payload.grantId as string)) throw new errors.InvalidGrant('the session has ended')
    },
    async find (id) {
      const found = await tokens.find<TokenRecord>('refresh_tokens', hashToken(id))
      if (found === null) return undefined
      return { ...describeToken(found, 'RefreshToken', id, times), ...(tokens.isSpent(found, refreshGrace) && { consumed: true }) }
    },
    async consume (id) {
      if (!await tokens.rotate(hashToken(id), refreshGrace)) throw new errors.InvalidGrant('the refresh token was used before')
    },
    destroy: (id) => revoke(store, tokens, 'refresh_tokens', id),
    revokeByGrantId: (grantId) => endGrant(tokens, grantId)
  }
}
