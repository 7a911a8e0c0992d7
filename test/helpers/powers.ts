import type { TestKit } from '../../testing/index.ts'
import { type ClientRecord, createClientRecord } from '../../lib/records/client.ts'
import type { GrantRecord, TokenRecord } from '../../lib/records/token.ts'
import { type UserRecord, createUserRecord } from '../../lib/records/user.ts'
import type { Roles } from '../../lib/roles.ts'
import { ACCESS_TTL } from '../../lib/tokens/tokens.ts'
import { createToken } from '../../lib/crypto/random-token.ts'
import { type Api, callAs, unique } from './people.ts'

/** Every scope of the service's own API, written out: a test must not take them from the code under test. */
export const API_SCOPES = ['account:read', 'account:write', 'account:security', 'clients:read', 'clients:write', 'users:read', 'users:write', 'users:support', 'events:read', 'webhooks:write']

/** The kinds of access tokens. `other audience` and `operator at another audience` are for the resource `elsewhere`. */
export const KINDS = [
  'unrestricted', 'narrowed', 'first-party', 'third-party', 'API audience', 'own', 'service', 'other audience', 'operator at another audience', 'DPoP-bound', 'secret-bound', 'bound to a removed secret'
] as const
export type Kind = typeof KINDS[number]

/** A named secret of a client. */
export const SECRET = { id: 's1', name: 'one', hash: 'h', last4: 'wxyz', created_at: '2026-11-23T00:00:00.000Z' }

/** A declared resource, as the record of a token names it. */
export interface Elsewhere { uri: string, resourceId: string }

export async function declareResource (kit: TestKit, scopes: Record<string, string> = {}, uri = `https://${unique('resource')}.example/`, rest: { selfService?: string[], roles?: string[], accessTtl?: number } = {}): Promise<Elsewhere> {
  const { resourceId } = await kit.app.identity.resources.create({ data: { id: uri, name: 'Elsewhere', scopes, ...rest } })
  return { uri, resourceId }
}

/** Stores a user without a password. */
export async function addUser ({ app, clock }: TestKit, roles: string[] = []): Promise<UserRecord> {
  const held: Roles = Object.fromEntries(roles.map((role) => [role, true as const]))
  const user = createUserRecord(clock.now(), { account: unique('user'), roles: held, password: '', name: '', info: {} })
  await app.identity.store.collection<UserRecord>('users').insert(user)
  return user
}

/** Stores a client. */
export async function addClient ({ app, clock }: TestKit, userId: string, fields: Partial<Omit<ClientRecord, 'id'>> = {}): Promise<ClientRecord> {
  const client = createClientRecord(clock.now(), { userId, redirectUris: [], scopes: [], name: unique('client'), revision: 0, ...fields })
  await app.identity.store.collection<ClientRecord>('clients').insert(client)
  return client
}

/** The records of a token of each kind, as the command line and the authorization server write them; `scopes` are those granted. */
export function describeKind (kind: Kind, scopes: string[], roles: string[], elsewhere: Elsewhere): { client: Partial<ClientRecord>, token: Partial<TokenRecord> } {
  const held: Roles = Object.fromEntries(roles.map((role) => [role, true as const]))
  const audience = { resource: elsewhere.uri, resource_id: elsewhere.resourceId }
  switch (kind) {
    case 'unrestricted': return { client: {}, token: { operator: 'unrestricted' } }
    case 'narrowed': return { client: {}, token: { operator: 'narrowed', scopes } }
    case 'first-party': return { client: { first_party: true, scopes }, token: { scopes: ['openid', ...scopes] } }
    case 'third-party': return { client: { scopes }, token: { scopes: ['openid', ...scopes] } }
    case 'API audience': return { client: { scopes }, token: { scopes, resource: 'https://id.example/api/v1', resource_id: 'api' } }
    case 'own': return { client: { scopes }, token: { kind: 'ClientCredentials', scopes } }
    case 'service': return { client: { scopes, roles: held }, token: { kind: 'ClientCredentials', scopes } }
    case 'other audience': return { client: { scopes }, token: { scopes, ...audience } }
    case 'operator at another audience': return { client: {}, token: { operator: 'unrestricted', ...audience } }
    case 'secret-bound': return { client: { scopes, tokenAuth: 'secret', secrets: [SECRET] }, token: { scopes: ['openid', ...scopes], auth_id: SECRET.id } }
    case 'bound to a removed secret': return { client: { scopes, tokenAuth: 'secret', secrets: [SECRET] }, token: { scopes: ['openid', ...scopes], auth_id: 'first' } }
    case 'DPoP-bound': return { client: { scopes }, token: { scopes, jkt: 'a thumbprint' } }
  }
}

export interface Held extends Api {
  user_id: string
  client_id: string
  access_token: string
  headers: { authorization: string }
}

/**
 * Issues a token of a kind to a new client. The token's user has the roles. For a client that acts for itself the user is its
 * owner, and a service account has the roles too.
 * @param granted the scopes of the grant that the token is under. Absent: there is no grant
 */
export async function issue (kit: TestKit, elsewhere: Elsewhere, { kind, scopes, roles = [], ownerRoles = roles, client = {}, token = {}, user: given, granted }: {
  kind: Kind, scopes: string[], roles?: string[], ownerRoles?: string[], client?: Partial<ClientRecord>, token?: Partial<TokenRecord>, user?: UserRecord, granted?: string[]
}): Promise<Held> {
  const described = describeKind(kind, scopes, roles, elsewhere)
  const user = given ?? await addUser(kit, ownerRoles)
  // An app that users sign in to has another owner.
  const owner = described.token.kind === undefined ? 'somebody else' : user.id
  const { id: client_id, epoch: client_epoch } = await addClient(kit, owner, { ...described.client, ...client })
  const access_token = createToken()
  const subject = { user_id: user.id, client_id, user_epoch: user.epoch, client_epoch }
  const fields = { ...described.token, ...token }
  const { tokens, store } = kit.app.identity
  if (granted === undefined) await tokens.issue({ token: access_token, ttl: ACCESS_TTL, fields }, subject)
  else {
    const id = createToken()
    const created_at = new Date(kit.clock.now()).toISOString()
    const expired_at = new Date(kit.clock.now() + ACCESS_TTL * 1000).toISOString()
    await store.collection<GrantRecord>('grants').insert({ id, ...subject, created_at, expired_at, last_used_at: created_at, generation: 0, refreshed_at: [], scopes: granted })
    await tokens.issueUnder('access_tokens', { token: access_token, ttl: ACCESS_TTL, fields }, id)
  }
  const headers = { authorization: `Bearer ${access_token}` }
  return { user_id: user.id, client_id, access_token, headers, ...callAs(kit, headers) }
}
