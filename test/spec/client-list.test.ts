import t from 'tap'
import type { Client } from '../../schemas/client.ts'
import { forEachStore } from '../helpers/build.ts'
import { type Person, createClient, signIn } from '../helpers/people.ts'

// In the future of a MongoDB server's clock, whose TTL index would remove expired documents.
const BEGIN = Date.UTC(2126, 10, 21, 2, 51)

/** Created in this order, a second apart. Then the last is changed, and then the first. */
const NAMES = ['b', 'a', 'Z', 'c', 'ä', 'B', '', '\u{1F600}', '\uFFFD', 'c']

await forEachStore(t, async (t, build) => {
  const kit = await build(t, { time: BEGIN })
  const admin = await signIn(kit, { roles: ['admin'] })
  const ann = await signIn(kit)
  const bob = await signIn(kit)
  const ids: string[] = []
  for (const name of NAMES) {
    kit.clock.advance(1000)
    ids.push(await createClient(ann, { name }, { credentials: true }))
  }
  const twins = [ids[3]!, ids[9]!].sort()
  for (const index of [9, 0]) {
    kit.clock.advance(1000)
    await ann.patch(`/client/${ids[index]}`, { data: { scopes: ['changed'] } })
  }
  const bobs = await createClient(bob, { name: 'bob\'s' })

  async function list (person: Person, query: string): Promise<Client[]> {
    const { status, body } = await person.get<{ data: Client[] }>(`/client/list${query}`)
    if (status !== 200) throw new Error(`GET /client/list${query} answered ${status}`)
    return body.data
  }
  const names = async (query: string) => (await list(ann, query)).map(({ name }) => name)

  t.test('4.1 GET /client/list: whose clients', async (t) => {
    t.equal((await list(ann, '')).length, NAMES.length)
    t.strictSame((await list(bob, '')).map(({ clientId }) => clientId), [bobs])
    t.strictSame((await list(bob, `?user=${ann.user_id}`)).map(({ clientId }) => clientId), [bobs], 'user is not honoured for a non-admin')
    t.strictSame((await list(admin, `?user=${bob.user_id}`)).map(({ clientId }) => clientId), [bobs])
    t.strictSame(await list(admin, '?user=nobody-at-all'), [])
    const all = (await list(admin, '?user=')).map(({ clientId }) => clientId)
    for (const id of [...ids, bobs, admin.client_id]) t.ok(all.includes(id), 'an empty user counts as not given')
  })

  const ascending = ['', 'B', 'Z', 'a', 'b', 'c', 'c', 'ä', '\uFFFD', '\u{1F600}']
  t.test('4.1 GET /client/list: sort, by code point', async (t) => {
    for (const [sort, expected] of [
      ['', ascending],
      ['?sort=', ascending],
      ['?sort=name:asc', ascending],
      ['?sort=name:desc', ascending.toReversed()],
      ['?sort=created:asc', NAMES],
      ['?sort=created:desc', NAMES.toReversed()],
      ['?sort=modified:asc', [...NAMES.slice(1), NAMES[0]]],
      ['?sort=modified:desc,name:asc', [NAMES[0], ...NAMES.slice(1).toReversed()]],
      ['?sort=name:asc,created:desc', ascending]
    ] as const) t.strictSame(await names(sort), expected, sort)
    const pair = async (sort: string) => (await list(ann, `?sort=${sort}`)).filter(({ name }) => name === 'c').map(({ clientId }) => clientId)
    t.strictSame(await pair('name:asc'), twins, 'of one name, the id decides')
    t.strictSame(await pair('name:desc'), twins.toReversed(), 'in the direction of the last key')
    t.strictSame(await pair('name:desc,created:asc'), [ids[3], ids[9]], 'keys apply in order')
  })

  t.test('4.1 GET /client/list, rule 1: sort errors give ErrParam', async (t) => {
    for (const [sort, cause] of [
      ['foo:asc', 'sort: unknown key \'foo\''],
      ['account:asc', 'unknown key'],
      ['clientId:asc', 'unknown key'],
      ['__proto__:asc', 'unknown key'],
      ['Name:asc', 'unknown key'],
      [':asc', 'unknown key'],
      ['name:asc,', 'unknown key'],
      [',', 'unknown key'],
      ['name', 'no direction'],
      ['name:', 'no direction'],
      ['name:up', 'unknown direction'],
      ['name:ASC', 'unknown direction'],
      ['name: asc', 'unknown direction'],
      ['name:asc:desc', 'more than two parts'],
      ['name:asc:', 'more than two parts'],
      ['created:asc,name:asc:x', 'more than two parts'],
      ['name:asc,name:desc', 'given twice'],
      ['created:asc,name:asc,created:asc', 'given twice']
    ] as const) {
      const reply = await ann.get(`/client/list?sort=${encodeURIComponent(sort)}`)
      t.match(reply, { status: 400, body: { code: 'ErrParam' } }, sort)
      t.match(reply.body.message, cause)
    }
  })

  t.test('4.1 GET /client/list: offset and limit', async (t) => {
    for (const [query, expected] of [
      ['?offset=0', ascending],
      ['?limit=3', ascending.slice(0, 3)],
      ['?offset=2&limit=3', ascending.slice(2, 5)],
      ['?offset=8&limit=100', ascending.slice(8)],
      ['?offset=10', []],
      ['?offset=9007199254740991', []],
      ['?limit=9007199254740991', ascending],
      ['?limit=0', ascending],
      ['?limit=0&offset=7', ascending.slice(7)]
    ] as const) t.strictSame(await names(query), expected, query)
    const pages = await Promise.all(ascending.map((_, offset) => list(ann, `?sort=modified:asc&offset=${offset}&limit=1`)))
    t.equal(new Set(pages.flat().map(({ clientId }) => clientId)).size, NAMES.length, 'pages of one cover all')
  })

  t.test('4.1 GET /client/list: bad integers, formats and parameters give ErrParam', async (t) => {
    for (const query of [
      'limit=-1', 'limit=1.5', 'limit=', 'limit=x', 'limit=1e2', 'limit=0x10', 'limit=%201', 'limit=+1', 'limit=9007199254740992', 'limit=1&limit=2',
      'offset=-1', 'offset=1.0', 'offset=', 'offset=null', 'offset=99999999999999999999',
      'format=csv', 'format=', 'format=ARRAY', 'format=array&format=array',
      'sort=name:asc&sort=name:desc', 'page=2', 'fields=expired'
    ]) {
      const reply = await ann.get(`/client/list?${query}`)
      t.match(reply, { status: 400, body: { code: 'ErrParam' } }, query)
      t.match(reply.body.message, `${query.split('=')[0]}: `)
    }
  })

  t.test('4.1 GET /client/list: fields', async (t) => {
    const clientId = await createClient(ann, { name: 'selected' }, { credentials: true })
    const pick = async (person: Person, query: string) => (await list(person, query)).find((client) => client.clientId === clientId)
    for (const limit of [100, 0]) {
      for (const [fields, expected] of [
        ['name', { clientId, name: 'selected' }],
        ['scopes,name,clientId,name', { clientId, scopes: [], name: 'selected' }],
        ['name,userId,confidential', { clientId, name: 'selected' }]
      ] as const) {
        t.equal(JSON.stringify(await pick(ann, `?limit=${limit}&fields=${fields}`)), JSON.stringify(expected), 'in the documented order, without what ann may not see')
      }
      t.match(await pick(ann, `?limit=${limit}&fields=clientSecret`), { clientId, clientSecret: /^\w{16}$/ })
      t.strictSame(await pick(admin, `?limit=${limit}&fields=userId`), { clientId, userId: ann.user_id })
      t.match(await pick(ann, `?limit=${limit}&fields=`), { clientId, name: 'selected', clientSecret: String })
    }
    for (const fields of ['secret', 'name,', ',', 'NAME', ' name', 'constructor']) {
      t.match(await ann.get(`/client/list?fields=${encodeURIComponent(fields)}`), { status: 400, body: { code: 'ErrParam', message: /^fields: unknown field '/ } }, fields)
    }
    t.equal((await ann.delete(`/client/${clientId}`)).status, 204)
  })

  t.test('4.1 GET /client/list, rule 2: the wrapped object and the bare array', async (t) => {
    const wrapped = await ann.get<{ data: Client[] }>('/client/list?format=object')
    t.strictSame(Object.keys(wrapped.body), ['data'])
    t.strictSame((await ann.get('/client/list?format=array')).body, wrapped.body.data)
    t.strictSame((await ann.get('/client/list')).body, wrapped.body)
    t.match(wrapped.headers, { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store', vary: 'Accept' })
    for (const client of wrapped.body.data) {
      t.strictSame(client, (await ann.get<{ data: Client }>(`/client/${client.clientId}`)).body.data, 'the same as GET /client/{clientId}')
    }
    t.strictSame((await signIn(kit).then((nobody) => nobody.get('/client/list?format=array'))).body, [])
  })

  t.test('4.1 GET /client/list, rule 3: userId only for an admin', async (t) => {
    t.ok((await list(ann, '')).every((client) => !('userId' in client)))
    t.ok((await list(admin, `?user=${ann.user_id}`)).every(({ userId }) => userId === ann.user_id))
  })

  t.test('Lists: one record per line for application/x-ndjson', async (t) => {
    const data = await list(ann, '')
    for (const [accept, type] of [
      ['application/x-ndjson', 'application/x-ndjson'],
      ['application/json;q=0.5, application/x-ndjson', 'application/x-ndjson'],
      ['application/json, application/x-ndjson', 'application/json'],
      ['application/x-ndjson;charset=utf-8', 'application/x-ndjson'],
      ['application/json;charset=utf-8, application/x-ndjson;q=0.1', 'application/json'],
      ['Application/X-NDJSON', 'application/x-ndjson'],
      ['application/json;Q=0.1, application/x-ndjson; CHARSET="UTF-8"; q=0.2', 'application/x-ndjson'],
      ['application/json;q=0.1, */*', 'application/x-ndjson'],
      ['application/x-ndjson;q=0, */*', 'application/json'],
      ['*/*', 'application/json'],
      ['text/html', 'application/json'],
      ['', 'application/json'],
      [undefined, 'application/json']
    ] as const) {
      const reply = await kit.inject({ url: '/api/v1/client/list', headers: { ...ann.headers, ...(accept !== undefined && { accept }) } })
      t.match([reply.statusCode, reply.headers['content-type']], [200, `${type}; charset=utf-8`], accept ?? 'no Accept')
      const { body } = reply
      t.strictSame(type === 'application/json' ? JSON.parse(body).data : body.trimEnd().split('\n').map((line) => JSON.parse(line)), data)
    }
    const none = await kit.inject({ url: '/api/v1/client/list?offset=99', headers: { ...ann.headers, accept: 'application/x-ndjson' } })
    t.strictSame([none.body, none.headers['content-length']], ['', '0'])
  })
})
