import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { NewResource } from '../../../schemas/resource.ts'
import { openServices } from '../../../lib/identity.ts'
import { createClientRecord } from '../../../lib/records/client.ts'
import { REGISTRY_ID, type Registry } from '../../../lib/resources/registry.ts'
import { readOptions } from '../../../plugins/identity.ts'
import { BEGIN, openRules } from '../../helpers/services.ts'

const ADMIN = { user_id: 'admin', isAdmin: true }
const ORDERS: NewResource = { id: 'https://api.example/orders', name: 'Orders', scopes: { 'orders:read': 'see your orders', 'orders:write': 'place orders' } }

type Rules = Awaited<ReturnType<typeof openRules>>

async function open (t: Test): Promise<Rules> {
  const rules = await openRules(t)
  await rules.resources.ensure()
  return rules
}

/** A client as an earlier release left it: with any scopes, and without a revision. */
async function insertClient ({ records }: Rules, id: string, scopes: string[], rest: object = {}): Promise<void> {
  await records.clients.insert({ ...createClientRecord(Date.parse(BEGIN), { id, redirectUris: [], scopes, userId: 'u', name: 'c' }), ...rest })
}

t.test('a resource is declared, read, changed and removed', async (t) => {
  const { resources, records, advance } = await open(t)
  const { resourceId, strippedClients } = await resources.create({ data: { ...ORDERS, selfService: ['orders:read', 'orders:read'], roles: ['clerk', 'boss'] } })
  t.match(resourceId, /^[0-9A-Za-z]{34}$/)
  t.equal(strippedClients, 0)
  t.strictSame(await resources.require(resourceId), {
    resourceId, ...ORDERS, selfService: ['orders:read'], documents: undefined, accessTtl: undefined, tokenFormat: undefined, tokenAlg: undefined, roles: ['boss', 'clerk'], claims: undefined, fixed: undefined, createdAt: BEGIN, modifiedAt: BEGIN
  })
  t.equal(await resources.count(), 1)
  t.match(await resources.getByUri(ORDERS.id), { resourceId })
  t.equal(await resources.getByUri('https://api.example/other'), null)

  advance(1000)
  await resources.patch(resourceId, { data: { name: 'Shop', scopes: { 'orders:write': 'place orders', 'orders:end': 'cancel orders' }, roles: null } })
  t.strictSame(await resources.require(resourceId), {
    resourceId,
    id: ORDERS.id,
    name: 'Shop',
    scopes: { 'orders:end': 'cancel orders', 'orders:write': 'place orders' },
    selfService: [],
    documents: undefined,
    accessTtl: undefined,
    tokenFormat: undefined,
    tokenAlg: undefined,
    roles: undefined,
    claims: undefined,
    fixed: undefined,
    createdAt: BEGIN,
    modifiedAt: '2126-11-21T02:51:01.000Z'
  }, 'a scope that is gone is not for self-service either')
  t.match(await records.resources.get(REGISTRY_ID), { revision: 2, names: { 'orders:read': null, 'orders:write': resourceId, 'orders:end': resourceId } })

  const claims = { tenant: { from: 'attributes.tenant', in: ['jwt' as const, 'introspection' as const] } }
  const readClaims = async () => (await resources.require(resourceId)).claims
  await resources.patch(resourceId, { data: { claims } })
  t.strictSame(await readClaims(), { tenant: { from: 'attributes.tenant', in: ['introspection', 'jwt'] } })
  await resources.patch(resourceId, { data: { name: 'Shop again' } })
  t.match(await readClaims(), { tenant: {} }, 'a patch without claims keeps them')
  for (const wrong of [{ roles: claims.tenant }, { tenant: { ...claims.tenant, in: ['id_token'] } }, { tenant: { ...claims.tenant, from: 'info.tenant' } }]) {
    await t.rejects(resources.patch(resourceId, { data: { claims: wrong as typeof claims } }), { code: 'ErrParam', message: /^claims\.(roles|tenant\.in|tenant\.from): / })
  }
  await resources.patch(resourceId, { data: { claims: {} } })
  t.equal((await records.resources.get(REGISTRY_ID))?.resources[resourceId]?.claims, undefined)

  await resources.remove(resourceId)
  t.strictSame((await records.resources.get(REGISTRY_ID)), {
    id: REGISTRY_ID, revision: 6, resources: {}, names: { 'orders:read': null, 'orders:write': null, 'orders:end': null }
  })
  for (const call of [() => resources.require(resourceId), () => resources.patch(resourceId, { data: { name: 'x' } }), () => resources.remove(resourceId)]) {
    await t.rejects(async () => await call(), { code: 'ErrNotFound', message: 'resourceId: no such resource' })
  }
  await t.rejects(resources.require('constructor'), { code: 'ErrNotFound' })
})

