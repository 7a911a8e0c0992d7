import t from 'tap'
import type { ClientRecord } from '../../../lib/records/client.ts'
import type { GrantRecord, TokenRecord } from '../../../lib/records/token.ts'
import type { UserRecord } from '../../../lib/records/user.ts'
import type { Registry } from '../../../lib/resources/registry.ts'
import { type Caller, POWER, toCaller } from '../../../lib/tokens/caller.ts'
import { DerivedCache } from '../../../lib/tokens/derived.ts'
import type { Valid } from '../../../lib/tokens/validity.ts'

const DAY = '2126-11-21T00:00:00.000Z'
const TIME = Date.parse(DAY)
const at = (milliseconds: number) => new Date(TIME + milliseconds).toISOString()

const RECORD: TokenRecord = { id: 'hash', user_id: 'ann', client_id: 'app', user_epoch: 2, client_epoch: 0, created_at: DAY, expired_at: at(60) }
const USER: UserRecord = { id: 'ann', account: 'ann', created_at: DAY, modified_at: DAY, roles: { root: true }, password: 'hash', name: 'Ann', info: { secret: 1 }, epoch: 2, revision: 0 }
const CLIENT: ClientRecord = { id: 'app', createdAt: DAY, modifiedAt: DAY, redirectUris: [], scopes: ['read', 'account:read', 'users:write'], userId: 'owner', name: 'App', epoch: 0 }
const REGISTRY: Registry = { id: 'registry', revision: 0, resources: {}, names: { 'orders:read': 'orders' } }

function call (record: Partial<TokenRecord> = {}, { user, client, granted }: { user?: Partial<UserRecord>, client?: Partial<ClientRecord>, granted?: string[] } = {}): Caller {
  const grant = granted === undefined ? null : { id: 'session', scopes: granted } as unknown as GrantRecord
  const valid = { record: { ...RECORD, ...record }, user: { ...USER, ...user }, client: { ...CLIENT, ...client }, grant, registry: REGISTRY }
  return toCaller(valid, 'root')!
}

t.test('a caller has the public fields of the user, the client and the token', async (t) => {
  const { [POWER]: _, ...shown } = call({ operator: 'unrestricted' })
  t.strictSame(shown, {
    subject: 'user',
    user: { user_id: 'ann', account: 'ann', name: 'Ann', roles: { root: true } },
    client: { clientId: 'app', name: 'App', scopes: ['read', 'account:read', 'users:write'], userId: 'owner' },
    token: { id: 'hash', scopes: ['read', 'account:read', 'users:write'], user_epoch: 2, created_at: DAY, expired_at: at(60) },
    isAdmin: true
  })
  t.match(call({ grant_id: 'session', resource: 'https://orders.example/', resource_id: 'orders' }).token, { grant_id: 'session', audience: 'https://orders.example/' })
  const caller = call()
  t.throws(() => { (caller.user.roles as Record<string, true>).root = true }, TypeError, 'requests share it')
})

t.test('a token without a user or without a client has no caller', async (t) => {
  const valid = { record: RECORD, user: USER, client: CLIENT, grant: null, registry: REGISTRY }
  t.equal(toCaller({ ...valid, user: null }, 'root'), null)
  t.equal(toCaller({ ...valid, client: null }, 'root'), null)
})

t.test('the roles that a token may use', async (t) => {
  const orders = { resource: 'https://orders.example/', resource_id: 'orders' }
  const at = { client: { scopes: ['orders:read'], declared: { 'orders:read': 'orders' } } }
  const held: Record<string, Caller> = {
    "an operator's unrestricted token": call({ operator: 'unrestricted' }),
    'a first-party client with the scope roles': call({ scopes: ['openid', 'roles'] }, { client: { first_party: true } }),
    'at a resource, with one of its scopes, where the person has granted the roles': call({ ...orders, scopes: ['orders:read'] }, { ...at, granted: ['orders:read', 'roles'] }),
    'at a resource, with one of its scopes, of a first-party client': call({ ...orders, scopes: ['orders:read'] }, { client: { ...at.client, first_party: true } }),
    'at a resource, with a scope that only an administrator could give': call({ ...orders, scopes: ['orders:read'] }, { client: { ...at.client, admin_scopes: ['orders:read'] } }),
    'at a resource, with one of its scopes, of a service account': call({ ...orders, scopes: ['orders:read'] }, { client: { ...at.client, roles: { robot: true } } }),
    "an operator's narrowed token at a resource": call({ ...orders, operator: 'narrowed', scopes: [] }),
    "an operator's unrestricted token at a resource": call({ ...orders, operator: 'unrestricted' })
  }
  const none: Record<string, Caller> = {
    'a sign-in': call({ scopes: ['openid'] }),
    'a sign-in without scopes of its own': call(),
    "an operator's narrowed token": call({ operator: 'narrowed', scopes: ['users:write'] }),
    'a first-party client that did not ask for roles': call({ scopes: ['openid'] }, { client: { first_party: true } }),
    'a first-party client whose token names no scopes': call({}, { client: { first_party: true } }),
    'a third-party client with the scope roles': call({ scopes: ['roles'] }),
    'a client that was first-party': call({ scopes: ['roles'] }, { client: { first_party: false } }),
    'at a resource, where the person has not granted the roles': call({ ...orders, scopes: ['orders:read'] }, { ...at, granted: ['openid', 'orders:read'] }),
    'at a resource, without a grant': call({ ...orders, scopes: ['orders:read', 'roles'] }, at),
    'at a resource, without any of its scopes': call({ ...orders, scopes: ['roles'] }, { client: { ...at.client, first_party: true } }),
    'at a resource whose scope the client lost': call({ ...orders, scopes: ['orders:read'] }, { granted: ['orders:read', 'roles'] })
  }
  for (const [name, { user, isAdmin }] of Object.entries(held)) t.match([user.roles, isAdmin], [{ root: true }, true], name)
  for (const [name, { user, isAdmin }] of Object.entries(none)) t.strictSame([user.roles, isAdmin], [{}, false], name)
  const isWithheld = (caller: Caller | undefined) => caller?.token.roles_withheld === true
  t.strictSame(Object.entries(none).filter(([, caller]) => isWithheld(caller)).map(([name]) => name), [
    'a first-party client that did not ask for roles',
    'a first-party client whose token names no scopes',
    'at a resource, where the person has not granted the roles',
    'at a resource, without a grant'
  ], 'the scope roles would give them')
  t.notOk(Object.values(held).some(isWithheld))
})

