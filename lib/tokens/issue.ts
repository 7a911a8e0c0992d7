import { type Clock, toLifetime, toTimestamp } from '../clock.ts'
import { createToken, hashToken } from '../crypto/random-token.ts'
import { defined } from '../defined.ts'
import { paramError } from '../errors.ts'
import { ACRS, type Acr } from '../proofs.ts'
import type { ClientRecord } from '../records/client.ts'
import type { GrantRecord, Revocable, TokenRecord } from '../records/token.ts'
import { type UserRecord, isActive } from '../records/user.ts'
import { REGISTRY_ID, findByUri, narrowScopes, readRegistry } from '../resources/registry.ts'
import type { Store } from '../store/port.ts'
import { inventStrength } from './strength.ts'
import type { RevocableName, Valid } from './validity.ts'

/** The default lifetime of an access token in seconds. */
export const ACCESS_TTL = 60 * 60

export interface MintOptions {
  user_id: string
  client_id: string
  /**
   * Narrows the token to these scopes of the client or of the API. Absent: the token has all the user's power, and at each use the
   * client's current scopes.
   */
  scopes?: string[]
  /** The URI of the resource that the token is for (RFC 8707). Absent: the service's own API, and guards without an audience. */
  resource?: string
  /** Seconds until the access token expires. */
  ttl?: number
  /** Also mints a linked refresh token, which the authorization server redeems. */
  refresh?: boolean
  /** As if the user had just signed in with this strength. Absent: the token comes from no sign-in. */
  acr?: Acr
}

export interface MintedTokens {
  access_token: string
  /** Seconds. */
  expires_in: number
  refresh_token?: string
}

/** Milliseconds after which a refresh that rotates nothing is written as the last use of its session. */
const USE_INTERVAL = 60 * 60_000

/** The user and the client of a new token, with their epochs as read when the token was requested. */
export type Subject = Pick<GrantRecord, 'user_id' | 'client_id' | 'user_epoch' | 'client_epoch'>

/** The record of a token that has no text yet. */
export type UnnamedToken = Omit<TokenRecord, 'id'>

/** A token to be issued; `fields` go into its record. */
export interface NewToken {
  /** Its text, or what makes it of its record. */
  token: string | ((record: UnnamedToken) => Promise<string>)
  /** Seconds. */
  ttl: number
  fields?: Pick<TokenRecord, 'scopes' | 'auth' | 'auth_id' | 'jkt' | 'kind' | 'payload' | 'operator' | 'resource' | 'resource_id'>
}

/** A service or personal access token to be issued. Its scopes were checked. */
export interface NewNamedToken extends Required<Pick<TokenRecord, 'kind' | 'holder' | 'user_id' | 'client_id' | 'client_epoch' | 'scopes' | 'name'>> {
  token: string
  /** Of a personal access token. A service token stands on the owner of its client, and not on their epoch. */
  user_epoch?: number
  /** ISO 8601. */
  expired_at: string
  resource?: string
  resource_id?: string
}

type TokenName = 'access_tokens' | 'refresh_tokens'

/** The fields of a token under a grant. Under an operator's grant, a refresh keeps or narrows the scopes and never widens them. */
function inherit (
  { operator, scopes, resource, resource_id, auth: ownAuth }: GrantRecord, fields: NewToken['fields'] = {}, narrowed: boolean
): NonNullable<NewToken['fields']> {
  const auth = ownAuth ?? fields.auth
  const shared = { ...fields, ...(auth !== undefined && { auth }) }
  if (operator === undefined) return shared
  const { scopes: named, ...rest } = shared
  return {
    ...rest,
    operator: narrowed ? 'narrowed' : operator,
    ...(narrowed && named !== undefined ? { scopes: named } : scopes !== undefined && { scopes }),
    ...(resource !== undefined && { resource, resource_id: resource_id! })
  }
}

