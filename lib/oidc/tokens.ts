import { canRedeem, rotatesRefresh } from '../clients/kinds.ts'
import { defined } from '../defined.ts'
import type { GrantRecord, TokenRecord } from '../records/token.ts'
import { isActive } from '../records/user.ts'
import { toTimestamp } from '../clock.ts'
import { API_RESOURCE_ID } from '../api-scopes.ts'
import { findByUri } from '../resources/registry.ts'
import type { Store } from '../store/port.ts'
import type { NewToken, Tokens } from '../tokens/tokens.ts'
import { hashToken } from '../crypto/random-token.ts'
import { PERSONAL, type Valid, isOfClient } from '../tokens/validity.ts'
import { findAuthId, findCaller, findHeldGrant, findSession, rememberSession, rememberText, requireClient } from './context.ts'
import { endGrant, nameMintedGrant } from './grants.ts'
import type { Times } from './contract.ts'
import type { SigningAlg } from './keys.ts'
import { type AdapterParts, type ModelAdapter, type Payload, toPayload, toStored } from './model-adapter.ts'
import { toScopeParameter, splitScopes } from './scopes.ts'
import { toRecordId } from './token-ids.ts'

/** The audience of a token. Throws when the resource was deleted meanwhile, and when none of its scopes was granted. */
async function findAudience (
  { readRegistry, apiUri, errors }: AdapterParts, { aud: audience, scope }: Payload
): Promise<Pick<TokenRecord, 'resource' | 'resource_id'> & { alg?: SigningAlg }> {
  if (typeof audience !== 'string') return {}
  if (splitScopes(scope).length === 0) throw new errors.InvalidTarget('no scope of the resource was granted')
  if (audience === apiUri) return { resource: audience, resource_id: API_RESOURCE_ID }
  const found = findByUri(await readRegistry(), audience)
  if (found === undefined) throw new errors.InvalidTarget('no such resource')
  const { token_format, token_alg = 'RS256' } = found[1]
  return { resource: audience, resource_id: found[0], ...(token_format === 'jwt' && { alg: token_alg }) }
}

/**
 * The strength of a sign-in in an earlier release, at a refresh: with a password, at the time that the refresh token knows. The grant of any
 * other sign-in has it, and that comes first.
 */
function findFormerStrength ({ getContext, times }: AdapterParts): Pick<TokenRecord, 'auth'> {
  const { authTime } = getContext()?.oidc.entities.RefreshToken ?? {}
  return authTime === undefined ? {} : { auth: { amr: ['pwd'], acr: '1', time: times.fromEpoch(authTime) } }
}

/** Translates oidc-provider's payload into a token to issue. */
async function toNewToken (parts: AdapterParts, id: string, payload: Payload, ttl: number, kind?: string): Promise<NewToken> {
  const { alg, ...audience } = await findAudience(parts, payload)
  const ctx = parts.getContext()
  return {
    token: alg === undefined || kind === undefined || ctx === undefined
      ? id
      : async (record) => {
        const text = await parts.signToken(record, alg)
        rememberText(ctx, id, text)
        return text
      },
    ttl,
    fields: defined({
      // Always stored: the user's consent does not extend to scopes that the client gets later.
      scopes: splitScopes(payload.scope),
      ...audience,
      ...findFormerStrength(parts),
      jkt: typeof payload.jkt === 'string' ? payload.jkt : undefined,
      kind,
      payload: toStored(payload)
    })
  }
}

/** The payload of a token that oidc-provider issued, or that was minted. */
function describeToken ({ record, client, registry }: Valid<TokenRecord>, kind: string, jti: string, times: Times): Payload {
  const payload = record.payload ?? {
    accountId: record.user_id,
    clientId: record.client_id,
    grantId: record.grant_id ?? nameMintedGrant(record.id)
  }
  // A refresh token has the scopes of all its resources.
  const isMinted = record.payload === undefined
  const scope = client === null ? '' : kind === 'RefreshToken' && !isMinted ? record.payload!.scope! : toScopeParameter(record, client, registry)
  return { ...toPayload({ ...record, payload: { ...payload, scope }, consumed: false }, jti, times), kind }
}

/**
 * Revokes a token (RFC 7009) by the one write that ends its session. oidc-provider would delete the token first. After an
 * interruption there, the session would go on, and the client could no longer name it.
 */
async function revoke (store: Store, tokens: Tokens, name: 'access_tokens' | 'refresh_tokens', token: string): Promise<void> {
  const record = await store.collection<TokenRecord>(name).get(toRecordId(token))
  if (record !== null) await tokens.revoke(record)
}