t.test('what a token may do in the API of the service', async (t) => {
  t.strictSame(call({ operator: 'unrestricted' })[POWER], { roles: { root: true }, accepted: true }, 'all that the roles allow')
  t.strictSame(call({ scopes: ['read', 'account:read', 'users:write'] })[POWER], { roles: { root: true }, scopes: ['account:read', 'users:write'], accepted: true }, 'no more than the scopes')
  t.strictSame(call({ resource: 'https://id.example/', resource_id: 'api', scopes: ['account:read'] })[POWER], { roles: { root: true }, scopes: ['account:read'], accepted: true })
  t.match(call({ resource: 'https://orders.example/', resource_id: 'orders' })[POWER], { accepted: false })
})

t.test('a client that acts for itself has its own roles, and no account', async (t) => {
  const robot = call({ kind: 'ClientCredentials' }, { client: { roles: { robot: true } } })
  t.match(robot, { subject: 'client', user: { user_id: 'ann', roles: { robot: true } }, isAdmin: false })
  t.strictSame(robot[POWER], { roles: { robot: true }, scopes: ['users:write'], accepted: true })
  t.match(call({ kind: 'ClientCredentials' }, { client: { roles: { root: true } } }), { isAdmin: true })
  t.strictSame(call({ kind: 'ClientCredentials' }).user.roles, {}, 'not those of its owner')
})

t.test('a cached caller is valid in the generation or by the stamp that it was built from, until something in it expires', async (t) => {
  const cache = new DerivedCache<Caller>()
  const caller = call()
  const valid = (user?: string, grant?: string): Valid<TokenRecord> => ({
    record: RECORD,
    user: { ...USER, ...(user !== undefined && { expired_at: user }) },
    client: CLIENT,
    grant: grant === undefined ? null : { expired_at: grant } as GrantRecord,
    registry: REGISTRY
  })
  t.equal(cache.get('hash', 1, TIME), undefined, 'unknown')
  t.equal(cache.confirm('hash', 7, 1, TIME), undefined, 'unknown')
  cache.set(valid(), 7, 1, caller)
  t.equal(cache.get('hash', 1, TIME), caller)
  t.equal(cache.get('hash', 2, TIME), undefined, 'something was written')
  t.equal(cache.get('hash', undefined, TIME), undefined, 'unknown whether something was written')
  t.equal(cache.confirm('hash', 8, 2, TIME), undefined, 'something in it was written')
  t.equal(cache.confirm('hash', 7, 2, TIME), caller, 'nothing in it was')
  t.equal(cache.get('hash', 2, TIME), caller)
  t.equal(cache.confirm('hash', 7, undefined, TIME), caller)
  t.equal(cache.get('hash', undefined, TIME), undefined, 'nothing is known of what was written since')
  for (const [name, expires, ...times] of [['the token', 60], ['the user', 50, at(50), at(70)], ['the session', 40, at(50), at(40)], ['the session', 40, undefined, at(40)]] as const) {
    cache.set(valid(times[0], times[1]), 7, 1, caller)
    t.equal(cache.get('hash', 1, TIME + expires - 1), caller, name)
    t.equal(cache.confirm('hash', 7, 1, TIME + expires - 1), caller, name)
    t.equal(cache.get('hash', 1, TIME + expires), undefined, `${name} has expired`)
    t.equal(cache.confirm('hash', 7, 1, TIME + expires), undefined, `${name} has expired`)
  }
})
