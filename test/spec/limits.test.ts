import t from 'tap'
import { forEachStore } from '../helpers/build.ts'
import { createClient, createUser, signIn, unique } from '../helpers/people.ts'

const WRONG = { status: 400, body: { statusCode: 400, code: 'ErrParam', error: 'Bad Request' } }

/** `count` different items. */
function items (count: number, make: (index: string) => string): string[] {
  return Array.from({ length: count }, (_, index) => make(String(index).padStart(3, '0')))
}

/** A URI of this many characters. */
const uri = (length: number) => 'https://a.example/'.padEnd(length, 'p')

/** Free-form JSON of this many bytes. */
const info = (bytes: number) => ({ k: 'v'.repeat(bytes - '{"k":""}'.length) })

/** Objects nested to this many levels. */
function nest (levels: number): object {
  return levels === 1 ? {} : { in: nest(levels - 1) }
}

/** Each limit: the field, the largest accepted value, and the smallest refused one. */
const CLIENT_LIMITS: [string, object, object][] = [
  ['redirectUris', { redirectUris: items(100, (n) => `https://a.example/${n}`) }, { redirectUris: items(101, (n) => `https://a.example/${n}`) }],
  ['redirectUris[0]', { redirectUris: [uri(2048)] }, { redirectUris: [uri(2049)] }],
  ['scopes', { scopes: items(100, (n) => n) }, { scopes: items(101, (n) => n) }],
  ['scopes', { scopes: items(100, () => 'same') }, { scopes: items(101, () => 'same') }],
  ['scopes[0]', { scopes: ['s'.repeat(128)] }, { scopes: ['s'.repeat(129)] }],
  ['name', { name: 'n'.repeat(256) }, { name: 'n'.repeat(257) }],
  ['name', { name: '\u{1F600}'.repeat(256) }, { name: '\u{1F600}'.repeat(257) }],
  ['name', { name: 'half a pair \ud83d\ude00' }, { name: 'half a pair \ud800' }],
  ['name', { name: 'Intranet' }, { name: 'Intra\u202enet' }],
  ['name', { name: 'two words' }, { name: 'two\nlines' }],
  ['name', { name: 'می\u200cخواهم' }, { name: 'Intra\u200bnet' }],
  ['image', { image: uri(2048) }, { image: uri(2049) }],
  ['image', { image: 'HTTP://a.example/i' }, { image: 'ftp://a.example/i' }],
  ['image', { image: 'https://a.example/i#top' }, { image: 'javascript:alert(1)' }],
  ['image', { image: 'https://a.example' }, { image: '' }],
  ['image', { image: 'https://a.example' }, { image: '/i.png' }]
]

const USER_LIMITS: [string, object, object][] = [
  ['password', { password: 'p'.repeat(1024) }, { password: 'p'.repeat(1025) }],
  ['password', { password: '\u{1F600}'.repeat(1024) }, { password: '\u{1F600}'.repeat(1025) }],
  ['password', { password: ' ' }, { password: '\udfff' }],
  ['name', { name: 'n'.repeat(256) }, { name: 'n'.repeat(257) }],
  ['info', { info: info(16 * 1024) }, { info: info(16 * 1024 + 1) }],
  ['info', { info: { ü: 'ü'.repeat(8 * 1024 - 5) } }, { info: { ü: 'ü'.repeat(8 * 1024 - 4) } }],
  ['info', { info: { '\u0001': ['\u0000', 1e300, -0.5, true, null, {}] } }, { info: { a: '\ud800' } }],
  ['info', { info: { a: { ' ': 1 } } }, { info: { a: { '\u0000': 1 } } }],
  ['info', { info: nest(32) }, { info: nest(33) }]
]