t.test('a scope that is gone is neither for self-service nor for clients from documents', async (t) => {
  const { resources } = await open(t)
  const all = Object.keys(ORDERS.scopes)
  const { resourceId } = await resources.create({ data: { ...ORDERS, selfService: all, documents: all } })
  await resources.patch(resourceId, { data: { scopes: { 'orders:read': 'see your orders' } } })
  t.match(await resources.require(resourceId), { selfService: ['orders:read'], documents: ['orders:read'] })
})

t.test('a reserved name may be declared again, by the same resource or another', async (t) => {
  const { resources } = await open(t)
  const { resourceId } = await resources.create({ data: ORDERS })
  await resources.patch(resourceId, { data: { scopes: {} } })
  await resources.patch(resourceId, { data: { scopes: { 'orders:read': 'see them again' } } })
  await resources.remove(resourceId)
  t.match(await resources.create({ data: { ...ORDERS, id: 'urn:example:orders' } }), { resourceId: String })
})

t.test('a name is counted in characters', async (t) => {
  const { resources } = await open(t)
  const named = (length: number) => ({ ...ORDERS, id: `urn:example:${length}`, scopes: {}, name: '\u{1F34F}'.repeat(length) })
  t.match(await resources.create({ data: named(256) }), { resourceId: String })
  await t.rejects(resources.create({ data: named(257) }), { code: 'ErrParam', message: 'name: must not have more than 256 characters' })
})

