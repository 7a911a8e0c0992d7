import t, { type Test } from 'tap'
import type { Happening } from '../../../lib/events/types.ts'
import { storeError } from '../../../lib/errors.ts'
import { listGrants } from '../../../lib/clients/kinds.ts'
import { isVouchedFor } from '../../../lib/records/client.ts'
import type { Actor } from '../../../lib/roles.ts'
import { BEGIN, openRules } from '../../helpers/services.ts'

// Who may set which field of a client, and what is stored. test/spec/client.test.ts has the rest.

const ADMIN: Actor = { user_id: 'admin', isAdmin: true }
const ANN: Actor = { user_id: 'ann', isAdmin: false }
const BLANK = { redirectUris: [], scopes: [] as string[], name: 'n' }
type Patch = NonNullable<Parameters<Awaited<ReturnType<typeof openRules>>['clients']['patch']>[1]['data']>

async function open (t: Test) {
  const events: Happening[] = []
  const rules = await openRules(t, { record: (happening) => { events.push(happening) } })
  const { clients, records } = rules
  return {
    ...rules,
    events,
    read: async (clientId: string) => (await records.clients.get(clientId))!,
    /** Registers a client of Ann's. */
    register: async (data: object = {}, { credentials = true, actor = ADMIN }: { credentials?: boolean, actor?: Actor } = {}) =>
      (await clients.create({ data: { ...BLANK, ...data }, credentials }, { ...actor, user_id: 'ann' })).clientId,
    set: async (clientId: string, data: Patch, actor = ADMIN) => await clients.patch(clientId, { data }, actor)
  }
}

t.test('fields that only an administrator may set', async (t) => {
  const { set, register, read, clients } = await open(t)
  const id = await register()
  const before = await read(id)
  for (const [field, value] of Object.entries({ pkce: 'required', first_party: true, roles: { robot: true }, claims: { a: { from: 'attributes.a', in: ['jwt'] } }, disabled: false })) {
    const refused = { code: 'ErrPerm', message: `${field}: only an admin may set it` }
    await t.rejects(set(id, { [field]: value }, ANN), refused)
    if (field !== 'disabled') await t.rejects(clients.create({ data: { ...BLANK, [field]: value }, credentials: true }, ANN), refused)
  }
  t.strictSame(await read(id), before)
})

t.test('grants are sorted and de-duplicated, and fit the kind of the client', async (t) => {
  const { set, register, read } = await open(t)
  const id = await register({ grants: ['refresh', 'code', 'refresh', 'client'] })
  t.strictSame((await read(id)).grants, ['client', 'code', 'refresh'])
  const open_ = await register({ redirectUris: ['https://a.example/'] }, { credentials: false })
  const message = 'grants: must not have client, because a public client has no credentials'
  await t.rejects(set(open_, { grants: ['code', 'client'] }, ANN), { code: 'ErrParam', message })
  await t.rejects(register({ grants: ['client'] }, { credentials: false }), { code: 'ErrParam', message })
  await set(open_, { grants: ['code'] }, ANN)
  t.strictSame((await read(open_)).grants, ['code'])
})

t.test('the grants of a client that names none', async (t) => {
  const redirectUris = ['https://a.example/']
  t.strictSame(listGrants({ redirectUris }), ['code', 'refresh'], 'an app signs users in')
  t.strictSame(listGrants({ redirectUris, secret: 's' }), ['code', 'refresh'])
  t.strictSame(listGrants({ redirectUris: [], secret: 's' }), ['client'], 'a confidential client without redirect URIs acts for itself')
  t.strictSame(listGrants({ redirectUris: [] }), [], 'a public one does nothing')
  t.strictSame(listGrants({ redirectUris, grants: [] }), [])
  t.equal(isVouchedFor({ scopes: ['orders:read'], admin_scopes: ['users:read'] }), false, 'a scope that it has no more')
  t.equal(isVouchedFor({ scopes: ['orders:read'], admin_scopes: ['orders:read'] }), true)
})

