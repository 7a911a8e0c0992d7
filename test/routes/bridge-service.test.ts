import { parse } from 'csv-parse/sync'
import swagger from '@fastify/swagger'
import t, { type Test } from 'tap'
import { storeError } from '../../lib/errors.ts'
import type { ClientRecord } from '../../lib/records/client.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import type { Client } from '../../schemas/client.ts'
import type { TestKit } from '../../testing/index.ts'
import { startBridge } from '../helpers/bridge.ts'
import { type BuildOptions, build } from '../helpers/build.ts'
import { findProblem } from '../helpers/openapi.ts'
import { callAs, createClient, signIn } from '../helpers/people.ts'
import { call, closed, open, within, type Call, type Reply } from '../helpers/upstream.ts'
import { isOfRelay } from '../helpers/events.ts'
import { wrapStore } from '../helpers/wrap-store.ts'

type Document = Parameters<typeof findProblem>[0]

/** The service, listening, and a bridge to it in another app. */
async function start (t: Test, options: BuildOptions = {}) {
  const kit = await build(t, options)
  const service = (await kit.listen()).url + (options.prefix ?? '')
  const { app, url } = await startBridge(t, { upstream: service, inHostDocument: true }, async (app) => await app.register(swagger, { openapi: { openapi: '3.1.0' } }))
  const document = app.swagger() as unknown as Document
  /** Sends the same request to the bridge and to the service. */
  async function both (at: string, options: Call = {}): Promise<[Reply, Reply]> {
    return [await call(url + at, options), await call(`${service}/api/v1/client${at}`, options)]
  }
  return { kit, url, service, document, both }
}

const json = (headers: Record<string, string>, value: object): Call => ({ headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify(value) })

/** Inserts many clients directly into the store. */
async function fill (kit: TestKit, userId: string, count: number): Promise<void> {
  const clients = kit.app.identity.store.collection<ClientRecord>('clients')
  const time = '2026-11-21T02:51:00.000Z'
  await Promise.all(Array.from({ length: count }, async (_, index) => await clients.insert({
    id: `client-${String(index).padStart(6, '0')}`, createdAt: time, modifiedAt: time, redirectUris: [`https://a.example/${index}`], scopes: ['read'], userId, name: `\u00c4pfel, ${String(index).padStart(6, '0')}`, epoch: 0
  })))
}

t.test('4.4 the seven routes, with and without a prefix of the service', async (t) => {
  for (const options of [{ prefix: '' }, { prefix: '/id' }]) {
    const { kit, url, document } = await start(t, options)
    const { headers, user_id: owner, client_id: own } = await signIn(kit, { roles: ['admin'] })
    const told = (method: string, route: string, { status, headers, text }: Reply) =>
      t.equal(findProblem(document, { method, url: route, status, type: headers['content-type'], body: text }), undefined, `${method} ${route}`)

    const created = await call(url, { method: 'POST', ...json(headers, { data: { name: 'n', redirectUris: ['https://a.example/'], scopes: ['b', 'a'] }, credentials: true }) })
    t.equal(created.status, 200)
    told('POST', '/clients/', created)
    const id = JSON.parse(created.text).data.clientId as string

    const count = await call(`${url}/count?user=${owner}`, { headers })
    t.strictSame(JSON.parse(count.text), { data: { count: 1 } })
    told('GET', '/clients/count', count)

    const list = await call(`${url}/list?user=${owner}`, { headers })
    t.strictSame(JSON.parse(list.text).data.map(({ clientId }: Client) => clientId), [id])
    told('GET', '/clients/list', list)

    t.equal((await call(`${url}/${id}`, { method: 'PATCH', ...json(headers, { data: { name: 'other' } }) })).status, 204)
    const got = await call(`${url}/${id}`, { headers })
    t.match(JSON.parse(got.text).data, { clientId: id, name: 'other', scopes: ['a', 'b'], userId: owner, clientSecret: /^\w{16}$/ })
    told('GET', '/clients/:client_id', got)

    const removed = await call(`${url}/${id}`, { method: 'DELETE', headers })
    t.equal(removed.status, 204)
    told('DELETE', '/clients/:client_id', removed)
    const missing = await call(`${url}/${id}`, { headers })
    t.match(JSON.parse(missing.text), { statusCode: 404, code: 'ErrNotFound' })
    told('GET', '/clients/:client_id', missing)

    const self = await call(`${url}/${own}`, { method: 'DELETE', headers })
    t.match(JSON.parse(self.text), { statusCode: 403, code: 'ErrPerm' })
    told('DELETE', '/clients/:client_id', self)

    await createClient(callAs(kit, headers, `${options.prefix}/api/v1`))
    const all = await call(`${url}/user/${owner}`, { method: 'DELETE', headers })
    t.equal(all.status, 204)
    told('DELETE', '/clients/user/:user_id', all)
    t.strictSame(JSON.parse((await call(`${url}/count?user=${owner}`, { headers })).text), { data: { count: 0 } })
  }
})