t.test('a refusal names the field and the cause', async (t) => {
  const { resources } = await open(t)
  const { resourceId } = await resources.create({ data: ORDERS })
  const other = { ...ORDERS, id: 'https://api.example/other', scopes: {} }
  for (const [data, code, message] of [
    [{ id: 'orders' }, 'ErrParam', 'id: must be an absolute URI'],
    [{ id: '/orders' }, 'ErrParam', 'id: must be an absolute URI'],
    [{ id: 'https://api.example/ä' }, 'ErrParam', 'id: must be an absolute URI'],
    [{ id: 'https://api.example/a"b' }, 'ErrParam', 'id: must be an absolute URI'],
    [{ id: 'https://api.example:99999/' }, 'ErrParam', 'id: must be an absolute URI'],
    [{ id: 'https://api.example/#a' }, 'ErrParam', 'id: must not have a query or a fragment'],
    [{ id: 'https://api.example/?a' }, 'ErrParam', 'id: must not have a query or a fragment'],
    ...['http://api.example/', 'http://localhost.evil.example/', 'http://127.1/', 'ftp://a/', 'javascript:alert(1)', 'data:text/plain,x', 'urn:x', 'https:a'].map((id) =>
      [{ id }, 'ErrParam', 'id: must begin with https://, with http:// and localhost, 127.0.0.1 or [::1], or with urn:'] as const),
    [{ id: 'https://ann@api.example/' }, 'ErrParam', 'id: must not have user information'],
    [{ id: `https://api.example/${'x'.repeat(2048)}` }, 'ErrParam', 'id: must not have more than 2048 characters'],
    [{ id: 'https://ID.example:443/api/v1/' }, 'ErrParam', "id: must not be the URI of this service's own API"],
    [{ id: ORDERS.id }, 'RESOURCE_EXIST', 'id: a resource with this id exists'],
    [{ name: ' ' }, 'ErrParam', 'name: must not be empty'],
    [{ name: 'a\u202eb' }, 'ErrParam', 'name: must not contain the bidirectional control U+202E'],
    [{ scopes: { 'a b': 'x' } }, 'ErrParam', 'scopes[0]: must be a scope token: printable ASCII without space, quote and backslash'],
    [{ scopes: { '': 'x' } }, 'ErrParam', 'scopes[0]: must be a scope token: printable ASCII without space, quote and backslash'],
    [{ scopes: { a: '' } }, 'ErrParam', 'scopes: must not be empty'],
    [{ scopes: { a: 'x\ny' } }, 'ErrParam', 'scopes: must not contain the control character U+000A'],
    [{ scopes: { a: 'x'.repeat(257) } }, 'ErrParam', 'scopes: must not have more than 256 characters'],
    [{ scopes: { 'orders:read': 'x' } }, 'RESOURCE_EXIST', "scopes: 'orders:read' belongs to another resource"],
    ...['openid', 'profile', 'email', 'roles', 'offline_access', 'account:security', 'users:write'].map((scope) =>
      [{ scopes: { [scope]: 'x' } }, 'RESOURCE_EXIST', `scopes: '${scope}' is reserved`] as const),
    [{ scopes: { a: 'x' }, selfService: ['b'] }, 'ErrParam', 'selfService: must be scopes of the resource'],
    [{ scopes: { a: 'x' }, selfService: ['constructor'] }, 'ErrParam', 'selfService: must be scopes of the resource'],
    [{ roles: [] }, 'ErrParam', 'roles: must not be empty']
  ] as [Partial<NewResource>, string, string][]) {
    await t.rejects(resources.create({ data: { ...other, ...data } }), { code, message }, message)
    const { id, ...rest } = data
    if (id === undefined && code !== 'RESOURCE_EXIST') await t.rejects(resources.patch(resourceId, { data: rest }), { code, message }, `patch: ${message}`)
  }
  await t.rejects(resources.patch(resourceId, { data: {} }), { code: 'ErrParam', message: 'body: must contain a change' })
  await t.rejects(resources.patch(resourceId, { data: { scopes: { openid: 'x' } } }), { code: 'RESOURCE_EXIST' })
  await t.rejects(resources.patch(resourceId, { data: { selfService: ['b'] } }), { code: 'ErrParam', message: 'selfService: must be scopes of the resource' })
  t.equal(await resources.count(), 1)
  for (const id of ['http://localhost', 'http://localhost:3000/a', 'http://127.0.0.1/', 'http://[::1]:80/', 'urn:example:orders', 'https://api.example', 'https://api.example/']) {
    await t.resolves(resources.create({ data: { ...other, id } }), id)
  }
})

t.test('the registry is bounded, names of deleted resources included', async (t) => {
  const { resources } = await open(t)
  const large = (letter: string) => ({
    id: `urn:example:${letter}`,
    name: letter,
    scopes: Object.fromEntries(Array.from({ length: 100 }, (_, index) => [letter + String(index).padStart(99, '0'), 'x'.repeat(256)]))
  })
  const first = await resources.create({ data: large('a') })
  await resources.remove(first.resourceId)
  await resources.create({ data: large('b') })
  await t.rejects(resources.create({ data: large('c') }), {
    code: 'ErrParam', message: 'scopes: all resources and reserved scopes together must not have more than 65536 bytes as JSON'
  })
  const { resources: many } = await open(t)
  for (let index = 0; index < 100; index++) await many.create({ data: { id: `urn:example:n${index}`, name: 'n', scopes: {} } })
  const create = many.create({ data: { id: 'urn:example:d', name: 'd', scopes: {} } })
  await t.rejects(create, { code: 'ErrParam', message: 'id: the maximum of 100 resources is reached' })
})

