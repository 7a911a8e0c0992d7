import t from 'tap'
import type { UserRecord } from '../../lib/records/user.ts'
import { importLines } from '../helpers/import.ts'
import { forEachStore, build as buildApp } from '../helpers/build.ts'
import { type Api, callAs, createUser, signIn, unique } from '../helpers/people.ts'
import { API_SCOPES, declareResource, issue } from '../helpers/powers.ts'
import { eachStore } from '../oidc/harness.ts'
import { enter, post } from '../pages/visits.ts'

// Attributes of a user: who sets them, who sees them, and that nobody sets their own.

const DENIED = { status: 403, body: { code: 'ErrPerm', message: 'attributes: only an admin or a service may set them' } }

/** Objects nested to this many levels. */
const nest = (levels: number): object => levels === 1 ? {} : { in: nest(levels - 1) }

/** JSON of this many bytes. */
const fill = (bytes: number): object => ({ k: 'v'.repeat(bytes - '{"k":""}'.length) })

interface Item { attributes?: object, account: string, info: object }

await forEachStore(t, async (t, build) => {
  const kit = await build(t, { rateLimit: false, roles: { support: 'helpdesk' } })
  const services = kit.app.identity
  const admin = await signIn(kit, { roles: ['admin'] })
  const readAs = async (caller: Api, id: string) => (await caller.get<{ data: Item }>(`/user/${id}`)).body.data
  const read = async (id: string) => (await readAs(admin, id)).attributes
  const give = async (caller: Api, id: string, attributes: object) => await caller.patch(`/user/${id}`, { data: { attributes } })

  t.test('administrators and service accounts with their role set them, and everybody who reads the user sees them', async (t) => {
    const account = unique('ann')
    const id = await createUser(admin, { account, attributes: { tenant: 'acme' } })
    t.strictSame(await read(id), { tenant: 'acme' })
    t.match(await give(admin, id, { plan: 'gold', seats: 7 }), { status: 204 })
    t.strictSame(await read(id), { plan: 'gold', seats: 7 }, 'replaced as a whole')
    const robot = await issue(kit, await declareResource(kit), { kind: 'service', scopes: API_SCOPES, roles: ['admin'] })
    t.match(await give(robot, id, { plan: 'silver' }), { status: 204 })
    const ann = await signIn(kit, { user: account })
    t.strictSame((await ann.get<{ data: Item }>('/user')).body.data.attributes, { plan: 'silver' }, 'the person')
    for (const reader of [callAs(kit, (await kit.support()).headers), await signIn(kit, { roles: ['manager'] })]) t.strictSame((await readAs(reader, id)).attributes, { plan: 'silver' })
    const list = (await admin.get<{ data: Item[] }>(`/user/list?account=${account}`)).body.data
    t.strictSame(list.map(({ attributes }) => attributes), [{ plan: 'silver' }])
    t.match(await give(admin, id, {}), { status: 204 })
    t.strictSame(await read(id), {})
    t.strictSame(await read(await createUser(admin)), undefined, 'a user of whom nothing was ever said')
    const updates = (await kit.events.list({ type: 'user.updated', user: id })).map(({ changed }) => changed)
    t.strictSame(updates, [['attributes'], ['attributes'], ['attributes']])
    t.equal((await services.store.collection<UserRecord>('users').get(id))!.epoch, 0, 'no token ends')
  })

  t.test('nobody sets their own, by any route', async (t) => {
    for (const roles of [[], ['manager'], ['service'], ['helpdesk']]) {
      const eve = await signIn(kit, { roles })
      const before = await services.store.collection<UserRecord>('users').get(eve.user_id)
      const attributes = { tenant: 'acme' }
      for (const [method, path, body] of [
        ['PATCH', '/user', { data: { attributes } }],
        ['PATCH', '/user', { data: { name: 'Eve', attributes } }],
        ['PATCH', '/user', { data: { name: 'Eve' }, attributes }],
        ['PATCH', '/user', { data: { 'attributes.tenant': 'acme' } }],
        ['PATCH', `/user/${eve.user_id}`, { data: { attributes } }],
        ['PATCH', `/user/${eve.user_id}`, { data: { attributes: {} } }],
        ['POST', '/user', { data: { account: unique('eve'), password: 'p', attributes } }],
        ['POST', '/user/invite', { data: { account: `${unique('eve')}@example.com`, attributes } }],
        ['POST', '/user/email', { data: { email: `${unique('eve')}@example.com`, attributes } }],
        ['POST', '/auth/signup', { data: { email: `${unique('eve')}@example.com`, attributes } }],
        ['POST', '/user/import?source=old', { account: eve.user_id, attributes }]
      ] as const) {
        const { status } = await eve.send({ method, url: path, payload: body })
        t.ok([400, 403, 404, 415].includes(status), `${method} ${path} by ${roles[0] ?? 'a person'}: ${status}`)
      }
      t.strictSame(await services.store.collection<UserRecord>('users').get(eve.user_id), before)
      t.match(await eve.patch('/user', { data: { info: { tenant: 'acme', attributes } } }), { status: 204 }, 'info is theirs')
      t.strictSame(await read(eve.user_id), undefined)
    }
  })

  t.test('those who may change some things of others may not change these, also of nobody special', async (t) => {
    const id = await createUser(admin, { attributes: { tenant: 'acme' } })
    for (const role of ['manager']) {
      const caller = await signIn(kit, { roles: [role] })
      for (const attributes of [{ tenant: 'globex' }, {}]) t.match(await give(caller, id, attributes), DENIED, role)
      t.match(await caller.patch(`/user/${id}`, { data: { roles: {}, attributes: {} } }), DENIED, 'with something that they may')
      const robot = await issue(kit, await declareResource(kit), { kind: 'service', scopes: API_SCOPES, roles: [role] })
      t.match(await give(robot, id, {}), DENIED, `a client with the role ${role}`)
    }
    const service = await signIn(kit, { roles: ['service'] })
    t.match(await give(service, id, { tenant: 'globex' }), { status: 204 }, 'a service')
    t.match(await give(service, service.user_id, { tenant: 'globex' }), DENIED, 'and not its own')
    const reader = await signIn(kit, { user: service.user_id, scopes: ['users:read', 'account:write'] })
    t.match(await give(reader, id, {}), { status: 403 }, "a service's token without the scope")
    const robot = await issue(kit, await declareResource(kit), { kind: 'service', scopes: API_SCOPES, roles: ['service'] })
    t.match(await give(robot, id, { tenant: 'acme' }), { status: 204 }, 'a client with the role service')
    const own = await issue(kit, await declareResource(kit), { kind: 'own', scopes: API_SCOPES, ownerRoles: ['admin'] })
    t.match(await give(own, id, {}), { status: 403 }, 'a client of an administrator')
    const narrowed = await signIn(kit, { user: admin.user_id, scopes: ['account:write', 'account:read'] })
    t.match(await give(narrowed, id, {}), { status: 403 }, "an administrator's token without the scope")
    t.strictSame(await read(id), { tenant: 'acme' })
  })

  t.test('they are JSON that can be stored, without prototype keys, in 4096 bytes and 32 levels', async (t) => {
    const id = await createUser(admin)
    const wrong = async (attributes: object, cause: RegExp | string) => {
      for (const reply of [await give(admin, id, attributes), await admin.post('/user', { data: { account: unique('u'), password: 'p', attributes } })]) {
        t.match(reply, { status: 400, body: { code: 'ErrParam', message: cause } }, JSON.stringify(attributes).slice(0, 60))
      }
    }
    for (const good of [fill(4096), nest(32), { 'a.b': [1, null], $c: '', ü: 'ü' }]) {
      t.match(await give(admin, id, good), { status: 204 })
      t.strictSame(await read(id), good)
    }
    const before = await read(id)
    await wrong(fill(4097), 'attributes: must not have more than 4096 bytes as JSON')
    await wrong({ ü: 'ü'.repeat(2048) }, /^attributes: .*4096 bytes/)
    await wrong(nest(33), /^attributes: must not be nested deeper/)
    await wrong({ '': 1 }, 'attributes: must not have an empty key')
    await wrong({ a: '\ud800' }, /^attributes: .*Unicode/)
    await wrong({ a: { '\u0000': 1 } }, /^attributes: .*NUL/)
    for (const key of ['constructor', 'prototype']) for (const value of [{ [key]: 1 }, { a: [{ [key]: {} }] }]) await wrong(value, `attributes: must not have the key ${key}`)
    for (const text of ['{"__proto__":{"tenant":"acme"}}', '{"a":{"__proto__":1}}', '{"constructor":{"prototype":{"a":1}}}', '"acme"', '[]', 'null', '7']) {
      const { status } = await admin.send({ method: 'PATCH', url: `/user/${id}`, headers: { 'content-type': 'application/json' }, payload: `{"data":{"attributes":${text}}}` })
      t.equal(status, 400, text)
    }
    await t.rejects(services.users.patch(id, { data: { attributes: JSON.parse('{"a":{"__proto__":1}}') } }, { user_id: '', isAdmin: true }), { message: 'attributes: must not have the key __proto__' }, 'also for a host')
    t.strictSame(await read(id), before)
  })

  t.test('imports set them, an update changes them, and an export has them', async (t) => {
    const line = { id: unique('old'), account: unique('ann'), attributes: { tenant: 'acme', plan: { seats: 7 } } }
    const results = async (more: object, options = {}) => (await importLines(services, [{ ...line, ...more }], options)).verdicts.map(({ result, dropped, field, reason }) => ({ result, dropped, field, reason }))
    t.match(await results({}), [{ result: 'created' }])
    t.strictSame(await read(line.id), line.attributes)
    t.match(await results({}, { onConflict: 'update' }), [{ result: 'same' }])
    t.match(await results({ attributes: { tenant: 'globex' } }), [{ result: 'same', dropped: ['attributes'] }])
    t.match(await results({ attributes: { tenant: 'globex' } }, { onConflict: 'fail' }), [{ result: 'refused', field: 'attributes' }])
    t.match(await results({ attributes: { tenant: 'globex' } }, { onConflict: 'update' }), [{ result: 'updated' }])
    t.strictSame(await read(line.id), { tenant: 'globex' })
    t.match(await results({ attributes: undefined }, { onConflict: 'update' }), [{ result: 'same' }], 'a line without them changes none')
    for (const attributes of [fill(4097), { constructor: 1 }, 'acme']) t.match(await results({ id: unique('x'), account: unique('x'), attributes }), [{ result: 'refused' }])
    const lines: { id: string, attributes?: object }[] = []
    for await (const texts of services.userLines.write()) lines.push(...texts.map((text) => JSON.parse(text)))
    t.strictSame(lines.find(({ id }) => id === line.id)?.attributes, { tenant: 'globex' })
    t.notOk(lines.some(({ attributes }) => attributes !== undefined && Object.keys(attributes).length === 0))
  })
})

