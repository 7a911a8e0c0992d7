import { hash } from 'node:crypto'
import { checkAccount, checkRoles, checkScopes } from '../lib/checks.ts'
import type { Clock } from '../lib/clock.ts'
import type { Services } from '../lib/identity.ts'
import { randomText } from '../lib/ids.ts'
import { type ClientRecord, type Roles, type UserRecord, createClientRecord, createUserRecord } from '../lib/records.ts'
import { type Collection, type Document, DuplicateKeyError } from '../lib/store/port.ts'
import type { MintedTokens } from '../lib/tokens/tokens.ts'

/** Whom a token is for. What does not exist is made. */
export interface MintRequest {
  /** An id or an account. An account that does not exist is made. Absent: a new user. */
  user?: string
  /** An id or a name. A name that does not exist is made, the user's own. Absent: a client that is nobody's. */
  client?: string
  /** The roles the user has from now on: names, or an object as the API has them. Absent: as they are; none at first. */
  roles?: string[] | Roles
  /** Of a client that exists, some of its scopes; a client that is made gets these. Absent: all of the client's. */
  scopes?: string[]
  /** Seconds until the access token expires. */
  ttl?: number
  /** Mints a linked refresh token too. */
  refresh?: boolean
}

/** A token, and whose it is. */
export interface Minted extends MintedTokens {
  user_id: string
  client_id: string
  account: string
  /** For inject or fetch: `{ authorization: 'Bearer ...' }`. */
  headers: { authorization: string }
}

export type Mint = (request?: MintRequest) => Promise<Minted>

/** Not the form of a hash: no password fits it, and making a user costs no hashing. */
const NO_PASSWORD = ''

/** The length of a real id, and always the same for the same text: of two mints at once one makes it, both have it. */
function derive (text: string): string {
  return hash('sha256', text, 'hex').slice(0, 34)
}

/** Adds the record, or finds the one that was there first. */
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
 * Makes a `mint` for services that are open, such as the `app.identity` of an app that registered the plugin itself.
 * Users it makes have no password: nobody signs in as them until one is set.
 */
export function createMint (services: Pick<Services, 'store' | 'tokens'>, now: Clock = Date.now): Mint {
  const users = services.store.collection<UserRecord>('users')
  const clients = services.store.collection<ClientRecord>('clients')

  async function createUser (account: string, roles: Roles): Promise<UserRecord> {
    const record = createUserRecord(now(), { account: checkAccount(account), roles, password: NO_PASSWORD, name: '', info: {} })
    return await insertOnce(users, record, () => users.getBy('account', record.account))
  }

  async function resolveUser (user: string | undefined, roles: Roles | undefined): Promise<UserRecord> {
    if (user === undefined) return await createUser(`user-${randomText(12)}`, roles ?? {})
    const known = await users.get(user) ?? await users.getBy('account', user.toLowerCase())
    const record = known ?? await createUser(user, roles ?? {})
    if (roles === undefined) return record
    return await users.update(record.id, { set: { roles }, increment: { revision: 1 } }) ?? record
  }

  async function createClient (name: string, scopes: string[], userId: string): Promise<ClientRecord> {
    const id = derive(`${userId} ${name}`)
    const record = createClientRecord(now(), { id, redirectUris: [], scopes: checkScopes(scopes), userId, name })
    return await insertOnce(clients, record, () => clients.get(id))
  }

  async function findClient (idOrName: string): Promise<ClientRecord | null> {
    const found = await clients.get(idOrName)
    if (found !== null) return found
    let named: ClientRecord | undefined
    for await (const batch of clients.list({ filter: { equal: { name: idOrName } }, limit: 1 })) named = batch[0]
    return named ?? null
  }

  async function resolveClient (client: string | undefined, scopes: string[] = [], userId: string): Promise<ClientRecord> {
    if (client !== undefined) return await findClient(client) ?? await createClient(client, scopes, userId)
    // Nobody's: one for each set of scopes, so that a token has the scopes asked for and no user has a client he did not make.
    return await createClient(['test', ...checkScopes(scopes)].join(' '), scopes, 'nobody')
  }

  return async function mint ({ user, client, roles, scopes, ttl, refresh } = {}) {
    const held = Array.isArray(roles) ? Object.fromEntries(roles.map((name) => [name, true as const])) : roles
    const record = await resolveUser(user, held && checkRoles(held))
    const { id: client_id } = await resolveClient(client, scopes, record.id)
    const tokens = await services.tokens.mint({
      user_id: record.id,
      client_id,
      ...(client !== undefined && scopes !== undefined && { scopes }),
      ...(ttl !== undefined && { ttl }),
      ...(refresh !== undefined && { refresh })
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