t.test('PKCE is required of public clients', async (t) => {
  const { set, register, read } = await open(t)
  const open_ = await register({}, { credentials: false })
  await t.rejects(set(open_, { pkce: 'optional' }), { code: 'ErrParam', message: 'pkce: must be required for a public client' })
  await set(open_, { pkce: 'required' })
  t.notOk('pkce' in await read(open_), 'which is the default')
  const id = await register({ pkce: 'optional' })
  t.equal((await read(id)).pkce, 'optional')
  await set(id, { name: 'new' })
  t.equal((await read(id)).pkce, 'optional', 'not named, not changed')
  await set(id, { pkce: 'required' })
  t.notOk('pkce' in await read(id))
})

t.test('a value that means the same as no value is not stored', async (t) => {
  const { set, register, read } = await open(t)
  const all = { first_party: true, id_token_claims: true, roles: { robot: true as const }, image: 'https://a.example/i' }
  const none = { first_party: false, id_token_claims: false, roles: {} }
  const id = await register(all)
  t.match(await read(id), all)
  await set(id, { ...none, image: null })
  for (const field of Object.keys(all)) t.notOk(field in await read(id), field)
  for (const field of Object.keys(all)) t.notOk(field in await read(await register(none)), field)
})

t.test('a client is disabled once, which ends its tokens, until it is enabled', async (t) => {
  const { set, register, read, advance, records, tokens, clients } = await open(t)
  const id = await register()
  const grant = async () => { await tokens.issue({ token: 'token', ttl: 60 }, { user_id: 'ann', client_id: id, user_epoch: 0, client_epoch: 0 }) }
  await grant()
  await set(id, { name: 'new' })
  await tokens.settle()
  t.equal(await records.tokens.count(), 1)
  await set(id, { disabled: true })
  t.match(await read(id), { disabled_at: BEGIN, epoch: 1 })
  await tokens.settle()
  t.equal(await records.tokens.count(), 0)
  advance(1000)
  await set(id, { disabled: true })
  t.match(await read(id), { disabled_at: BEGIN, epoch: 1 }, 'again')
  t.equal((await clients.require(id, ANN)).disabled, true)
  await set(id, { disabled: false })
  t.match(await read(id), { disabled_at: undefined, epoch: 1 })
  t.notOk('disabled_at' in await read(id))
  t.equal((await clients.require(id, ANN)).disabled, undefined)
})

t.test('the URL at which a client is notified of the end of sign-ins', async (t) => {
  const { set, register, read, clients } = await open(t)
  const id = await register()
  const backchannelLogoutUri = 'https://a.example/logout'
  await set(id, { backchannelLogoutUri }, ANN)
  t.match(await read(id), { backchannelLogoutUri, backchannel: true })
  t.equal((await clients.require(id, ANN)).backchannelLogoutUri, backchannelLogoutUri)
  await set(id, { name: 'new' }, ANN)
  t.match(await read(id), { backchannelLogoutUri, backchannel: true })
  await t.rejects(set(id, { backchannelLogoutUri: 'refused:' }, ANN), { code: 'ErrParam', message: 'backchannelLogoutUri: is refused' })
  await set(id, { backchannelLogoutUri: null }, ANN)
  for (const field of ['backchannelLogoutUri', 'backchannel']) t.notOk(field in await read(id), field)
})