/** Mints and issues tokens. The records of all tokens are written here. */
export function createIssue ({ store, now, refreshTtl, find }: {
  store: Store
  now: Clock
  /** Lifetime of minted refresh tokens in seconds. Absent: none are minted, because no authorization server redeems them. */
  refreshTtl: number | undefined
  /** Finds a valid record. */
  find: <T extends Revocable>(name: RevocableName, id: string) => Promise<Valid<T> | null>
}) {
  const users = store.collection<UserRecord>('users')
  const clients = store.collection<ClientRecord>('clients')
  const grants = store.collection<GrantRecord>('grants')

  async function insert (
    name: TokenName, { token, ttl, fields }: NewToken, start: number, subject: Subject, grant_id?: string, generation = 0
  ): Promise<void> {
    const record: UnnamedToken = {
      ...subject,
      ...toLifetime(start, ttl),
      registry_id: REGISTRY_ID,
      ...(grant_id !== undefined && { grant_id }),
      ...(name === 'refresh_tokens' && { generation }),
      ...fields
    }
    const text = typeof token === 'string' ? token : await token(record)
    await store.collection<TokenRecord>(name).insert({ id: hashToken(text), ...record })
  }

  /**
   * Writes the last use of a grant, and a later expiry.
   * @returns false when the grant has ended since it was read
   */
  async function extend ({ id, expired_at: present }: GrantRecord, expired_at: string, used: { last_used_at: string } | undefined): Promise<boolean> {
    if (present >= expired_at) return used === undefined || await grants.update(id, { set: used }) !== null
    // Conditional, since a token with a later expiry may be issued at the same time.
    const written = await grants.update(id, { set: { ...used, expired_at } }, { before: { expired_at } })
    return (written ?? await grants.get(id)) !== null
  }

  return {
    /**
     * Mints an access token for a user and a client, and a linked refresh token if `refresh` is set.
     * @throws ErrParam when the user or client does not exist, the user is disabled or expired, the client is disabled, the
     *   resource is unknown, a scope is neither the client's nor the API's or not of the resource, or a refresh token is
     *   requested and there is no authorization server to redeem it
     */
    async mint ({ user_id, client_id, scopes, resource, ttl = ACCESS_TTL, refresh = false, acr }: MintOptions): Promise<MintedTokens> {
      if (refresh && refreshTtl === undefined) throw paramError('refresh', 'there is no authorization server to redeem a refresh token')
      if (acr !== undefined && !ACRS.includes(acr)) throw paramError('acr', `must be one of ${ACRS.join(', ')}`)
      const [user, client, registry] = await Promise.all([users.get(user_id), clients.get(client_id), readRegistry(store)])
      if (user === null) throw paramError('user_id', 'no such user')
      if (client === null) throw paramError('client_id', 'no such client')
      if (!isActive(user, toTimestamp(now()))) throw paramError('user_id', 'the user is disabled or expired')
      if (client.disabled_at !== undefined) throw paramError('client_id', 'the client is disabled')
      const declared = resource === undefined ? undefined : findByUri(registry, resource)
      if (resource !== undefined && declared === undefined) throw paramError('resource', 'no such resource')
      const fields = {
        operator: scopes === undefined ? 'unrestricted' as const : 'narrowed' as const,
        ...(scopes !== undefined && { scopes }),
        ...(declared !== undefined && { resource: declared[1].uri, resource_id: declared[0] }),
        ...(acr !== undefined && { auth: inventStrength(acr, toTimestamp(now())) })
      }
      const usable = narrowScopes(fields, client, registry)
      if (scopes?.some((scope) => !usable.includes(scope)) === true) {
        const owner = resource === undefined ? 'or of the API' : 'that belong to the resource'
        throw paramError('scopes', `must be scopes of the client ${owner}`)
      }
      const subject = { user_id, client_id, user_epoch: user.epoch, client_epoch: client.epoch }
      const access = { token: createToken(), ttl, fields }
      const minted = { access_token: access.token, expires_in: ttl }
      // All lifetimes start at the same time, so that the grant does not expire before its tokens.
      const start = now()
      if (!refresh) {
        await insert('access_tokens', access, start, subject)
        return minted
      }
      const refreshed = { token: createToken(), ttl: refreshTtl!, fields }
      const id = createToken()
      const life = toLifetime(start, Math.max(refreshTtl!, ttl))
      const unused = { last_used_at: life.created_at, generation: 0, refreshed_at: [] }
      await grants.insert({ id, ...subject, ...life, registry_id: REGISTRY_ID, ...fields, ...unused })
      await Promise.all([insert('refresh_tokens', refreshed, start, subject, id), insert('access_tokens', access, start, subject, id)])
      return { ...minted, refresh_token: refreshed.token }
    },

    /** Issues a token with a name, which somebody has made for a program. */
    async issueNamed ({ token, ...fields }: NewNamedToken): Promise<TokenRecord> {
      const record = { id: hashToken(token), last4: token.slice(-4), created_at: toTimestamp(now()), registry_id: REGISTRY_ID, ...defined(fields) }
      await store.collection<TokenRecord>('access_tokens').insert(record)
      return record
    },

    /** Issues an access token without a grant. The caller has checked the subject, or is about to create it. */
    async issue (token: NewToken, subject: Subject): Promise<void> {
      await insert('access_tokens', token, now(), subject)
    },

    /**
     * Issues a token under a grant, with the grant's subject. The grant is extended first if the token would outlive it.
     * Under a grant that the operator minted, the token has exactly the grant's power, unless it is narrowed.
     * @param narrowed whether the client has requested `fields.scopes` as a subset of the grant's scopes
     * @param known the grant, where it was just read
     * @param isUse whether an access token is a use of the session, since its refresh rotates nothing: then this is written at most once an hour
     * @returns false when the grant has ended
     */
    async issueUnder (
      name: TokenName,
      token: NewToken,
      grant_id: string,
      { narrowed = false, isUse = false, known }: { narrowed?: boolean, isUse?: boolean, known?: GrantRecord | undefined } = {}
    ): Promise<boolean> {
      const grant = known ?? (await find<GrantRecord>('grants', grant_id))?.record
      if (grant === undefined) return false
      const start = now()
      const { created_at, expired_at } = toLifetime(start, token.ttl)
      const isWritten = name === 'refresh_tokens' || (isUse && grant.last_used_at <= toTimestamp(start - USE_INTERVAL))
      const used = isWritten ? { last_used_at: created_at } : undefined
      if (!await extend(grant, expired_at, used)) return false
      const { user_id, client_id, user_epoch, client_epoch, generation } = grant
      const subject = { user_id, client_id, user_epoch, client_epoch }
      await insert(name, { ...token, fields: inherit(grant, token.fields, narrowed) }, start, subject, grant_id, generation)
      return true
    }
  }
}
