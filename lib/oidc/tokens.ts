import { toTimestamp } from '../clock.ts'
import type { GrantRecord, TokenRecord, UserRecord } from '../records.ts'
import { hashToken, isUserLive } from '../tokens/tokens.ts'
import type { OurClient } from './clients.ts'
import { endGrant, nameMintedGrant } from './grants.ts'
import { type AdapterParts, type ModelAdapter, type Payload, strip } from './parts.ts'
import { describeMinted, splitScopes } from './scopes.ts'
import { findStanding, type Found } from './standing.ts'

type Subject = Pick<TokenRecord, 'user_id' | 'client_id' | 'user_epoch' | 'client_epoch'>

/** A token's record: what `tokens.authenticate` reads, and the payload for oidc-provider. */
function toRecord (id: string, payload: Payload, subject: Subject, times: Pick<TokenRecord, 'created_at' | 'expired_at'>): TokenRecord {
  return {
    id: hashToken(id),
    ...subject,
    ...times,
    // Always: a user who agreed to some scopes did not agree to those the client gets later.
    scopes: splitScopes(payload.scope),
    ...(typeof payload.grantId === 'string' && { grant_id: payload.grantId }),
    ...(typeof payload.jkt === 'string' && { jkt: payload.jkt }),
    payload: strip(payload)
  }
}

/** What oidc-provider finds of a token, whether it issued it or it was minted. */
function toPayload ({ record, client }: Found<TokenRecord>, kind: string, jti: string, { times }: AdapterParts): Payload {
  return {
    ...(record.payload ?? {
      accountId: record.user_id,
      clientId: record.client_id,
      grantId: record.grant_id ?? nameMintedGrant(record.id),
      scope: client === null ? '' : describeMinted(record, client)
    }),
    kind,
    jti,
    iat: times.toEpoch(record.created_at),
    exp: times.toEpoch(record.expired_at)
  }
}

/** Access tokens: those of users, in oidc-provider's words `AccessToken`, and those of clients alone, `ClientCredentials`. */
function adaptAccess (parts: AdapterParts, kind: 'AccessToken' | 'ClientCredentials', findSubject: (payload: Payload) => Promise<Subject>): ModelAdapter {
  const { store, times, errors } = parts
  const tokens = store.collection<TokenRecord>('access_tokens')
  const grants = store.collection<GrantRecord>('grants')
  return {
    async upsert (id, payload, expiresIn) {
      const subject = await findSubject(payload)
      const record = { ...toRecord(id, payload, subject, times.lifetime(expiresIn)), kind }
      await tokens.insert(record)
      // The other half of endGrant's promise.
      if (record.grant_id !== undefined && await grants.get(record.grant_id) === null) {
        await tokens.delete(record.id)
        throw new errors.InvalidGrant('the session has ended')
      }
    },
    async find (id) {
      const found = await findStanding(tokens, hashToken(id), times.now())
      if (found === null || (found.record.kind ?? 'AccessToken') !== kind) return undefined
      return toPayload(found, kind, id, parts)
    },
    async destroy (id) {
      await tokens.delete(hashToken(id))
    },
    revokeByGrantId: (grantId) => endGrant(store, grantId)
  }
}

/** Access tokens of users. They stand on what their session stands on: the epochs of the sign-in. */
export function adaptAccessTokens (parts: AdapterParts): ModelAdapter {
  const grants = parts.store.collection<GrantRecord>('grants')
  return adaptAccess(parts, 'AccessToken', async ({ grantId }) => {
    const grant = await grants.get(grantId as string)
    if (grant === null) throw new parts.errors.InvalidGrant('the session has ended')
    const { user_id, client_id, user_epoch, client_epoch } = grant
    return { user_id, client_id, user_epoch, client_epoch }
  })
}

/** Access tokens of clients that act by themselves: for the user who owns them, whose epoch is read now. */
export function adaptClientCredentials (parts: AdapterParts): ModelAdapter {
  const { store, times, errors, getContext } = parts
  const users = store.collection<UserRecord>('users')
  return adaptAccess(parts, 'ClientCredentials', async ({ clientId }) => {
    const client = getContext()?.oidc.client as unknown as OurClient
    const owner = await users.get(client.owner)
    if (owner === null || !isUserLive(owner, toTimestamp(times.now()))) {
      throw new errors.UnauthorizedClient("the client's owner is gone, disabled or expired")
    }
    return { user_id: owner.id, client_id: clientId as string, user_epoch: owner.epoch, client_epoch: client.epoch }
  })
}

/**
 * Refresh tokens. Each use makes a new one; a second use of an old one ends the session (RFC 9700, 4.14.2), but for a
 * short grace, in which a client whose answer got lost, or which asked from two tabs at once, is answered again.
 */
export function adaptRefreshTokens (parts: AdapterParts): ModelAdapter {
  const { store, times, errors, refreshGrace } = parts
  const tokens = store.collection<TokenRecord>('refresh_tokens')
  const grants = store.collection<GrantRecord>('grants')

  function isUsedUp ({ consumed_at }: TokenRecord): boolean {
    return consumed_at !== undefined && consumed_at <= toTimestamp(times.now() - refreshGrace * 1000)
  }

  return {
    async upsert (id, payload, expiresIn) {
      const grant = await grants.get(payload.grantId as string)
      if (grant === null) throw new errors.InvalidGrant('the session has ended')
      const { user_id, client_id, user_epoch, client_epoch } = grant
      const life = times.lifetime(expiresIn)
      const record = { ...toRecord(id, payload, { user_id, client_id, user_epoch, client_epoch }, life), consumed: false }
      await tokens.insert(record)
      const set = { refresh_id: record.id, last_used_at: life.created_at, expired_at: life.expired_at }
      if (await grants.update(grant.id, { set }) !== null) return
      await tokens.delete(record.id)
      throw new errors.InvalidGrant('the session has ended')
    },
    async find (id) {
      const found = await findStanding(tokens, hashToken(id), times.now())
      if (found === null) return undefined
      return { ...toPayload(found, 'RefreshToken', id, parts), ...(isUsedUp(found.record) && { consumed: true }) }
    },
    async consume (token) {
      const id = hashToken(token)
      const set = { consumed: true, consumed_at: toTimestamp(times.now()) }
      if (await tokens.update(id, { set }, { equal: { consumed: false } }) !== null) return
      const record = await tokens.get(id)
      if (record !== null && !isUsedUp(record)) return
      if (record?.grant_id !== undefined) await endGrant(store, record.grant_id)
      throw new errors.InvalidGrant('the refresh token was used already')
    },
    async destroy (id) {
      await tokens.delete(hashToken(id))
    },
    revokeByGrantId: (grantId) => endGrant(store, grantId)
  }
}