t.test('scopes: which nobody, only an administrator, or anybody may give', async (t) => {
  const { set, register, resources } = await open(t)
  await resources.create({ data: { id: 'https://orders.example/', name: 'Orders', scopes: { 'orders:read': 'r', 'orders:write': 'w' }, selfService: ['orders:read'] } })
  const { resourceId: gone } = await resources.create({ data: { id: 'https://gone.example/', name: 'Gone', scopes: { 'gone:read': 'r' } } })
  await resources.remove(gone)
  const id = await register()
  for (const actor of [ANN, ADMIN]) {
    for (const scope of ['openid', 'profile', 'email', 'roles', 'offline_access']) {
      await t.rejects(set(id, { scopes: [scope, 'zoom'] }, actor), { code: 'ErrParam', message: /^scopes\[0\]: is a scope that every client may request/ }, scope)
    }
    await t.rejects(set(id, { scopes: ['free', 'gone:read'] }, actor), { code: 'ErrParam', message: /^scopes\[1\]: is reserved/ })
  }
  const refused = { code: 'ErrPerm', message: 'scopes[0]: only an admin may add this scope' }
  const lacking = { code: 'ErrPerm', message: 'scopes[0]: the access token does not have this scope itself' }
  const without = (...scopes: string[]) => ({ holds: (scope: string) => !scopes.includes(scope) })
  for (const scope of ['orders:write', 'users:read', 'users:write', 'account:security', 'events:read', 'webhooks:write']) await t.rejects(set(id, { scopes: [scope] }, ANN), refused, scope)
  await t.rejects(set(id, { scopes: ['orders:read'] }, { ...ANN, isUnrestricted: false }), refused, 'an app gives no scope of a resource')
  await t.rejects(set(id, { scopes: ['account:read'] }, { ...ANN, ...without('account:read') }), lacking)
  await t.rejects(set(id, { scopes: ['users:read'] }, { ...ADMIN, ...without('users:read') }), lacking)
  for (const scope of ['orders:read', 'account:read', 'clients:write', 'free']) await set(id, { scopes: [scope] }, ANN)
  await set(id, { scopes: ['account:read', 'free'] }, { ...ANN, isUnrestricted: false, ...without('users:read') })
  await set(id, { scopes: ['account:read', 'new'] }, { ...ANN, isUnrestricted: false, ...without('account:read') })
  t.pass('a scope that the client has already needs nothing')
  await set(id, { scopes: ['orders:read', 'orders:write', 'users:read'] }, { ...ADMIN, isUnrestricted: false })
})

t.test('scopes: which resource declared them, and which an administrator gave, is stored', async (t) => {
  const { set, register, resources, read } = await open(t)
  const { resourceId } = await resources.create({ data: { id: 'https://orders.example/', name: 'Orders', scopes: { 'orders:read': 'r', 'orders:write': 'w' }, selfService: ['orders:read'] } })
  const id = await register({ scopes: ['free', 'orders:read'] })
  t.match(await read(id), { declared: { 'orders:read': resourceId } })
  t.notOk('admin_scopes' in await read(id))
  await set(id, { scopes: ['free', 'orders:read', 'orders:write', 'users:read'] })
  t.strictSame(await read(id).then(({ declared, admin_scopes }) => ({ declared, admin_scopes })), {
    declared: { 'orders:read': resourceId, 'orders:write': resourceId }, admin_scopes: ['orders:write', 'users:read']
  })
  await resources.patch(resourceId, { data: { selfService: ['orders:read', 'orders:write'] } })
  await set(id, { name: 'new' })
  t.strictSame((await read(id)).admin_scopes, ['orders:write', 'users:read'])
  await set(id, { scopes: ['free', 'orders:write'] })
  t.strictSame((await read(id)).admin_scopes, ['orders:write'], 'as when it was given')
  await set(id, { scopes: ['free'] })
  for (const field of ['declared', 'admin_scopes']) t.notOk(field in await read(id), field)
  await set(id, { scopes: ['orders:write'] })
  t.notOk('admin_scopes' in await read(id), 'given when anybody could')
})

