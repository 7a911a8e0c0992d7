import { decodeJwt } from 'jose'
import t from 'tap'
import { hashToken } from '../../lib/crypto/random-token.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { CLAIM_LIMITS, type CustomClaims } from '../../schemas/claims.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { callAs } from '../helpers/people.ts'
import { ALL_CLAIMS } from '../helpers/reserved-claims.ts'
import { wrapStore } from '../helpers/wrap-store.ts'
import { type App, type Harness, eachStore, getCode, startHarness } from './harness.ts'

type Claims = Record<string, unknown>

const [ORDERS, STOCK] = ['https://orders.example', 'https://stock.example']
const EVERYWHERE: CustomClaims[string]['in'] = ['id_token', 'userinfo', 'introspection', 'jwt']

t.setTimeout(300_000)

async function openScene (harness: Harness) {
  const { kit, post, get, user } = harness
  const boss = callAs(kit, (await kit.mint({ user: 'boss@example.com', roles: ['admin'], ttl: 365 * 86_400 })).headers)
  const asker = await harness.register({ name: 'Asker' })
  const { resources } = kit.app.identity
  await resources.create({ data: { id: ORDERS, name: 'Orders', scopes: { 'orders:read': 'See your orders' } } })
  await resources.create({ data: { id: STOCK, name: 'Stock', scopes: { 'stock:read': 'See the stock' }, tokenFormat: 'jwt' } })
  const list = (await boss.get<{ data: { resourceId: string, id: string }[] }>('/resource/list')).body.data
  const findResource = (uri: string) => list.find(({ id }) => id === uri)!.resourceId
  return {
    boss,
    asker,
    register: async (name: string) => await harness.register({ name, scopes: ['read', 'orders:read', 'stock:read'] }),
    give: async (attributes: object) => await boss.patch(`/user/${user.user_id}`, { data: { attributes } }),
    declare: async (app: App, claims: object) => await boss.patch<{ message: string }>(`/client/${app.client_id}`, { data: { claims } }),
    declareAt: async (uri: string, claims: object) => await boss.patch<{ message: string }>(`/resource/${findResource(uri)}`, { data: { claims } }),
    introspect: async (token: string) => (await post('introspect', { token }, asker)).body,
    userinfo: async (token: string) => (await get('userinfo', token)).body,
    redeem: async (app: App, scope: string) => (await post('token', await getCode(harness, app, { scope }), app)).body as { access_token: string, refresh_token: string, id_token: string }
  }
}