/** Access tokens: `AccessToken` after a user's sign-in, or `ClientCredentials` of a client that acts for itself. Service tokens are found among these. */
function adaptAccess (
  parts: AdapterParts, kind: 'AccessToken' | 'ClientCredentials', issue: (token: NewToken, payload: Payload) => Promise<void>
): ModelAdapter {
  const { store, tokens, times, getContext } = parts
  return {
    async upsert (id, payload, expiresIn) {
      const { fields, ...token } = await toNewToken(parts, id, payload, expiresIn, kind)
      const auth_id = findAuthId(getContext())
      await issue({ ...token, fields: defined({ ...fields, auth_id }) }, payload)
    },
    async find (id) {
      const found = await tokens.find<TokenRecord>('access_tokens', toRecordId(id))
      if (found === null || found.record.kind === PERSONAL || (isOfClient(found.record) ? 'ClientCredentials' : 'AccessToken') !== kind) return undefined
      return describeToken(found, kind, id, times)
    },
    destroy: (id) => revoke(store, tokens, 'access_tokens', id),
    revokeByGrantId: (grantId) => endGrant(tokens, grantId)
  }
}

/** Access tokens of users, issued under the grant of their token session. */
export function adaptAccessTokens (parts: AdapterParts): ModelAdapter {
  const { tokens, errors, getContext } = parts
  return adaptAccess(parts, 'AccessToken', async (token, { grantId }) => {
    const params = getContext()?.oidc.params
    const isRefresh = params?.grant_type === 'refresh_token'
    const [narrowed, isUse] = [isRefresh && params.scope !== undefined, isRefresh && !rotatesRefresh(requireClient(getContext()))]
    const known = findHeldGrant(getContext(), grantId as string)
    if (!await tokens.issueUnder('access_tokens', token, grantId as string, { narrowed, isUse, known })) throw new errors.InvalidGrant('the session has ended')
  })
}

/** Access tokens of clients that act for themselves. They end when the tokens of their owner end. */
export function adaptClientCredentials (parts: AdapterParts): ModelAdapter {
  const { tokens, times, errors, limits, getContext } = parts
  return adaptAccess(parts, 'ClientCredentials', async (token) => {
    const ctx = getContext()
    const { clientId, owner: ownerId, epoch, vouched } = requireClient(ctx)
    // Such a token is its owner's too: it ends with theirs.
    if (ownerId === undefined) throw new errors.UnauthorizedClient('nobody owns the client, so it cannot act for itself')
    const owner = ctx && findCaller(ctx)?.owner
    if (owner?.id !== ownerId || !isActive(owner, toTimestamp(times.now()))) {
      throw new errors.UnauthorizedClient("the client's owner is deleted, disabled or expired")
    }
    if (!vouched) await limits.countClient(owner.id)
    await tokens.issue(token, { user_id: owner.id, client_id: clientId, user_epoch: owner.epoch, client_epoch: epoch })
  })
}

/** Refresh tokens. Each use issues a new one; `tokens.rotate` decides when a second use ends the session. */
export function adaptRefreshTokens (parts: AdapterParts): ModelAdapter {
  const { store, tokens, times, errors, limits, refreshGrace, refreshMax, standing, getContext } = parts
  const grants = store.collection<GrantRecord>('grants')

  /** Seconds until the token session can no longer be refreshed. */
  async function readTimeLeft (grant_id: string): Promise<number> {
    const grant = findHeldGrant(getContext(), grant_id) ?? await grants.get(grant_id)
    return grant === null ? 0 : Math.floor((Date.parse(grant.created_at) - times.now()) / 1000) + refreshMax
  }

  return {
    async upsert (id, payload, expiresIn) {
      const left = await readTimeLeft(payload.grantId as string)
      // Without rotation the first one is the last one.
      const ttl = rotatesRefresh(requireClient(getContext())) ? Math.min(expiresIn, left) : left
      const token = await toNewToken(parts, id, payload, ttl)
      const known = findHeldGrant(getContext(), payload.grantId as string)
      const isIssued = ttl > 0 && await tokens.issueUnder('refresh_tokens', token, payload.grantId as string, { known })
      if (!isIssued) throw new errors.InvalidGrant('the session has ended')
    },
    async find (id) {
      const found = await tokens.find<TokenRecord>('refresh_tokens', hashToken(id))
      if (found === null || found.client === null || !canRedeem(found.client, found.record)) return undefined
      // Its client may revoke it all the same.
      if (getContext()?.oidc.route === 'token' && await standing?.isPastRefresh(found.user, found.grant) === true) {
        throw new errors.InvalidGrant('the user has to sign in with their provider again')
      }
      rememberSession(getContext(), found)
      return { ...describeToken(found, 'RefreshToken', id, times), ...(tokens.isSpent(found, refreshGrace) && { consumed: true }) }
    },
    async consume (id) {
      // Before the token is spent, so that the client can use it later.
      await limits.countGrant(getContext()?.oidc.entities.Grant?.jti ?? '')
      const found = findSession(getContext())
      const grant = found?.record.id === hashToken(id) ? await tokens.rotate(found, refreshGrace) : null
      if (found === undefined || grant === null) throw new errors.InvalidGrant('the refresh token was used before')
      rememberSession(getContext(), { ...found, grant })
    },
    destroy: (id) => revoke(store, tokens, 'refresh_tokens', id),
    revokeByGrantId: (grantId) => endGrant(tokens, grantId)
  }
}