t.test('a client that the operator vouches for is managed by administrators', async (t) => {
  const { clients, register, records } = await open(t)
  const message = 'clientId: only an admin may manage a client that the operator vouches for'
  for (const data of [{ first_party: true }, { roles: { robot: true } }, { scopes: ['users:read'] }]) {
    const id = await register(data)
    const acts: (() => Promise<unknown>)[] = [
      () => clients.require(id, ANN),
      () => clients.patch(id, { data: { name: 'mine' } }, ANN),
      () => clients.patch(id, { regen_secret: true }, ANN),
      () => clients.remove(id, ANN),
      () => clients.removeOwned('ann', ANN)
    ]
    for (const act of acts) await t.rejects(act(), { code: 'ErrPerm', message }, JSON.stringify(data))
    const other = await register()
    await t.rejects(clients.removeOwned('ann', ANN), { code: 'ErrPerm', message })
    t.not(await records.clients.get(other), null, 'none is removed')
    await clients.patch(id, { data: { name: 'by an admin' } }, ADMIN)
    await clients.removeOwned('bob', { user_id: 'bob', isAdmin: false })
    t.not(await records.clients.get(id), null, 'another user has nothing to do with it')
    await clients.remove(id, ADMIN)
    await clients.remove(other, ANN)
  }
})

t.test('a client that the operator begins to vouch for gets a new secret, unless only the actor knows the old one', async (t) => {
  const { register, set, read } = await open(t)
  const ann: Actor = { ...ADMIN, user_id: 'ann' }
  const isRenewed = async (data: Patch, actor: Actor, first: object = {}, credentials = true) => {
    const id = await register(first, { credentials })
    const { secret, epoch } = await read(id)
    await set(id, data, actor)
    const after = await read(id)
    t.equal(after.epoch > epoch, after.secret !== secret, 'which ends its tokens')
    return after.secret !== secret
  }
  t.equal(await isRenewed({ first_party: true }, ADMIN), true)
  t.equal(await isRenewed({ roles: { robot: true } }, ADMIN), true)
  t.equal(await isRenewed({ scopes: ['users:read'] }, ADMIN), true)
  t.equal(await isRenewed({ first_party: true }, { ...ann, isUser: false }), true, 'a client that acts for itself is not its owner')
  t.equal(await isRenewed({ first_party: true }, ann), false, 'its owner is the administrator')
  t.equal(await isRenewed({ name: 'new' }, ADMIN), false)
  t.equal(await isRenewed({ roles: { robot: true } }, ADMIN, { first_party: true }), false, 'vouched for before')
  t.equal(await isRenewed({ first_party: true }, ADMIN, {}, false), false, 'a public client has none')
})

t.test('replaceSecrets: of all confidential clients of a user', async (t) => {
  const { clients, register, read, records, tokens } = await open(t)
  const own = [await register(), await register()]
  const open_ = await register({}, { credentials: false })
  const vouched = await register({ first_party: true })
  const { clientId: bobs } = await clients.create({ data: BLANK, credentials: true }, { ...ADMIN, user_id: 'bob' })
  const change = async (act: () => Promise<void>) => {
    const before = await Promise.all([...own, open_, vouched, bobs].map(read))
    await act()
    await tokens.settle()
    const after = await Promise.all([...own, open_, vouched, bobs].map(read))
    return after.map(({ secret, epoch }, index) => secret !== before[index]!.secret && epoch === before[index]!.epoch + 1)
  }
  t.strictSame(await change(() => clients.replaceSecrets('ann', ANN)), [true, true, false, false, false])
  t.strictSame(await change(() => clients.replaceSecrets('ann', ADMIN)), [true, true, false, true, false])
  t.equal((await records.clients.get(open_))?.epoch, 0)
})