eachStore(t, 'claims of the operator’s own', async (t, start) => {
  const harness = await start()
  const { kit, post, get, user } = harness
  const { users, clients, store } = kit.app.identity
  const { boss, register, give, declare, declareAt, introspect, userinfo, redeem } = await openScene(harness)
  const tenant = { from: 'attributes.tenant', in: EVERYWHERE }
  t.equal((await give({ tenant: 'acme', plan: { seats: 7, trial: false, regions: ['eu', 'us'] }, object: { a: 1 } })).status, 204)

  await t.test('are where the client declares them, whatever the scopes, and at no other client', async (t) => {
    const [app, other] = [await register('Shop'), await register('Other')]
    const of = (key: string) => ({ from: `attributes.${key}`, in: EVERYWHERE })
    t.match(await declare(app, { tenant, 'https://a.example/seats': of('plan.seats'), trial: of('plan.trial'), regions: of('plan.regions'), object: of('object'), none: of('none') }), { status: 204 })
    const expected = { tenant: 'acme', 'https://a.example/seats': 7, trial: false, regions: ['eu', 'us'] }
    for (const scope of ['openid', 'openid profile email offline_access read']) {
      const tokens = await redeem(app, scope)
      const seen: [string, Claims][] = [
        ['ID token', decodeJwt(tokens.id_token)], ['userinfo', await userinfo(tokens.access_token)], ['introspection', await introspect(tokens.access_token)],
        ['userinfo of fewer scopes', (await get('userinfo?scope=openid', tokens.access_token)).body]
      ]
      for (const [where, claims] of seen) {
        t.match(claims, { sub: user.user_id, ...expected }, `${where} with ${scope}`)
        t.strictSame([claims.object, claims.none, claims.attributes], [undefined, undefined, undefined], `${where}: what is no value, and what is not there`)
      }
      const plain = await redeem(other, scope)
      for (const [where, claims] of [
        ['ID token', decodeJwt(plain.id_token)], ['userinfo', await userinfo(plain.access_token)], ['introspection', await introspect(plain.access_token)]
      ] as [string, Claims][]) {
        for (const name of Object.keys(expected)) t.notOk(Object.hasOwn(claims, name), `${where} of another client has no ${name}`)
      }
    }
    t.match(await introspect((await kit.mint({ user: user.account, client: app.client_id, scopes: ['read'] })).access_token), expected, 'a minted token')
  })

  await t.test('each place has those that are declared for it, and a refresh token none', async (t) => {
    for (const place of EVERYWHERE) {
      const app = await register(place)
      await declare(app, { tenant: { ...tenant, in: [place] } })
      const { access_token, refresh_token, id_token } = await redeem(app, 'openid offline_access read')
      const jwt = decodeJwt((await redeem(app, 'openid stock:read')).access_token)
      t.strictSame({
        id_token: decodeJwt(id_token).tenant, userinfo: (await userinfo(access_token)).tenant, introspection: (await introspect(access_token)).tenant, jwt: jwt.tenant
      }, { id_token: undefined, userinfo: undefined, introspection: undefined, jwt: undefined, [place]: 'acme' }, place)
      const { body } = await post('introspect', { token: refresh_token }, app)
      t.match(body, { active: true, tenant: undefined })
    }
  })

  await t.test('a resource has its own in its tokens, which win over those of the client', async (t) => {
    const [app, plain] = [await register('Both'), await register('Plain')]
    await declare(app, { tenant: { from: 'attributes.plan.seats', in: EVERYWHERE } })
    for (const uri of [ORDERS, STOCK]) t.match(await declareAt(uri, { tenant: { ...tenant, in: ['introspection', 'jwt'] } }), { status: 200 })
    const [orders, stock] = [await redeem(app, 'openid orders:read'), await redeem(app, 'openid stock:read')]
    t.equal(decodeJwt(orders.id_token).tenant, 7, 'the ID token is the client’s')
    t.equal((await introspect(orders.access_token)).tenant, 'acme')
    t.equal(decodeJwt(stock.access_token).tenant, 'acme')
    t.equal((await introspect(stock.access_token)).tenant, 'acme')
    t.equal((await introspect((await redeem(app, 'openid read')).access_token)).tenant, 7, 'a token without a resource')
    const ofPlain = await redeem(plain, 'openid stock:read')
    t.strictSame([decodeJwt(ofPlain.access_token).tenant, decodeJwt(ofPlain.id_token).tenant], ['acme', undefined])
    t.equal((await introspect((await redeem(plain, 'openid read')).access_token)).tenant, undefined)
    for (const uri of [ORDERS, STOCK]) await declareAt(uri, {})
    t.equal((await introspect(orders.access_token)).tenant, 7, 'the client’s, when the resource has none any more')
    t.equal((await introspect(ofPlain.access_token)).tenant, undefined)
  })

  await t.test('a changed or removed attribute counts at once where somebody asks, and in what is issued from then on', async (t) => {
    const app = await register('Changes')
    await declare(app, { tenant })
    const [first, jwt] = [await redeem(app, 'openid offline_access read'), (await redeem(app, 'openid stock:read')).access_token]
    for (const [attributes, expected] of [[{ tenant: 'globex' }, 'globex'], [{ tenant: { id: 1 } }, undefined], [{}, undefined], [{ tenant: 'acme' }, 'acme']] as const) {
      t.equal((await give(attributes)).status, 204)
      t.equal((await userinfo(first.access_token)).tenant, expected)
      t.equal((await introspect(first.access_token)).tenant, expected)
      t.equal((await introspect(jwt)).tenant, expected, 'introspection of a JWT')
      t.equal(decodeJwt(jwt).tenant, 'acme', 'a JWT says what was true when it was issued')
      const { body } = await post('token', { grant_type: 'refresh_token', refresh_token: first.refresh_token }, app)
      first.refresh_token = String(body.refresh_token)
      t.equal(decodeJwt(String(body.id_token)).tenant, expected, 'an ID token of a refresh')
      t.equal(decodeJwt((await redeem(app, 'openid stock:read')).access_token).tenant, expected)
    }
    const own = callAs(kit, (await kit.mint({ user: user.account })).headers)
    t.equal((await own.patch('/user', { data: { info: { tenant: 'evil' }, name: 'Ann' } })).status, 204)
    t.equal((await userinfo(first.access_token)).tenant, 'acme', 'what people write themselves is no source')
    await declare(app, {})
    t.equal((await userinfo(first.access_token)).tenant, undefined, 'a claim that is no longer declared')
    t.equal((await introspect(first.access_token)).tenant, undefined)
    t.match((await boss.get(`/client/${app.client_id}`)).body, { data: { claims: undefined } })
  })

  await t.test('a client that acts for itself has none, whatever its owner has', async (t) => {
    const app = await register('Robot')
    await declare(app, { tenant })
    await declareAt(STOCK, { tenant: { ...tenant, in: ['introspection', 'jwt'] } })
    const own = String((await post('token', { grant_type: 'client_credentials', scope: 'read' }, app)).body.access_token)
    t.match(await introspect(own), { active: true, sub: app.client_id, tenant: undefined })
    const jwt = String((await post('token', { grant_type: 'client_credentials', scope: 'stock:read' }, app)).body.access_token)
    t.match(decodeJwt(jwt), { sub: app.client_id, tenant: undefined })
    t.match(await introspect(jwt), { active: true, tenant: undefined })
    t.match(await introspect((await kit.serviceToken(app.client_id, { scopes: ['read'] })).token), { active: true, token_name: String, tenant: undefined })
    await declareAt(STOCK, {})
  })

  await t.test('tokeninfo, and what the service stores, stay as they are', async (t) => {
    const [app, plain] = [await register('With'), await register('Without')]
    await declare(app, { tenant })
    const read = async (client: App) => {
      const { access_token } = await redeem(client, 'openid read')
      const record = await store.collection<UserRecord>('access_tokens').get(hashToken(access_token))
      return { info: Object.keys((await get('tokeninfo', access_token)).body.data as object).sort(), record: JSON.stringify(record).includes('acme') }
    }
    t.strictSame(await read(app), await read(plain))
    t.notOk((await read(app)).record)
  })

  await t.test('values that are too long are left out, together and each', async (t) => {
    const app = await register('Long')
    await give({ tenant: 'acme', long: 'x'.repeat(CLAIM_LIMITS.text + 1), big: 'y'.repeat(CLAIM_LIMITS.text), list: Array.from({ length: CLAIM_LIMITS.items + 1 }, (_, index) => index) })
    const full = Object.fromEntries(Array.from({ length: CLAIM_LIMITS.claims - 3 }, (_, index) => [`n${index}`, { from: 'attributes.big', in: EVERYWHERE }]))
    await declare(app, { ...full, tenant, long: { from: 'attributes.long', in: EVERYWHERE }, list: { from: 'attributes.list', in: EVERYWHERE } })
    const { access_token, id_token } = await redeem(app, 'openid read')
    for (const claims of [decodeJwt(id_token), await userinfo(access_token), await introspect(access_token)] as Claims[]) {
      t.match(claims, { tenant: 'acme', long: undefined, list: undefined })
      const names = Object.keys(claims).filter((name) => name in full)
      t.ok(names.length > 0 && names.length < Object.keys(full).length)
    }
    t.match(decodeJwt((await redeem(app, 'openid stock:read')).access_token), { tenant: 'acme' })
    await give({ tenant: 'acme' })
  })

  await t.test('names, sources and places that are refused, at a client and at a resource', async (t) => {
    const app = await register('Attacker')
    const refused = async (claims: object, field: string) => {
      for (const answer of [await declare(app, claims), await declareAt(ORDERS, claims), await boss.post<{ message: string }>('/client', { data: { name: 'n', redirectUris: [], scopes: [], claims } })]) {
        t.equal(answer.status, 400, JSON.stringify(claims))
        t.ok(answer.body.message.startsWith(field), `${answer.body.message} begins with ${field}`)
      }
    }
    const inTokens = { ...tenant, in: ['introspection'] }
    for (const name of ALL_CLAIMS.filter((name) => !name.startsWith('_'))) await refused({ [name]: inTokens }, `claims.${name}: `)
    await refused({ _claim_names: inTokens }, 'claims: ')
    for (const from of ['info.tenant', 'roles.admin', 'password', 'attributes', 'attributes.a.b.c.d.e.f', 'attributes.a[0]']) await refused({ a: { ...inTokens, from } }, 'claims.a.from: ')
    await refused({ a: { ...inTokens, in: [] } }, 'data.claims.a.in: ')
    await refused({ a: { ...inTokens, in: ['tokeninfo'] } }, 'data.claims.a.in[0]: ')
    await refused({ a: { ...inTokens, value: 'x' } }, 'data.claims.a.value: ')
    for (const place of ['id_token', 'userinfo']) t.equal((await declareAt(ORDERS, { a: { ...tenant, in: [place] } })).status, 400, `${place} of a resource`)
    for (const text of ['{"__proto__":{"from":"attributes.tenant","in":["jwt"]}}', '{"constructor":{"prototype":{}}}']) {
      const { status } = await boss.send({ method: 'PATCH', url: `/client/${app.client_id}`, headers: { 'content-type': 'application/json' }, payload: `{"data":{"claims":${text}}}` })
      t.equal(status, 400, text)
    }
    t.match((await boss.get(`/client/${app.client_id}`)).body, { data: { claims: undefined } })
  })

  await t.test('only administrators declare them, also for their own clients', async (t) => {
    const { user_id } = await users.create({ data: { account: 'eve@example.com', password: 'correct horse' } })
    for (const roles of [[], ['manager'], ['service']]) {
      const eve = callAs(kit, (await kit.mint({ user: 'eve@example.com', roles })).headers)
      const create = async (data: object) => await eve.post<{ data: { clientId: string } }>('/client', { data: { name: 'n', redirectUris: [], scopes: [], ...data } })
      t.match(await create({ claims: { tenant } }), { status: 403, body: { code: 'ErrPerm', message: 'claims: only an admin may set it' } })
      const { clientId } = (await create({})).body.data
      for (const claims of [{ tenant }, {}]) t.match(await eve.patch(`/client/${clientId}`, { data: { claims } }), { status: 403, body: { message: /^claims: / } })
      await clients.patch(clientId, { data: { claims: { tenant } } }, { user_id, isAdmin: true })
      t.match(await eve.patch(`/client/${clientId}`, { data: { claims: {} } }), { status: 403 }, 'nor removes them')
      t.match((await eve.get(`/client/${clientId}`)).body, { data: { claims: { tenant } } }, 'its owner sees them')
    }
    t.match(await kit.events.list({ type: 'client.updated' }).then((events) => events.filter(({ changed }) => changed?.includes('claims'))), { 0: { changed: ['claims'] } })
  })

  await t.test('the preview says what real tokens say, and what is absent', async (t) => {
    const app = await register('Previewed')
    await declare(app, { tenant, none: { from: 'attributes.none', in: EVERYWHERE } })
    await declareAt(STOCK, { plan: { from: 'attributes.tenant', in: ['jwt'] } })
    const preview = async (query: Record<string, string>) => (await boss.get<{ data: Record<string, Claims> & { absent: object[] } }>(`/client/${app.client_id}/token-preview?${new URLSearchParams(query)}`)).body.data
    const plain = await preview({ user_id: user.user_id, scope: 'openid read' })
    for (const place of ['id_token', 'userinfo', 'introspection', 'access_token']) t.match(plain[place], { tenant: 'acme', none: undefined }, place)
    for (const place of ['id_token', 'userinfo', 'introspection']) t.ok(plain.absent.some((one) => JSON.stringify(one) === JSON.stringify({ in: place, claim: 'none', reason: 'no_value' })), place)
    const jwt = await preview({ user_id: user.user_id, scope: 'openid stock:read' })
    const { access_token } = await redeem(app, 'openid stock:read')
    for (const [shown, real] of [[jwt.access_token, decodeJwt(access_token)], [jwt.introspection, await introspect(access_token)]] as const) {
      for (const name of ['tenant', 'plan', 'none']) t.equal(shown?.[name], real[name], name)
    }
    t.strictSame([jwt.access_token?.plan, jwt.introspection?.plan], ['acme', undefined])
    t.ok(jwt.absent.some((one) => JSON.stringify(one) === JSON.stringify({ in: 'access_token', claim: 'none', reason: 'no_value' })))
    t.match(await preview({ scope: 'stock:read' }), { access_token: { plan: undefined }, introspection: { sub: app.client_id, tenant: undefined } }, 'a client’s own')
    await declareAt(STOCK, {})
  })
})

