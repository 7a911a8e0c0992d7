import { hash } from 'node:crypto'
import { checkAccount, checkRoles, checkScopes } from '../lib/checks.ts'
import type { Clock } from '../lib/clock.ts'
import type { Services } from '../lib/identity.ts'
import { randomText } from '../lib/ids.ts'
import { readFirst } from '../lib/lists/first.ts'
import { type ClientRecord, createClientRecord } from '../lib/records/client.ts'
import { type UserRecord, createUserRecord } from '../lib/records/user.ts'
import type { Roles } from '../lib/roles.ts'
import { isApiScope } from '../lib/api-scopes.ts'
import { findDeclarer, readRegistry } from '../lib/resources/registry.ts'
import { type Collection, type Document, DuplicateKeyError } from '../lib/store/port.ts'
import type { MintedTokens } from '../lib/tokens/tokens.ts'
import { createAdministrators } from '../lib/user-changes/administrators.ts'
import type { Acr } from '../lib/proofs.ts'

/** The user and the client of a token. They are created if they do not exist. */
export interface MintRequest {
  /** An id or an account. An unknown account is created. Absent: a new user. */
  user?: string
  /** An id or a name. An unknown name is created, with the user as the owner. Absent: a client without an owner. */
  client?: string
  /** The user's new roles: names, or an object as in the API. Absent: the roles do not change; a new user has none. */
  roles?: string[] | Roles
  /**
   * Narrows the token to these scopes of the client or of the API. A client that is created for the token gets those that do not
   * belong to the API. Absent: the token has all of the user's power and all of the client's scopes.
   */
  scopes?: string[]
  /** The URI of the resource that the token is for, see MintOptions. */
  resource?: string
  /** Seconds until the access token expires. */
  ttl?: number
  /** Also mints a linked refresh token, which the token endpoint redeems. */
  refresh?: boolean
  /** As if the user had just signed in: `1` with a password, `mfa` with a second factor, `phr` with a passkey. `kit.clock` makes the sign-in older. */
  acr?: Acr
}

/** A token, with its user and client. */
export interface Minted extends MintedTokens {
  user_id: string
  client_id: string
  account: string
  /** Headers for inject or fetch: `{ authorization: 'Bearer ...' }`. */
  headers: { authorization: string }
}

export type Mint = (request?: MintRequest) => Promise<Minted>

/** Stored instead of a hash. No password matches it, and creating a user needs no hashing. */
const NO_PASSWORD = ''

/** Derives an id of the usual length from a text, so that concurrent mints get the same id. */
function deriveId (text: string): string {
  return hash('sha256', text, 'hex').slice(0, 34)
}

/** Inserts the record, or finds the record that was inserted first. */
async function insertOnce<T extends Document> (collection: Collection<T>, record: T, find: () => Promise<T | null>): Promise<T> {
  try {
    await collection.insert(record)
    return record
  } catch (error) {
    const first = error instanceof DuplicateKeyError ? await find() : null
    if (first === null) throw error
    return first
  }
}

/**
 * Creates a `mint` for open services, such as `app.identity` in an app that registered the plugin itself. The users it
 * creates have no password, so they cannot sign in until one is set.
 */
export function createMint (services: Pick<Services, 'store' | 'tokens' | 'roles'>, now: Clock = Date.now): Mint {
  const users = services.store.collection<UserRecord>('users')
  const administrators = createAdministrators({ store: services.store, now, role: services.roles.admin, onError: () => {} })
  const clients = services.store.collection<ClientRecord>('clients')

  async function createUser (account: string, roles: Roles): Promise<UserRecord> {
    const record = administrators.mark(createUserRecord(now(), { account: checkAccount(account), roles, password: NO_PASSWORD, name: '', info: {} }))
    return await insertOnce(users, record, () => users.getBy('account', record.account))
  }

  async function resolveUser (user: string | undefined, roles: Roles | undefined): Promise<UserRecord> {
    if (user === undefined) return await createUser(`user-${randomText(12)}`, roles ?? {})
    const existing = await users.get(user) ?? await users.getBy('account', user.toLowerCase())
    const record = existing ?? await createUser(user, roles ?? {})
    if (roles === undefined) return record
    return await users.update(record.id, { ...administrators.markChange(record, { set: { roles } }), increment: { revision: 1 } }) ?? record
  }

  /** @param userId the owner; absent: the operator vouches for the client, and nobody owns it */
  async function createClient (name: string, scopes: string[], userId?: string): Promise<ClientRecord> {
    const registry = await readRegistry(services.store)
    const own = checkScopes(scopes).filter((scope) => !isApiScope(scope))
    const declared = Object.fromEntries(own.flatMap((scope) => {
      const declarer = findDeclarer(registry, scope)
      return typeof declarer === 'string' ? [[scope, declarer]] : []
    }))
    // Declaring a scope removes it from all clients, so a later mint needs another client.
    const owner = userId === undefined ? { userId: 'nobody', first_party: true } : { userId }
    const id = deriveId(JSON.stringify([owner.userId, name, declared]))
    const record = createClientRecord(now(), { id, redirectUris: [], scopes: own, declared, ...owner, name, revision: 0 }, false)
    return await insertOnce(clients, record, () => clients.get(id))
  }

  async function findClient (idOrName: string): Promise<ClientRecord | null> {
    const found = await clients.get(idOrName)
    if (found !== null) return found
    return await readFirst(clients, { filter: { equal: { name: idOrName } } }) ?? null
  }

  async function resolveClient (client: string | undefined, scopes: string[] = [], userId: string): Promise<ClientRecord> {
    if (client !== undefined) return await findClient(client) ?? await createClient(client, scopes, userId)
    // One ownerless client for each set of scopes: the token has the requested scopes, and no user owns an unexpected client.
    return await createClient(['test', ...checkScopes(scopes)].join(' '), scopes)
  }

  return async function mint ({ user, client, roles, scopes, resource, ttl, refresh, acr } = {}) {
    const held = Array.isArray(roles) ? Object.fromEntries(roles.map((name) => [name, true as const])) : roles
    const record = await resolveUser(user, held && checkRoles(held))
    const { id: client_id } = await resolveClient(client, scopes, record.id)
    const tokens = await services.tokens.mint({
      user_id: record.id,
      client_id,
      scopes,
      resource,
      ttl,
      refresh,
      acr
    })
    return {
      ...tokens,
      user_id: record.id,
      client_id,
      account: record.account,
      headers: { authorization: `Bearer ${tokens.access_token}` }
    }
  }
}