t.test('replaceSecrets: a client that is removed or given away meanwhile is left out', async (t) => {
  let meanwhile = async () => {}
  const rules = await openRules(t, {
    around: ({ collection, method }, run) => collection === 'clients' && method === 'get' ? meanwhile().then(run) : run()
  })
  const { clients, records } = rules
  const create = async () => (await clients.create({ data: BLANK, credentials: true }, ANN)).clientId
  const [gone, kept] = [await create(), await create()]
  meanwhile = async () => { await records.clients.delete(gone) }
  await clients.replaceSecrets('ann', ANN)
  t.match(await records.clients.get(kept), { epoch: 1 })
  meanwhile = async () => { await records.clients.update(kept, { set: { userId: 'bob' } }) }
  await clients.replaceSecrets('ann', ADMIN)
  t.match(await records.clients.get(kept), { epoch: 1, userId: 'bob' })
  await create()
  for (const error of [storeError(new Error('no disk')), new Error('no disk')]) {
    meanwhile = async () => { throw error }
    await t.rejects(clients.replaceSecrets('ann', ADMIN), error)
  }
})

t.test('a client of an earlier release, whose record has no revision', async (t) => {
  const { register, set, read, records } = await open(t)
  const id = await register()
  await records.clients.update(id, { unset: ['revision'] })
  await set(id, { name: 'new' })
  t.match(await read(id), { name: 'new', revision: 2 })
})

t.test('a change is decided on the record that it replaces', async (t) => {
  let meanwhile = async () => {}
  const { clients, records, tokens } = await openRules(t, {
    around: ({ collection, method }, run) => collection === 'clients' && method === 'update' ? meanwhile().then(run) : run()
  })
  const create = async () => (await clients.create({ data: BLANK, credentials: true }, ANN)).clientId
  const before = (id: string, body: Parameters<typeof clients.patch>[1]) => async () => {
    meanwhile = async () => {}
    await clients.patch(id, body, ADMIN)
  }
  const vouched = await create()
  meanwhile = before(vouched, { data: { first_party: true } })
  await t.rejects(clients.patch(vouched, { data: { name: 'mine' } }, ANN), { code: 'ErrPerm' }, 'the operator vouches for it since')
  t.match(await records.clients.get(vouched), { name: 'n', first_party: true })
  const renamed = await create()
  await tokens.issue({ token: 'token', ttl: 60 }, { user_id: 'ann', client_id: renamed, user_epoch: 0, client_epoch: 0 })
  meanwhile = before(renamed, { data: { name: 'new' } })
  await clients.patch(renamed, { regen_secret: true }, ANN)
  await tokens.settle()
  t.match(await records.clients.get(renamed), { name: 'new', epoch: 1, revision: 2 })
  t.equal(await records.tokens.count(), 0)
})

t.test('of two changes at once, both are in the record', async (t) => {
  const { register, set, read } = await open(t)
  const id = await register()
  await Promise.all([set(id, { name: 'new' }, ANN), set(id, { scopes: ['a'] }, ANN), set(id, { image: 'https://a.example/i' }, ANN)])
  t.match(await read(id), { name: 'new', scopes: ['a'], image: 'https://a.example/i', revision: 3 })
})

t.test('whose secrets a caller sees', async (t) => {
  const { clients, register } = await open(t)
  const own = await register()
  const vouched = await register({ first_party: true })
  const shows = async (id: string, actor: Actor) => {
    const { clientSecret, confidential } = await clients.require(id, actor)
    t.equal(confidential, clientSecret === undefined ? true : undefined)
    t.match(clientSecret ?? '', /^(\w{16})?$/)
    return clientSecret !== undefined
  }
  const only = (...scopes: string[]) => ({ holds: (scope: string) => scopes.includes(scope) })
  t.equal(await shows(own, ANN), true, 'her own')
  t.equal(await shows(own, ADMIN), true, 'to an administrator')
  t.equal(await shows(vouched, ADMIN), true)
  t.equal(await shows(own, { ...ANN, ...only('clients:read') }), false, 'to an app that may not change clients')
  t.equal(await shows(own, { ...ADMIN, ...only('clients:read', 'users:write') }), false)
  t.equal(await shows(own, { ...ADMIN, ...only('clients:write') }), false, "others', to an app that may not change users")
  t.equal(await shows(own, { ...ADMIN, user_id: 'ann', ...only('clients:write') }), true, 'their own')
  t.equal(await shows(vouched, { ...ADMIN, user_id: 'ann', ...only('clients:write') }), false, "the operator's")
  t.equal(await shows(own, { ...ANN, isUser: false }), false, 'to a client that acts for itself')
  t.equal((await clients.require(await register({}, { credentials: false }), ANN)).clientSecret, undefined)
  for (const actor of [ANN, { ...ANN, ...only('clients:read') }]) {
    t.equal((await clients.require(await register({}, { credentials: false }), actor)).confidential, undefined, 'there is none')
  }
})