/** Without the reads of a round of the relay, which begins when it will. */
const withoutRelay = (calls: readonly string[]): string[] => calls.includes('event_inbox.page') ? calls.filter((call) => !/\.(page|next)$|^feed\./.test(call)) : [...calls]

t.test('no request reads more for them, with or without', async (t) => {
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS })
  t.teardown(() => inner.close())
  let calls: string[] = []
  const harness = await startHarness(t, {
    store: wrapStore(inner, ({ collection, method }, run) => {
      calls.push(`${collection}.${method}`)
      return run()
    })
  })
  const { register, give, declare, introspect, userinfo } = await openScene(harness)
  await give({ tenant: 'acme' })
  const [plain, app] = [await register('Plain'), await register('With')]
  await declare(app, { tenant: { from: 'attributes.tenant', in: EVERYWHERE } })
  const record = async (client: App, scope: string) => {
    const seen: Record<string, string[]> = {}
    const watch = async <T>(name: string, act: () => Promise<T>): Promise<T> => {
      await harness.kit.flush()
      calls = []
      const result = await act()
      seen[name] = withoutRelay(calls).sort()
      return result
    }
    const form = await getCode(harness, client, { scope })
    const { body } = await watch('token', async () => await harness.post('token', form, client))
    await watch('introspect', async () => await introspect(String(body.access_token)))
    await watch('userinfo', async () => await userinfo(String(body.access_token)))
    await watch('tokeninfo', async () => await harness.get('tokeninfo', String(body.access_token)))
    return seen
  }
  for (const scope of ['openid read', 'openid stock:read']) t.strictSame(await record(app, scope), await record(plain, scope), scope)
})
