import { hash, randomBytes } from 'node:crypto'
import { type Clock, toTimestamp } from '../clock.ts'
import { IdentityError, paramError } from '../errors.ts'
import { deepFreeze } from '../freeze.ts'
import type { ClientRecord, GrantRecord, TokenRecord, UserRecord } from '../records.ts'
import { type RoleNames, holdsRole } from '../roles.ts'
import type { Document, Filter, Linked, MaybePromise, Store } from '../store/port.ts'

/** Seconds an access token lives, when nothing else is asked for. */
export const ACCESS_TTL = 60 * 60
/** Seconds a refresh token lives from its last use. */
export const REFRESH_TTL = 30 * 24 * 60 * 60

/**
 * Who makes a request: the user and the client its access token belongs to. What is optional is not in tokeninfo: always
 * there beside the store, never in an app that asks over HTTP (plugins/remote.ts). Frozen beside the store: requests with the
 * same token share it while nothing of it changes.
 */
export interface Caller {
  readonly user: Readonly<Pick<UserRecord, 'account' | 'name' | 'roles'> & { user_id: string }>
  readonly client: { readonly clientId: string, readonly name?: string, readonly scopes?: readonly string[], readonly userId?: string }
  readonly token: {
    /** SHA-256 of the token, base64url: a name for it, of no use as a token. */
    readonly id: string
    /** The client's scopes, narrowed to those granted. */
    readonly scopes: readonly string[]
    /** The user's epoch at this look-up: a write on his behalf holds only while it stands. */
    readonly user_epoch?: number
    readonly created_at?: string
    readonly expired_at?: string
    readonly grant_id?: string
  }
  readonly isAdmin: boolean
}

export interface MintOptions {
  user_id: string
  client_id: string
  /** Some of the client's scopes; absent: all of them, as they are at each use. */
  scopes?: string[]
  /** Seconds until the access token expires. */
  ttl?: number
  /** Mints a linked refresh token too. */
  refresh?: boolean
}

export interface MintedTokens {
  access_token: string
  /** Seconds. */
  expires_in: number
  refresh_token?: string
}

const LINKS = { user_id: 'users', client_id: 'clients' }
/** What is a user's. What is a client's: the same without the sign-ins, which are no client's. */
export const OWNED_BY_USER = ['sessions', 'authorization_codes', 'device_codes', 'access_tokens', 'refresh_tokens', 'grants'] as const
const OWNED_BY_CLIENT = OWNED_BY_USER.slice(1)

/** A token's id in the store. 256 random bits need no salt and no slow hash. */
export function hashToken (token: string): string {
  return hash('sha256', token, 'base64url')
}

function createToken (): string {
  return randomBytes(32).toString('base64url')
}

/** RFC 6750, 3.1: the same words whatever the reason, so that a probe learns nothing. */
export function invalidToken (): IdentityError {
  const text = 'the access token is unknown, expired or revoked'
  return new IdentityError('ErrUnknown', text, {
    headers: { 'www-authenticate': `Bearer error="invalid_token", error_description="${text}"` }
  })
}

/** Whose a token is, and the epochs it stands under. */
type Subject = Pick<TokenRecord, 'user_id' | 'client_id' | 'user_epoch' | 'client_epoch' | 'scopes'>

interface Live<T extends Document> { record: T, user: UserRecord, client: ClientRecord }

/** The user may act now. */
export function isUserLive (user: UserRecord, now: string): boolean {
  return user.disabled_at === undefined && (user.expired_at === undefined || user.expired_at > now)
}

/** The record with its user and client, when it, they and their epochs all still stand; else null. */
function findLive<T extends TokenRecord> (found: Linked<T> | null, now: string): Live<T> | null {
  if (found === null) return null
  const record = found.document
  const user = found.linked.user_id as UserRecord | null
  const client = found.linked.client_id as ClientRecord | null
  if (record.expired_at <= now || user === null || client === null || !isUserLive(user, now)) return null
  if (record.user_epoch < user.epoch || record.client_epoch < client.epoch) return null
  return { record, user, client }
}