t.test('declaring a name takes it from every client that carries it, and says from how many', async (t) => {
  const rules = await open(t)
  const { resources, records } = rules
  for (let index = 0; index < 250; index++) await insertClient(rules, `c${String(index).padStart(3, '0')}`, index % 2 === 0 ? ['orders:read', 'own'] : ['own'])
  await insertClient(rules, 'current', ['orders:read', 'orders:write'], { revision: 4 })
  const { resourceId, strippedClients } = await resources.create({ data: ORDERS })
  t.equal(strippedClients, 126)
  t.match(await records.clients.get('c248'), { scopes: ['own'] })
  t.match(await records.clients.get('current'), { scopes: [], revision: 5 })
  t.notOk(Object.hasOwn(await records.clients.get('c248') ?? {}, 'declared'))
  t.match(await records.clients.get('c249'), { scopes: ['own'], modifiedAt: BEGIN })

  await records.clients.update('current', { set: { scopes: ['orders:read', 'orders:write', 'own'], declared: { 'orders:read': resourceId, 'orders:write': resourceId } } })
  t.strictSame(await resources.patch(resourceId, { data: { name: 'Shop' } }), { strippedClients: 0 }, 'another change takes nothing')
  t.strictSame(await resources.patch(resourceId, { data: { scopes: { 'orders:write': 'place orders' } } }), { strippedClients: 1 })
  t.match(await records.clients.get('current'), { scopes: ['orders:write', 'own'], declared: { 'orders:write': resourceId } })
  t.strictSame(await resources.remove(resourceId), { strippedClients: 1 })
  t.match(await records.clients.get('current'), { scopes: ['own'], declared: undefined })
})

t.test('a client that an interrupted strip has skipped loses the scope when the name is declared again', async (t) => {
  const rules = await open(t)
  const { resources, records } = rules
  const { resourceId } = await resources.create({ data: ORDERS })
  await resources.patch(resourceId, { data: { scopes: {} } })
  await insertClient(rules, 'left', ['orders:read'], { declared: { 'orders:read': resourceId } })
  t.strictSame(await resources.patch(resourceId, { data: { scopes: ORDERS.scopes } }), { strippedClients: 1 })
  t.match(await records.clients.get('left'), { scopes: [] })
})

t.test('a failure to strip is for the operator: the change took effect', async (t) => {
  let down = false
  const rules = await openRules(t, {
    around: ({ collection, method }, run) => {
      if (down && collection === 'clients' && method === 'page') throw new Error('down')
      return run()
    }
  })
  const { resources, records, errors } = rules
  await resources.ensure()
  await insertClient(rules, 'c', ['orders:read'])
  down = true
  const { resourceId, strippedClients } = await resources.create({ data: ORDERS })
  t.equal(strippedClients, 0)
  t.match(errors, [{ message: 'scopes were not removed from clients, where they have no effect any more', cause: { message: 'down' } }])
  t.match(await records.resources.get(REGISTRY_ID), { names: { 'orders:read': resourceId } })
  await resources.patch(resourceId, { data: { scopes: {} } })
  await t.rejects(resources.patch(resourceId, { data: { scopes: ORDERS.scopes } }), { message: 'down' }, 'a name with holders is not declared again')
})

t.test('resources that the host declares', async (t) => {
  const rules = await open(t)
  const { resources, records, advance } = rules
  await insertClient(rules, 'c', ['orders:read'])
  await resources.declareFixed([ORDERS])
  const { resourceId } = await resources.getByUri(ORDERS.id) ?? {}
  t.match(await resources.require(resourceId!), { fixed: true, modifiedAt: BEGIN })
  t.match(await records.clients.get('c'), { scopes: [] })
  advance(1000)
  await resources.declareFixed([ORDERS])
  t.match(await records.resources.get(REGISTRY_ID), { revision: 1 }, 'nothing is written when nothing changed')
  for (const call of [resources.patch(resourceId!, { data: { name: 'x' } }), resources.remove(resourceId!)]) {
    await t.rejects(call, { code: 'ErrPerm', message: 'resourceId: the resource is declared by the app, and is changed only there' })
  }
  await resources.declareFixed([{ ...ORDERS, name: 'Shop' }])
  t.match(await resources.require(resourceId!), { name: 'Shop', createdAt: BEGIN, modifiedAt: '2126-11-21T02:51:01.000Z' })
  const stock = { id: 'urn:example:stock', name: 'Stock', scopes: { 'stock:read': 'see the stock' } }
  for (const [list, message] of [
    [[ORDERS, { ...ORDERS, name: 'x' }], 'option resources[1].id: is given twice'],
    [[{ ...ORDERS, id: 'orders' }], 'option resources[0].id: must be an absolute URI'],
    [[ORDERS, { ...stock, scopes: { 'orders:read': 'x' } }], "option resources[1].scopes: 'orders:read' belongs to another resource"],
    [[{ ...stock, scopes: { openid: 'x' } }], "option resources[0].scopes: 'openid' is reserved"]
  ] as [NewResource[], string][]) await t.rejects(resources.declareFixed(list), { message }, message)
  t.match(await resources.require(resourceId!), { name: 'Shop', fixed: true }, 'a list with an error changes nothing')

  const { resourceId: stockId } = await resources.create({ data: stock })
  await resources.declareFixed([stock])
  t.match(await resources.require(stockId), { fixed: true }, 'the option takes over what the API declared')
  t.match(await resources.require(resourceId!), { fixed: undefined, name: 'Shop' }, 'the API changes what the option no longer names')
  await resources.remove(resourceId!)
})

