import t from 'tap'
import type { ClientRecord } from '../../../lib/records/client.ts'
import type { GrantRecord, Revocable } from '../../../lib/records/token.ts'
import type { UserRecord } from '../../../lib/records/user.ts'
import type { Registry } from '../../../lib/resources/registry.ts'
import type { Document } from '../../../lib/store/port.ts'
import { checkValidity } from '../../../lib/tokens/validity.ts'

const NOW = '2126-11-21T02:51:00.000Z'
const SOON = '2126-11-21T02:51:00.001Z'
const PAST = '2126-11-21T02:50:59.999Z'

const ORDERS = { uri: 'https://orders.example/', name: 'Orders', scopes: {}, self_service: [], created_at: PAST, modified_at: PAST }

/** The records of a valid token, in the third epoch of its user and the fifth of its client. */
const RECORD: Revocable = { id: 'token', user_id: 'ann', client_id: 'app', grant_id: 'session', user_epoch: 2, client_epoch: 4, expired_at: SOON }
const GRANT = { ...RECORD, id: 'session', grant_id: undefined, last_used_at: PAST, created_at: PAST, generation: 0, refreshed_at: [] } as unknown as GrantRecord
const USER: UserRecord = { id: 'ann', account: 'ann', created_at: PAST, modified_at: PAST, roles: { clerk: true }, password: '', name: '', info: {}, epoch: 2, revision: 0 }
const CLIENT: ClientRecord = { id: 'app', createdAt: PAST, modifiedAt: PAST, redirectUris: [], scopes: [], userId: 'owner', name: '', epoch: 4, roles: { robot: true } }
const REGISTRY: Registry = {
  id: 'registry',
  revision: 0,
  resources: { orders: ORDERS, closed: { ...ORDERS, uri: 'https://closed.example/', roles: [] }, staff: { ...ORDERS, uri: 'https://staff.example/', roles: ['boss', 'clerk'] }, robots: { ...ORDERS, uri: 'https://robots.example/', roles: ['robot'] } },
  names: {}
}

interface Parts { record?: Partial<Revocable>, user?: Partial<UserRecord> | null, client?: Partial<ClientRecord> | null, grant?: Partial<Revocable> | null, registry?: Registry | null }

function check ({ record, user, client, grant, registry = REGISTRY }: Parts) {
  const linked: Record<string, Document | null> = {
    user_id: user === null ? null : { ...USER, ...user },
    client_id: client === null ? null : { ...CLIENT, ...client },
    grant_id: grant === null ? null : { ...GRANT, ...grant },
    registry_id: registry
  }
  return checkValidity({ document: { ...RECORD, ...record }, linked }, NOW)
}

const without = (field: keyof Revocable): Partial<Revocable> => ({ [field]: undefined })
/** A service token: it has no session, and no epoch of its user, who is the owner of its client. */
const SERVICE: Partial<Revocable> = { kind: 'Service', ...without('user_epoch'), ...without('grant_id') }

const at = (id: string, uri: string | undefined = REGISTRY.resources[id]?.uri): Partial<Revocable> => ({ resource_id: id, ...(uri !== undefined && { resource: uri }) })

t.test('a record is valid while everything that it depends on is', async (t) => {
  const valid: Record<string, Parts> = {
    'all as it was issued': {},
    'a user who expires later': { user: { expired_at: SOON } },
    'epochs of later than the look-up, as in a token issued meanwhile': { record: { user_epoch: 3, client_epoch: 5 } },
    'no session': { record: without('grant_id'), grant: null },
    'no user': { record: { ...without('grant_id'), ...without('user_id') }, user: null },
    'no client': { record: { ...without('grant_id'), ...without('client_id') }, client: null },
    'by a secret that its client still has': { record: { auth_id: 'first' }, client: { secret: 'sealed' } },
    'for the API': { record: at('api', 'https://id.example/') },
    'for a resource': { record: at('orders') },
    'for a resource whose role the user holds': { record: at('staff') },
    'for a resource whose role the client holds that acts for itself': { record: { ...at('robots'), kind: 'ClientCredentials' } },
    'for a resource whose role the client holds that has a service token': { record: { ...at('robots'), ...SERVICE } },
    'a service token after any number of epochs of the owner': { record: SERVICE, user: { epoch: 99 }, grant: null },
    'where nothing was ever declared': { registry: null }
  }
  for (const [name, parts] of Object.entries(valid)) t.not(check(parts), null, name)
  const { record, user, client, grant, registry } = check({})!
  t.match([record.id, user?.id, client?.id, grant?.id, registry.id], ['token', 'ann', 'app', 'session', 'registry'], 'with the records')
  t.match(checkValidity({ document: { id: 'x', expired_at: SOON }, linked: {} }, NOW), { user: null, client: null, grant: null, registry: { resources: {}, names: {} } })
})