t.test('a list shows the fields that are asked for, in the order of the documentation', async (t) => {
  const { clients, register } = await open(t)
  const clientId = await register({ redirectUris: ['https://a.example/'], scopes: ['a'], image: 'https://a.example/i' })
  await register({}, { credentials: false })
  const list = async (fields?: string, limit?: number, actor = ANN) => {
    const items: object[] = []
    for await (const batch of (await clients.page({ ...(fields !== undefined && { fields }), ...(limit !== undefined && { limit }) }, actor)).batches) items.push(...batch)
    // As JSON, which leaves out fields that are undefined.
    return JSON.parse(JSON.stringify(items)) as Record<string, unknown>[]
  }
  const first = async (...args: Parameters<typeof list>) => (await list(...args)).find((item) => item.clientId === clientId)
  t.strictSame(JSON.stringify(await first('scopes,name')), JSON.stringify({ clientId, scopes: ['a'], name: 'n' }))
  t.strictSame(Object.keys((await first('clientId'))!), ['clientId'])
  t.match(await first('clientSecret'), { clientId, clientSecret: /^\w{16}$/ })
  t.strictSame(await first('confidential', undefined, { ...ANN, holds: (scope) => scope === 'clients:read' }), { clientId, confidential: true })
  const all = { clientId, createdAt: BEGIN, modifiedAt: BEGIN, clientSecret: /^\w{16}$/, redirectUris: ['https://a.example/'], scopes: ['a'], name: 'n', image: 'https://a.example/i' }
  for (const fields of [undefined, '']) {
    t.match(await first(fields), all)
    t.strictSame(Object.keys((await first(fields))!), Object.keys(all))
  }
  t.equal((await list('name', 1)).length, 1)
  t.equal((await list('name', 0)).length, 2)
  await t.rejects(list('name,colour'), { code: 'ErrParam', message: /^fields: unknown field 'colour', expected some of clientId, / })
})

t.test('the events of a client', async (t) => {
  const { clients, register, set, events } = await open(t)
  const id = await register()
  const of = { id, user_id: 'ann' }
  t.strictSame(events.splice(0), [{ type: 'client.created', ...of }])
  await set(id, { name: 'new', scopes: ['a'] }, ANN)
  t.strictSame(events.splice(0), [{ type: 'client.updated', ...of, changed: ['name', 'scopes'] }])
  await clients.patch(id, { regen_secret: true }, ANN)
  t.strictSame(events.splice(0), [{ type: 'client.secret_changed', ...of }])
  await clients.patch(id, { regen_secret: true, data: { name: 'newer' } }, ANN)
  t.strictSame(events.splice(0), [{ type: 'client.updated', ...of, changed: ['name'] }, { type: 'client.secret_changed', ...of }])
  await set(id, { first_party: true }, ADMIN)
  t.strictSame(events.splice(0), [{ type: 'client.updated', ...of, changed: ['first_party'] }, { type: 'client.secret_changed', ...of }])
  await clients.replaceSecrets('ann', ADMIN)
  t.strictSame(events.splice(0), [{ type: 'client.secret_changed', ...of }])
  await clients.remove(id, ADMIN)
  t.strictSame(events.splice(0), [{ type: 'client.deleted', ...of }])
})