t.test('the registry is created once, and again when it is missing', async (t) => {
  const { resources, records } = await openRules(t)
  await Promise.all([resources.ensure(), resources.ensure()])
  t.strictSame(await records.resources.get(REGISTRY_ID), { id: REGISTRY_ID, revision: 0, resources: {}, names: {} })
  await records.resources.delete(REGISTRY_ID)
  await resources.create({ data: ORDERS })
  t.equal(await resources.count(), 1)
})

t.test('a token of the operator has the declared scopes at their resource only', async (t) => {
  const { resources, clients, users, tokens } = await open(t)
  const { user_id } = await users.create({ data: { account: 'ann', password: 'p' } })
  await resources.create({ data: ORDERS })
  const { clientId: client_id } = await clients.create({ data: { redirectUris: [], scopes: ['orders:read', 'own'], name: 'c', userId: user_id } }, ADMIN)
  const [plain, bound] = [await tokens.mint({ user_id, client_id }), await tokens.mint({ user_id, client_id, resource: ORDERS.id })]
  t.match(await tokens.authenticate(plain.access_token), { token: { scopes: ['own'] } })
  t.match(await tokens.authenticate(bound.access_token), { token: { scopes: ['orders:read'], audience: ORDERS.id } })
})

t.test('a declaration shows at once in every process, in spite of cached callers', async (t) => {
  const options = { ...readOptions({ database: `sqlite:${t.testdir()}/identity.db`, bcryptCost: 4, passwordMin: 1 }), secretKey: Buffer.alloc(32).toString('base64') }
  const [here, elsewhere] = [await openServices(options), await openServices(options)]
  t.teardown(() => Promise.all([here.close(), elsewhere.close()]))
  const { user_id } = await here.users.create({ data: { account: 'ann', password: 'p' } })
  const { clientId: client_id } = await here.clients.create({ data: { redirectUris: [], scopes: ['orders:read', 'orders:write'], name: 'c', userId: user_id } }, ADMIN)
  const { access_token } = await here.tokens.mint({ user_id, client_id })
  const caller = await here.tokens.authenticate(access_token)
  t.match(caller, { token: { scopes: ['orders:read', 'orders:write'] } })
  t.equal(here.tokens.authenticate(access_token), caller, 'answered from the cache')
  await here.resources.create({ data: { ...ORDERS, scopes: { 'orders:read': 'see your orders' } } })
  t.match(here.tokens.authenticate(access_token), { token: { scopes: ['orders:write'] } }, 'by this process')
  // The registry alone, so that it is not the write to the client that shows.
  const registries = elsewhere.store.collection<Registry>('resources')
  const { names } = (await registries.get(REGISTRY_ID))!
  await registries.update(REGISTRY_ID, { set: { names: { ...names, 'orders:write': null } } })
  await nextTurn()
  t.match(here.tokens.authenticate(access_token), { token: { scopes: [] } }, 'by another process')
})

t.test('the operator vouches for a client whose administrator renews a name that was free before', async (t) => {
  const rules = await open(t)
  const { resources, clients } = rules
  await resources.create({ data: ORDERS })
  await insertClient(rules, 'c', ['orders:read'])
  t.equal((await clients.require('c', { user_id: 'u', isAdmin: false })).clientId, 'c', 'the name alone is nothing')
  await clients.patch('c', { data: { scopes: ['orders:read'] } }, ADMIN)
  await t.rejects(clients.require('c', { user_id: 'u', isAdmin: false }), { code: 'ErrPerm' })
})