t.test('4.4 the bridge answers as the service does', async (t) => {
  const { kit, both } = await start(t)
  const { headers } = await signIn(kit)
  const OF_ONE_CONNECTION = ['date', 'connection', 'keep-alive', 'transfer-encoding', 'x-request-id']
  const REQUESTS: [string, Call][] = [
    ['/count', {}],
    ['/count', { headers: { authorization: 'Basic x' } }],
    ['/count', { headers: { authorization: 'Bearer nobody' } }],
    ['/list?sort=size:asc', { headers }],
    ['/list?format=xml', { headers }],
    ['/list?format=array&limit=0', { headers }],
    ['/list', { headers: { ...headers, accept: 'application/x-ndjson' } }],
    ['/nobody', { headers }],
    ['/count', { method: 'HEAD', headers }],
    ['/list', { method: 'HEAD', headers }],
    ['', { method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body: '{"data":' }],
    ['', { method: 'POST', headers: { ...headers, 'content-type': 'text/plain' }, body: 'x' }],
    ['', { method: 'POST', headers }],
    ['/nobody', { method: 'PATCH', ...json(headers, { data: {} }) }],
    ['/user/nobody', { method: 'DELETE', headers }]
  ]
  for (const [at, options] of REQUESTS) {
    const [bridge, service] = await both(at, options)
    const fields = ({ headers }: Reply) => Object.fromEntries(Object.entries(headers).filter(([name]) => !OF_ONE_CONNECTION.includes(name)))
    const name = `${options.method ?? 'GET'} ${at}`
    t.equal(bridge.status, service.status, name)
    t.equal(bridge.text, service.text, name)
    t.strictSame(fields(bridge), { ...fields(service), 'x-content-type-options': 'nosniff', ...(at.startsWith('/list') && { vary: 'Accept' }) }, name)
  }
})

t.test('4.4 CSV has the rows of the list, all of them without a limit', async (t) => {
  const { kit, url, both } = await start(t)
  const admin = await signIn(kit, { roles: ['admin'] })
  const ann = await signIn(kit)
  await fill(kit, ann.user_id, 250)
  for (const { headers } of [ann, admin]) {
    for (const query of ['', '&limit=0', '&limit=7&offset=3', '&sort=name:desc&limit=120', '&offset=250', `&user=${ann.user_id}&limit=101`]) {
      const csv = await call(`${url}/list?format=csv${query}`, { headers })
      const [, list] = await both(`/list?format=array${query.includes('limit') ? query : `${query}&limit=0`}`, { headers })
      const clients = JSON.parse(list.text) as Client[]
      t.ok(csv.complete)
      t.strictSame(parse(csv.body, { columns: true, bom: true }), clients.map((client) => ({
        clientId: client.clientId,
        createdAt: client.createdAt,
        modifiedAt: client.modifiedAt,
        clientSecret: client.clientSecret ?? '',
        redirectUris: JSON.stringify(client.redirectUris),
        scopes: JSON.stringify(client.scopes),
        userId: client.userId ?? '',
        name: client.name,
        image: client.image ?? ''
      })), `${clients.length} rows, ${query}`)
    }
  }
  const refused = await call(`${url}/list?format=csv&sort=size:asc`, { headers: ann.headers })
  t.match(JSON.parse(refused.text), { statusCode: 400, code: 'ErrParam' })
  t.match((await call(`${url}/list?format=csv`)).headers, { 'www-authenticate': 'Bearer', 'content-type': /^application\/json/ })
})

t.test('4.4 a store that fails within a list aborts the list and the CSV', async (t) => {
  let batches = Infinity
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: Date.now })
  t.teardown(async () => await inner.close())
  const store = wrapStore(inner, (call, run) => {
    if (call.method === 'next' && !isOfRelay(call) && batches-- <= 0) throw storeError(new Error('gone'))
    return run()
  })
  const { kit, url } = await start(t, { store })
  const ann = await signIn(kit)
  await fill(kit, ann.user_id, 450)
  for (const at of ['/list?limit=0', '/list?limit=0&format=csv']) {
    // Two are for the page that shows that the list is a long one.
    batches = 5
    const broken = await call(url + at, { headers: ann.headers })
    t.equal(broken.status, 200)
    t.equal(broken.complete, false, at)
    batches = 0
    const failed = await call(url + at, { headers: ann.headers })
    t.match(JSON.parse(failed.text), { statusCode: 503, code: 'ErrDb' }, at)
    t.ok(failed.headers['retry-after'])
    batches = Infinity
    t.ok((await call(url + at, { headers: ann.headers })).complete)
  }
})

t.test('4.4 a caller who disconnects frees the cursor', async (t) => {
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: Date.now })
  t.teardown(async () => await inner.close())
  let freed = () => {}
  const store = wrapStore(inner, ({ method }, run) => {
    if (method === 'return') freed()
    return run()
  })
  const { kit, url } = await start(t, { store })
  const ann = await signIn(kit)
  await fill(kit, ann.user_id, 30_000)
  for (const at of ['/list?limit=0', '/list?limit=0&format=csv']) {
    const left = new Promise<void>((resolve) => { freed = resolve })
    const response = await open(url + at, { headers: ann.headers })
    response.destroy()
    await closed('answer', response)
    await within(`freed cursor, ${at}`, left)
    t.pass(at)
  }
})