t.test('an override of the access table does not let others set them', async (t) => {
  const kit = await buildApp(t, { access: { createUser: { any: true }, patchUser: { any: true } } })
  const [eve, admin] = [await signIn(kit), await signIn(kit, { roles: ['admin'] })]
  const create = async (data: object) => await eve.post<{ data: { user_id: string } }>('/user', { data: { account: unique('u'), password: 'p', ...data } })
  t.match(await create({ attributes: { tenant: 'acme' } }), DENIED)
  const { user_id } = (await create({})).body.data
  for (const id of [user_id, eve.user_id]) {
    t.match(await eve.patch(`/user/${id}`, { data: { attributes: { tenant: 'acme' } } }), DENIED)
    t.match((await admin.get(`/user/${id}`)).body, { data: { attributes: undefined } })
  }
})

eachStore(t, 'the forms of the account pages set none', async (t, start) => {
  const harness = await start()
  const { kit, user } = harness
  const { users } = kit.app.identity
  await users.patch(user.user_id, { data: { attributes: { tenant: 'acme' } } }, { user_id: '', isAdmin: true })
  let page = await enter(harness)
  for (const [name, value] of [['attributes', '{"tenant":"evil"}'], ['attributes.tenant', 'evil'], ['attributes[tenant]', 'evil'], ['data.attributes', '{}']] as const) {
    page = await post(page, '/account', { name: `Ann with ${name}`, [name]: value })
    const after = await users.require(user.user_id)
    t.strictSame(after.attributes, { tenant: 'acme' }, name)
    t.equal(after.name, `Ann with ${name}`, 'the form was accepted')
  }
})