await forEachStore(t, async (t, build) => {
  const kit = await build(t, { rateLimit: false })
  const admin = await signIn(kit, { roles: ['admin'] })
  const ann = await signIn(kit)
  const base = { redirectUris: [], scopes: [], name: 'n' }

  t.test('Limits: a client, when created and when changed', async (t) => {
    const clientId = await createClient(ann)
    for (const [field, good, bad] of CLIENT_LIMITS) {
      t.match(await ann.post('/client', { data: { ...base, ...good } }), { status: 200 }, `${field}: POST at the limit`)
      t.match(await ann.patch(`/client/${clientId}`, { data: good }), { status: 204 }, `${field}: PATCH at the limit`)
      const { body: { data: before } } = await ann.get(`/client/${clientId}`)
      for (const reply of [await ann.post('/client', { data: { ...base, ...bad } }), await ann.patch(`/client/${clientId}`, { data: bad })]) {
        t.match(reply, WRONG, `${field}: beyond the limit`)
        t.match(reply.body.message, `${field}: `)
      }
      t.strictSame((await ann.get(`/client/${clientId}`)).body.data, before)
      for (const [key, value] of Object.entries(good)) {
        t.strictSame((before as Record<string, unknown>)[key], Array.isArray(value) ? [...new Set(value)] : value, `${field} is returned unchanged`)
      }
    }
  })

  t.test('Limits: a user, when created and when changed', async (t) => {
    const user_id = await createUser(admin)
    for (const [field, good, bad] of USER_LIMITS) {
      t.match(await admin.post('/user', { data: { account: unique('u'), password: 'p', ...good } }), { status: 200 }, `${field}: POST at the limit`)
      t.match(await admin.patch(`/user/${user_id}`, { data: good }), { status: 204 }, `${field}: PATCH at the limit`)
      const own = await signIn(kit, { user: user_id })
      for (const reply of [
        await admin.post('/user', { data: { account: unique('u'), password: 'p', ...bad } }),
        await admin.patch(`/user/${user_id}`, { data: bad }),
        await own.patch('/user', { data: bad })
      ]) {
        t.match(reply, WRONG, `${field}: beyond the limit`)
        t.match(reply.body.message, `${field}: `)
      }
      t.match((await admin.get(`/user/${user_id}`)).body.data, Object.fromEntries(Object.entries(good).filter(([key]) => key !== 'password')))
    }
  })

  t.test('Limits: an account of 254 characters', async (t) => {
    for (const [account, status] of [['a'.repeat(254), 200], ['b'.repeat(255), 400]] as const) {
      t.match(await admin.post('/user', { data: { account, password: 'p' } }), { status })
    }
  })

  t.test('Limits: roles', async (t) => {
    const user_id = await createUser(admin)
    const many = (count: number) => Object.fromEntries(items(count, (n) => `role${n}`).map((name) => [name, true]))
    t.match(await admin.patch(`/user/${user_id}`, { data: { roles: many(100) } }), { status: 204 })
    t.match(await admin.patch(`/user/${user_id}`, { data: { roles: many(101) } }), WRONG)
    t.match(await admin.patch(`/user/${user_id}`, { data: { roles: { clerk: info(16 * 1024) } } }), WRONG)
  })

  t.test('Limits: a body of 64 KiB', async (t) => {
    const body = (bytes: number) => {
      const json = JSON.stringify({ data: { ...base, name: 'big' } })
      return json + ' '.repeat(bytes - json.length)
    }
    const post = (payload: string, headers = {}) => ann.send({ method: 'POST', url: '/client', payload, headers: { 'content-type': 'application/json', ...headers } })
    t.match(await post(body(64 * 1024)), { status: 200 })
    t.match(await post(body(64 * 1024 + 1)), { status: 413, body: { statusCode: 413, code: 'ErrParam', error: 'Payload Too Large' } })
  })

  t.test('Limits: ids and query parameters', async (t) => {
    for (const path of [`/client/list?sort=${'a'.repeat(1025)}`, `/client/count?user=${'a'.repeat(129)}`]) {
      t.match(await ann.get(path), WRONG)
    }
    for (const path of [`/user/count?account=${'a'.repeat(1025)}`, `/user/list?contains=${'a'.repeat(1025)}`]) t.match(await admin.get(path), WRONG)
    const replies = await Promise.all([100, 128, 129, 1536, 1537].map((length) => ann.get(`/client/${'a'.repeat(length)}`)))
    t.strictSame(replies.map(({ status, body }) => [status, body.code]), [
      [404, 'ErrNotFound'], [404, 'ErrNotFound'], [400, 'ErrParam'], [400, 'ErrParam'], [414, 'ErrParam']
    ])
    t.equal(replies.at(-1)!.body.message, 'path: an id in it is too long')
    t.equal((await ann.get(`/client/${encodeURIComponent('\u{10ffff}'.repeat(128))}`)).status, 404, 'characters count, and not their bytes')
  })

  t.test('8 Limits: the random part of ids, the secret and the salt', async (t) => {
    const clientId = await createClient(ann, {}, { credentials: true })
    const user_id = await createUser(admin)
    t.match([clientId, user_id], [/^.{26}[0-9A-Za-z]{8}$/, /^.{26}[0-9A-Za-z]{8}$/])
    t.match((await ann.get(`/client/${clientId}`)).body.data, { clientSecret: /^[0-9A-Za-z]{16}$/ })
    const record = await kit.app.identity.store.collection<{ id: string, password: string }>('users').get(user_id)
    t.match(record?.password, /^[0-9A-Za-z]{8}\$2/)
  })
})
