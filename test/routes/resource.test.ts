import t from 'tap'
import { type Reply, createClient, signIn, unique } from '../helpers/people.ts'
import { forEachStore } from '../helpers/build.ts'

interface Listed { resourceId: string, id: string, name: string }

const declare = (name: string, rest: object = {}) => ({ data: { id: `https://${unique('api')}.example/`, name, scopes: { [unique('read')]: 'see things' }, ...rest } })

await forEachStore(t, async (t, build) => {
  t.test('who may call', async (t) => {
    const kit = await build(t)
    await kit.reset()
    const admin = await signIn(kit, { roles: ['admin'] })
    const body = declare('Orders')
    const { body: { data } } = await admin.post<{ data: { resourceId: string } }>('/resource', body)
    for (const roles of [[], ['manager'], ['service']]) {
      const person = await signIn(kit, { roles })
      for (const reply of [
        await person.post('/resource', body), await person.get('/resource/list'), await person.get('/resource/count'),
        await person.get(`/resource/${data.resourceId}`), await person.patch(`/resource/${data.resourceId}`, { data: { name: 'x' } }),
        await person.delete(`/resource/${data.resourceId}`)
      ]) t.match(reply, { status: 403, body: { code: 'ErrPerm' } })
    }
    t.match(await admin.get('/resource/count'), { status: 200, body: { data: { count: 1 } } })
  })

  t.test('create, read, change and remove', async (t) => {
    const kit = await build(t)
    await kit.reset()
    const admin = await signIn(kit, { roles: ['admin'] })
    const clientId = await createClient(admin, { scopes: ['orders:read', 'own'] })
    const body = { data: { id: 'https://api.example/orders', name: 'Orders', scopes: { 'orders:read': 'see your orders' }, selfService: ['orders:read'], accessTtl: 7200, roles: ['clerk'] } }
    const created = await admin.post<{ data: { resourceId: string, strippedClients: number } }>('/resource', body)
    const { resourceId } = created.body.data
    t.match(created, { status: 200, body: { data: { resourceId: /^[0-9A-Za-z]{34}$/, strippedClients: 1 } } })
    t.match(await admin.get(`/client/${clientId}`), { body: { data: { scopes: ['own'] } } })
    const read = await admin.get<{ data: object }>(`/resource/${resourceId}`)
    t.match(read, { status: 200, body: { data: { resourceId, ...body.data, createdAt: String, modifiedAt: String } } })
    t.notOk(Object.hasOwn(read.body.data, 'fixed'))

    t.strictSame((await admin.patch(`/resource/${resourceId}`, { data: { scopes: { own: 'own it' }, roles: null } })).body, { data: { strippedClients: 1 } })
    const patched = await admin.get<{ data: object }>(`/resource/${resourceId}`)
    t.match(patched.body, { data: { name: 'Orders', scopes: { own: 'own it' }, selfService: [] } })
    t.notOk(Object.hasOwn(patched.body.data, 'roles'))
    t.match(patched.body, { data: { accessTtl: 7200 } }, 'a change of something else keeps it')
    await admin.patch(`/resource/${resourceId}`, { data: { accessTtl: null } })
    t.notOk(Object.hasOwn((await admin.get<{ data: object }>(`/resource/${resourceId}`)).body.data, 'accessTtl'))
    t.match(await admin.post('/resource', { data: { ...body.data, id: 'https://api.example/2', scopes: { own: 'x' }, selfService: [] } }), {
      status: 409, body: { code: 'RESOURCE_EXIST', error: 'Conflict', message: "scopes: 'own' belongs to another resource" }
    })
    t.match(await admin.delete(`/resource/${resourceId}`), { status: 204, body: null })
    for (const reply of [await admin.get(`/resource/${resourceId}`), await admin.patch(`/resource/${resourceId}`, { data: { name: 'x' } }), await admin.delete(`/resource/${resourceId}`)]) {
      t.match(reply, { status: 404, body: { code: 'ErrNotFound' } })
    }
    t.match(await admin.post('/client', { data: { redirectUris: [], name: 'n', scopes: ['own'] } }), { status: 400 }, 'the name stays reserved')
  })

  t.test('a body that is refused', async (t) => {
    const kit = await build(t)
    await kit.reset()
    const admin = await signIn(kit, { roles: ['admin'] })
    const good = declare('Orders')
    for (const [body, message] of [
      [{}, 'data: is required'],
      [{ data: { ...good.data, extra: 1 } }, 'data.extra: is not a known field'],
      [{ data: { ...good.data, scopes: ['a'] } }, 'data.scopes: must be of the type object'],
      [{ data: { ...good.data, scopes: { a: 1 } } }, 'data.scopes.a: must be of the type string'],
      [{ data: { ...good.data, roles: [] } }, /^data\.roles: /],
      [{ data: { ...good.data, accessTtl: 59 } }, /^data\.accessTtl: /],
      [{ data: { ...good.data, accessTtl: 86_401 } }, /^data\.accessTtl: /],
      [{ data: { ...good.data, id: 'x' } }, 'id: must be an absolute URI']
    ] as const) t.match(await admin.post('/resource', body), { status: 400, body: { code: 'ErrParam', message } }, String(message))
    const { body: { data } } = await admin.post<{ data: { resourceId: string } }>('/resource', good)
    t.match(await admin.patch(`/resource/${data.resourceId}`, { data: { id: 'https://other.example/' } }), { status: 400, body: { message: 'data.id: is not a known field' } })
    t.match(await admin.patch(`/resource/${data.resourceId}`, { data: {} }), { status: 400, body: { message: 'body: must contain a change' } })
  })

  t.test('the list, in pages, formats and orders', async (t) => {
    const kit = await build(t)
    await kit.reset()
    const admin = await signIn(kit, { roles: ['admin'] })
    for (const name of ['b', 'a', 'd', 'c', 'a']) await admin.post('/resource', declare(name))
    const names = async (query: string) => (await admin.get<{ data: Listed[] }>(`/resource/list${query}`)).body.data.map(({ name }) => name).join('')
    t.equal(await names(''), 'aabcd')
    t.equal(await names('?sort=name:desc'), 'dcbaa')
    t.equal(await names('?offset=1&limit=2'), 'ab')
    t.equal(await names('?limit=0'), 'aabcd')
    t.equal(await names('?offset=9'), '')
    const seen: string[] = []
    let path: string | undefined = '/resource/list?limit=2&sort=name:desc'
    for (let page = 0; path !== undefined && page < 9; page++) {
      const reply: Reply<{ data: Listed[] }> = await admin.get(path)
      seen.push(...reply.body.data.map(({ resourceId }) => resourceId))
      const next: string | undefined = /^<([^>]*)>; rel="next"/.exec(String(reply.headers.link))?.[1]
      path = next === undefined ? undefined : `/resource/list${next}`
    }
    const all = (await admin.get<{ data: Listed[] }>('/resource/list?sort=name:desc')).body.data.map(({ resourceId }) => resourceId)
    t.strictSame(seen, all, 'pages by cursor neither skip nor repeat')
    t.match((await admin.get<Listed[]>('/resource/list?format=array&limit=1')).body, [{ name: 'a' }])
    const lines = await kit.inject({ url: '/api/v1/resource/list', headers: { ...admin.headers, accept: 'application/x-ndjson' } })
    t.equal(lines.body.trim().split('\n').length, 5)
    for (const [query, message] of [['?sort=id:asc', /^sort: unknown key/], ['?after=x', 'after: is not a cursor of this list'], ['?user=x', 'user: is not a known field']] as const) {
      t.match(await admin.get(`/resource/list${query}`), { status: 400, body: { message } })
    }
    t.match(await admin.get('/resource/count'), { body: { data: { count: 5 } } })
  })

  t.test('two declare one name at once: one wins', async (t) => {
    const kit = await build(t)
    await kit.reset()
    const admin = await signIn(kit, { roles: ['admin'] })
    const body = (index: number) => declare('r', { scopes: { [`own:${index}`]: 'x', 'wanted:read': 'x' } })
    const replies = await Promise.all(Array.from({ length: 5 }, (_, index) => admin.post('/resource', body(index))))
    t.strictSame(replies.map(({ status }) => status).sort(), [200, 409, 409, 409, 409])
    t.match(await admin.get('/resource/count'), { body: { data: { count: 1 } } })
  })

  t.test('of several changes at once, none is lost', async (t) => {
    const kit = await build(t)
    await kit.reset()
    const admin = await signIn(kit, { roles: ['admin'] })
    const replies = await Promise.all(Array.from({ length: 4 }, (_, index) => admin.post('/resource', declare(`r${index}`))))
    t.ok(replies.every(({ status }) => status === 200))
    t.match(await admin.get('/resource/count'), { body: { data: { count: 4 } } })
  })

  t.test("the app's own resources", async (t) => {
    const resources = [{ id: 'https://shop.example/', name: 'Shop', scopes: { 'shop:buy': 'buy things' } }]
    const kit = await build(t, { resources })
    const admin = await signIn(kit, { roles: ['admin'] })
    const { body: { data: [shop] } } = await admin.get<{ data: Listed[] }>('/resource/list')
    t.match(shop, { id: 'https://shop.example/', fixed: true })
    for (const reply of [await admin.patch(`/resource/${shop?.resourceId}`, { data: { name: 'x' } }), await admin.delete(`/resource/${shop?.resourceId}`)]) {
      t.match(reply, { status: 403, body: { code: 'ErrPerm' } })
    }
    await kit.reset()
    t.match(await kit.app.identity.resources.getByUri('https://shop.example/'), { name: 'Shop' }, 'they are there again after a reset')
  })
})

t.test('a wrong option fails at boot and is named', async (t) => {
  const { startIdentity } = await import('../../testing/index.ts')
  const shop = { id: 'https://shop.example/', name: 'Shop', scopes: {} }
  for (const [resources, message] of [
    [[{ ...shop, id: 'shop' }], 'option resources[0].id: must be an absolute URI'],
    [[{ name: 'Shop', scopes: {} }], /option resources\.0\.id/],
    [[{ ...shop, id: 'https://id.example/api/v1' }], "option resources[0].id: must not be the URI of this service's own API"]
  ] as const) await t.rejects(startIdentity({ t, resources: resources as never, oidc: { issuer: 'https://id.example' } }), { message })
})
