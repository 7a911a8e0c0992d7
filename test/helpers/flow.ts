import type { Test } from 'tap'
import type { Client } from '../../schemas/client.ts'
import type { TestKit } from '../../testing/index.ts'
import { callAs, signIn, unique } from './people.ts'

/**
 * Checks the main flows of the API, and the responses that a host's own settings are most likely to change.
 * @param prefix the plugin's prefix
 */
export async function runFlow (t: Test, kit: TestKit, prefix = ''): Promise<void> {
  const base = `${prefix}/api/v1`
  const as = async (request: Parameters<TestKit['mint']>[0]) => {
    const person = await signIn(kit, request)
    return { ...person, ...callAs(kit, person.headers, base) }
  }
  const account = unique('flow')
  const admin = await as({ roles: ['admin'] })
  const created = await admin.post<{ data: { user_id: string } }>('/user', { data: { account, password: 'p', info: { deep: { a: [1, '2', null] } } } })
  t.equal(created.status, 200, 'POST /user')
  const { user_id } = created.body.data
  const ann = await as({ user: account, refresh: true })

  t.strictSame((await ann.get('/auth/tokeninfo')).body.data, { user_id, account, name: '', roles: {}, client_id: ann.client_id, scopes: [] })
  t.match(await ann.patch('/user', { data: { name: 'Ann' } }), { status: 204, body: null })
  const profile = await ann.get<{ data: Record<string, unknown> }>('/user')
  t.strictSame(Object.keys(profile.body.data).sort(), ['account', 'created_at', 'info', 'modified_at', 'name', 'roles', 'verified_at'])
  t.match(profile.body.data, { account, name: 'Ann', info: { deep: { a: [1, '2', null] } } })
  t.match(profile.headers, { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' })

  const client = { redirectUris: ['https://b.example/', 'https://a.example/'], scopes: ['b', 'a', 'b'], name: 'n' }
  const made = await ann.post<{ data: { clientId: string } }>('/client', { data: client, credentials: true })
  t.equal(made.status, 200, 'POST /client')
  const { clientId } = made.body.data
  t.match((await ann.get<{ data: Client }>(`/client/${clientId}`)).body.data, {
    clientId, clientSecret: /^[0-9A-Za-z]{16}$/, redirectUris: ['https://a.example/', 'https://b.example/'], scopes: ['a', 'b'], name: 'n', userId: undefined
  })
  t.match(await ann.patch(`/client/${clientId}`, { data: { image: null }, regen_secret: true }), { status: 204, body: null })
  t.strictSame((await ann.get('/client/count')).body, { data: { count: 1 } })
  for (const query of ['', '?format=object', '?limit=1&offset=0&sort=name:desc&user=']) {
    t.match((await ann.get<{ data: Client[] }>(`/client/list${query}`)).body, { data: [{ clientId }] }, query)
  }
  t.match((await ann.get('/client/list?format=array')).body, [{ clientId }])
  t.match((await admin.get(`/user/list?account=${account}&fields=expired`)).body, { data: [{ user_id, account, expired_at: null }] })

  const error = (statusCode: number, code: string, title: string) => ({ status: statusCode, body: { statusCode, code, error: title, message: String } })
  const wrong = error(400, 'ErrParam', 'Bad Request')
  for (const [name, reply] of [
    ['a number for a text', await ann.patch('/user', { data: { name: 5 } })],
    ['a text for a boolean', await ann.post('/client', { data: client, credentials: 'true' })],
    ['a text for an array', await ann.post('/client', { data: { ...client, scopes: 'a' } })],
    ['null for a text', await ann.patch('/user', { data: { name: null } })],
    ['an unknown field', await ann.patch('/user', { data: { name: 'x', colour: 'red' } })],
    ['an unknown parameter', await ann.get('/client/count?colour=red')],
    ['a text for an integer', await ann.get('/client/list?limit=ten')],
    ['a __proto__ key', await ann.send({ method: 'PATCH', url: '/user', headers: { 'content-type': 'application/json' }, payload: '{"data":{"info":{"__proto__":{}}}}' })],
    ['half a document', await ann.send({ method: 'PATCH', url: '/user', headers: { 'content-type': 'application/json' }, payload: '{"data"' })]
  ] as const) t.match(reply, wrong, name)
  t.match(await ann.send({ method: 'PATCH', url: '/user', headers: { 'content-type': 'text/plain' }, payload: '{}' }), error(415, 'ErrParam', 'Unsupported Media Type'))
  t.match(await ann.patch('/user', { data: { name: 'x'.repeat(70_000) } }), error(413, 'ErrParam', 'Payload Too Large'))
  t.match(await callAs(kit, {}, base).get('/user'), { ...error(401, 'ErrUnknown', 'Unauthorized'), headers: { 'www-authenticate': 'Bearer' } })
  t.match(await ann.get('/user/count'), error(403, 'ErrPerm', 'Forbidden'))
  t.match(await ann.get('/client/none'), error(404, 'ErrNotFound', 'Not Found'))
  t.match(await ann.get('/no/such/route'), error(404, 'ErrNotFound', 'Not Found'))
  t.match(await admin.post('/user', { data: { account, password: 'p' } }), error(409, 'USER_EXIST', 'Conflict'))

  t.match(await ann.delete(`/client/${clientId}`), { status: 204, body: null })
  t.match(await ann.send({ method: 'POST', url: '/auth/logout', headers: { 'content-type': 'application/json' } }), { status: 204, body: null })
  t.match(await ann.get('/user'), { status: 401 })
  t.match(await admin.delete(`/user/${user_id}`), { status: 204, body: null })
}