t.test('a record is dead with anything that it depends on', async (t) => {
  const dead: Record<string, Parts> = {
    'at its expiry': { record: { expired_at: NOW } },
    'a service token at its expiry': { record: { ...SERVICE, expired_at: NOW } },
    'a service token whose owner is gone': { record: SERVICE, user: null },
    'a service token whose owner is disabled': { record: SERVICE, user: { disabled_at: PAST } },
    'a service token whose owner expires': { record: SERVICE, user: { expired_at: NOW } },
    'a service token whose client is gone': { record: SERVICE, client: null },
    'a service token whose client is disabled': { record: SERVICE, client: { disabled_at: PAST } },
    'a service token of an earlier epoch of its client': { record: SERVICE, client: { epoch: 5 } },
    'a service token without the epoch of its client': { record: { ...SERVICE, client_epoch: undefined }, client: { epoch: 0 } },
    'a service token for a resource whose role only the owner holds': { record: { ...SERVICE, ...at('staff') } },
    'another kind without the epoch of its user': { record: { ...SERVICE, kind: 'ClientCredentials' }, user: { epoch: 0 } },
    'after its expiry': { record: { expired_at: PAST } },
    'when its user is gone': { user: null },
    'when its user had all sessions ended': { user: { epoch: 3 } },
    'without the epoch of its user': { record: without('user_epoch'), user: { epoch: 0 } },
    'when its user is disabled': { user: { disabled_at: PAST } },
    'when its user expires': { user: { expired_at: NOW } },
    'when its client is gone': { client: null },
    'when its client has a new secret': { client: { epoch: 5 } },
    'without the epoch of its client': { record: without('client_epoch'), client: { epoch: 0 } },
    'when its client is disabled': { client: { disabled_at: PAST } },
    'when the secret that got it is removed': { record: { auth_id: 'first' } },
    'when another secret is left': { record: { auth_id: 'gone' }, client: { secret: 'sealed' } },
    'when its session is gone': { grant: null },
    'when its session expires': { grant: { expired_at: NOW } },
    'when its session is of an earlier epoch of the user': { grant: { user_epoch: 1 } },
    'when its session is of an earlier epoch of the client': { grant: { client_epoch: 3 } },
    'when its resource is deleted': { record: at('gone', 'https://gone.example/') },
    'when its resource has another URI': { record: at('orders', 'https://old.example/') },
    'for a resource that is no entry': { record: at('constructor', 'https://orders.example/') },
    'for a resource that is no entry, and without a URI': { record: { resource_id: 'constructor' } },
    'for a resource whose role the user lost': { record: at('staff'), user: { roles: { other: true } } },
    'for a resource whose role only the client holds': { record: at('robots') },
    'for a resource that no role opens': { record: at('closed') },
    'for a resource whose role only the owner of the client holds': { record: { ...at('staff'), kind: 'ClientCredentials' } },
    'for a resource with roles, and a client without': { record: { ...at('robots'), kind: 'ClientCredentials' }, client: { roles: undefined } },
    "for a resource with roles, and a client's own token without a client": { record: { ...at('robots'), ...without('grant_id'), ...without('client_id'), kind: 'ClientCredentials' }, client: null },
    'for a resource, where none is declared': { record: at('orders'), registry: null }
  }
  for (const [name, parts] of Object.entries(dead)) t.equal(check(parts), null, name)
  t.equal(checkValidity(null, NOW), null, 'no record')
})