/**
 * Token sessions: who a token belongs to, minting, rotation and the end of them.
 *
 * Revocation is one write: it moves the user's or client's epoch forward, or removes the user, client, grant or token.
 * A token carries the epochs that were read when it was asked for, so one that was being minted at that moment is
 * dead on arrival. Removing dead records comes after and may be interrupted anywhere.
 */
export function createTokens (options: { store: Store, now: Clock, roles: RoleNames, onError: (error: unknown) => void }) {
  const { store, now, roles, onError } = options
  const users = store.collection<UserRecord>('users')
  const clients = store.collection<ClientRecord>('clients')
  const accessTokens = store.collection<TokenRecord>('access_tokens')
  const refreshTokens = store.collection<TokenRecord>('refresh_tokens')
  const grants = store.collection<GrantRecord>('grants')

  /** Callers by the answer they were made from, where an engine gives it again; `until` is in milliseconds. */
  const known = new WeakMap<Linked<TokenRecord>, { caller: Caller, until: number }>()

  function toCaller (found: Linked<TokenRecord> | null): Caller {
    const time = now()
    const before = found === null ? undefined : known.get(found)
    if (before !== undefined && time < before.until) return before.caller
    const live = findLive(found, toTimestamp(time))
    if (live === null) throw invalidToken()
    const { record, user, client } = live
    // RFC 9449, 7.2: such a token is no bearer token, and this API takes no other.
    if (record.jkt !== undefined) throw invalidToken()
    const caller: Caller = deepFreeze({
      user: { user_id: user.id, account: user.account, name: user.name, roles: user.roles },
      client: { clientId: client.id, name: client.name, scopes: client.scopes, userId: client.userId },
      token: {
        id: record.id,
        scopes: client.scopes.filter((scope) => record.scopes?.includes(scope) ?? true),
        user_epoch: user.epoch,
        created_at: record.created_at,
        expired_at: record.expired_at,
        ...(record.grant_id !== undefined && { grant_id: record.grant_id })
      },
      isAdmin: holdsRole(user.roles, roles.admin)
    })
    // Otherwise it is nobody's but ours, and will not come again.
    if (Object.isFrozen(found)) {
      known.set(found!, { caller, until: Math.min(Date.parse(record.expired_at), Date.parse(user.expired_at ?? record.expired_at)) })
    }
    return caller
  }

  /** Times of a new record that lives for `ttl` seconds. */
  function lifetime (ttl: number) {
    const start = now()
    return { created_at: toTimestamp(start), expired_at: toTimestamp(start + ttl * 1000) }
  }

  /** Dead records are removed at leisure: a failure is told to the operator, not to the caller whose change stands. */
  async function removeDead (names: readonly string[], filter: Filter): Promise<void> {
    for (const name of names) await store.collection(name).deleteMany(filter).catch(onError)
  }

  async function mintFor (subject: Subject, { ttl = ACCESS_TTL, refresh = false }: Pick<MintOptions, 'ttl' | 'refresh'>): Promise<MintedTokens> {
    const access_token = createToken()
    const access = { id: hashToken(access_token), ...subject, ...lifetime(ttl) }
    if (!refresh) {
      await accessTokens.insert(access)
      return { access_token, expires_in: ttl }
    }
    const refresh_token = createToken()
    const refresh_id = hashToken(refresh_token)
    const grant_id = createToken()
    const long = lifetime(REFRESH_TTL)
    await Promise.all([
      grants.insert({ id: grant_id, ...subject, ...long, refresh_id, last_used_at: long.created_at }),
      refreshTokens.insert({ id: refresh_id, ...subject, ...long, grant_id, consumed: false }),
      accessTokens.insert({ ...access, grant_id })
    ])
    return { access_token, expires_in: ttl, refresh_token }
  }

  return {
    /**
     * Who this access token belongs to. Answers without a promise where the store can.
     * @throws ErrUnknown when the token, its user or its client is unknown, expired, revoked, disabled or gone
     */
    authenticate (token: string): MaybePromise<Caller> {
      const found = accessTokens.getLinked(hashToken(token), LINKS)
      return found instanceof Promise ? found.then(toCaller) : toCaller(found)
    },

    /**
     * Mints an access token for a user and a client, and a linked refresh token when asked.
     * @throws ErrParam when the user or client does not exist, or the user is disabled or expired, or a scope is not the client's
     */
    async mint ({ user_id, client_id, scopes, ...times }: MintOptions): Promise<MintedTokens> {
      const [user, client] = await Promise.all([users.get(user_id), clients.get(client_id)])
      if (user === null) throw paramError('user_id', 'no such user')
      if (client === null) throw paramError('client_id', 'no such client')
      if (!isUserLive(user, toTimestamp(now()))) throw paramError('user_id', 'the user is disabled or expired')
      const foreign = scopes?.find((scope) => !client.scopes.includes(scope))
      if (foreign !== undefined) throw paramError('scopes', 'must be scopes of the client')
      return await mintFor({
        user_id,
        client_id,
        user_epoch: user.epoch,
        client_epoch: client.epoch,
        ...(scopes !== undefined && { scopes })
      }, times)
    },

    /** Mints for a subject that is known to be good, or is about to be written. */
    mintFor,

    /**
     * Takes a refresh token for a new pair; the old one is good no more.
     * @throws ErrUnknown when it, its session, its user or its client is gone, expired or revoked
     */
    async refresh (token: string, ttl: number = ACCESS_TTL): Promise<Required<MintedTokens>> {
      const id = hashToken(token)
      const live = findLive(await refreshTokens.getLinked(id, LINKS), toTimestamp(now()))
      const grant_id = live?.record.grant_id
      if (live === null || grant_id === undefined || live.record.jkt !== undefined) throw invalidToken()
      const { user_id, client_id, user_epoch, client_epoch, scopes } = live.record
      const shared = { user_id, client_id, user_epoch, client_epoch, grant_id, ...(scopes !== undefined && { scopes }) }
      const access_token = createToken()
      const refresh_token = createToken()
      const refresh_id = hashToken(refresh_token)
      const long = lifetime(REFRESH_TTL)
      const pair = [
        { ...shared, ...lifetime(ttl), id: hashToken(access_token) },
        { ...shared, ...long, id: refresh_id, consumed: false }
      ] as const
      // The pair first, then the one write that makes it good: a logout that ends the grant before that write leaves
      // the pair unborn, and one that ends it later finds the pair in its sweep.
      await Promise.all([accessTokens.insert(pair[0]), refreshTokens.insert(pair[1])])
      const moved = await grants.update(
        grant_id,
        { set: { refresh_id, last_used_at: long.created_at, expired_at: long.expired_at } },
        { equal: { refresh_id: id } }
      )
      if (moved === null) {
        await Promise.all([accessTokens.delete(pair[0].id), refreshTokens.delete(pair[1].id)])
        throw invalidToken()
      }
      await refreshTokens.delete(id).catch(onError)
      return { access_token, expires_in: ttl, refresh_token }
    },

    /** Ends the caller's token session: its access token, and all that is linked to it by a grant (service.md, 4.2). */
    async revoke (token: Pick<Caller['token'], 'id' | 'grant_id'>): Promise<void> {
      if (token.grant_id !== undefined) {
        await grants.delete(token.grant_id)
        await refreshTokens.deleteMany({ equal: { grant_id: token.grant_id } })
        await accessTokens.deleteMany({ equal: { grant_id: token.grant_id } })
      }
      await accessTokens.delete(token.id)
    },

    /** Removes the codes, tokens and grants of a user whose epoch moved or who is gone. */
    removeOfUser: (user_id: string) => removeDead(OWNED_BY_USER, { equal: { user_id } }),

    /** Removes the codes, tokens and grants of a client whose epoch moved or which is gone. */
    removeOfClient: (client_id: string) => removeDead(OWNED_BY_CLIENT, { equal: { client_id } })
  }
}

export type Tokens = ReturnType<typeof createTokens>
