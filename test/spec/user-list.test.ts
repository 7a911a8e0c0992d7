import t from 'tap'
import type { UserItem } from '../../schemas/user.ts'
import { forEachStore } from '../helpers/build.ts'
import { createUser, signIn, unique } from '../helpers/people.ts'

// In the future of a MongoDB server's clock, whose TTL index would remove expired documents.
const BEGIN = Date.UTC(2126, 10, 21, 2, 51)
const EXPIRY = '2130-01-01T00:00:00.000Z'

await forEachStore(t, async (t, build) => {
  const kit = await build(t, { time: BEGIN })
  const admin = await signIn(kit, { roles: ['admin'] })
  const mark = unique('m').replaceAll('-', '')

  /** Created in this order, a second apart. */
  const made = [
    { account: `${mark}c`, name: 'b' },
    { account: `${mark}-a`, name: 'B', expired_at: EXPIRY },
    { account: `${mark}B`, name: 'a' },
    { account: `${mark}@example.com`, name: 'ä', expired_at: EXPIRY },
    { account: `${mark}0`, name: '' }
  ]
  const ids: string[] = []
  const times: string[] = []
  for (const { account, name, expired_at } of made) {
    kit.clock.advance(1000)
    times.push(new Date(kit.clock.now()).toISOString())
    ids.push(await createUser(admin, { account, name, info: { of: name } }, expired_at === undefined ? {} : { expired_at }))
  }
  kit.clock.advance(1000)
  const last = new Date(kit.clock.now()).toISOString()
  await admin.patch(`/user/${ids[0]}`, { disable: true })

  async function list (query: string): Promise<UserItem[]> {
    const { status, body } = await admin.get<{ data: UserItem[] }>(`/user/list?contains=${mark}${query}`)
    if (status !== 200) throw new Error(`GET /user/list answered ${status}`)
    return body.data
  }
  /** The listed users as indexes of `made`. */
  const order = async (query: string) => (await list(query)).map(({ user_id }) => ids.indexOf(user_id))

  t.test('4.3 GET /user/list: the items', async (t) => {
    t.strictSame(await list('&sort=created:asc&limit=2'), [
      { user_id: ids[0], account: made[0]!.account, created_at: times[0], modified_at: last, verified_at: times[0], roles: {}, name: 'b', info: { of: 'b' } },
      { user_id: ids[1], account: made[1]!.account, created_at: times[1], modified_at: times[1], roles: {}, name: 'B', info: { of: 'B' } }
    ], 'verified_at is left out when unset')
  })

  t.test('4.3 GET /user/list: fields', async (t) => {
    const pick = async (fields: string) => (await list(`&sort=created:asc&limit=2&fields=${fields}`)).map(({ expired_at, disabled_at }) => ({ expired_at, disabled_at }))
    for (const [fields, expected] of [
      ['', [{ expired_at: undefined, disabled_at: undefined }, { expired_at: undefined, disabled_at: undefined }]],
      ['expired', [{ expired_at: null, disabled_at: undefined }, { expired_at: EXPIRY, disabled_at: undefined }]],
      ['disabled', [{ expired_at: undefined, disabled_at: last }, { expired_at: undefined, disabled_at: null }]],
      ['expired,disabled', [{ expired_at: null, disabled_at: last }, { expired_at: EXPIRY, disabled_at: null }]],
      ['disabled,password,,expired,disabled,Expired', [{ expired_at: null, disabled_at: last }, { expired_at: EXPIRY, disabled_at: null }]],
      ['password,EXPIRED, disabled', [{ expired_at: undefined, disabled_at: undefined }, { expired_at: undefined, disabled_at: undefined }]]
    ] as const) t.strictSame(await pick(encodeURIComponent(fields)), expected, fields)
  })

  t.test('4.3 GET /user/{userId}: fields', async (t) => {
    const pick = async (index: number, fields: string) => {
      const { data } = (await admin.get<{ data: UserItem }>(`/user/${ids[index]}${fields}`)).body
      return Object.fromEntries(['expired_at', 'disabled_at'].filter((name) => name in data).map((name) => [name, data[name as keyof UserItem]]))
    }
    for (const fields of ['', '?fields=', '?fields=password,Disabled']) t.strictSame(await pick(0, fields), {}, fields)
    t.strictSame(await pick(0, '?fields=disabled'), { disabled_at: last })
    t.strictSame(await pick(1, '?fields=expired,disabled'), { expired_at: EXPIRY, disabled_at: null })
    t.match(await admin.get(`/user/${ids[0]}?field=disabled`), { status: 400, body: { message: /^field: / } })
  })

  t.test('4.3 GET /user/list: sort, by code point; a missing time first ascending, last descending', async (t) => {
    for (const [sort, expected] of [
      ['', [1, 4, 3, 2, 0]],
      ['&sort=', [1, 4, 3, 2, 0]],
      ['&sort=account:asc', [1, 4, 3, 2, 0]],
      ['&sort=account:desc', [0, 2, 3, 4, 1]],
      ['&sort=created:asc', [0, 1, 2, 3, 4]],
      ['&sort=created:desc', [4, 3, 2, 1, 0]],
      ['&sort=modified:asc', [1, 2, 3, 4, 0]],
      ['&sort=modified:desc', [0, 4, 3, 2, 1]],
      ['&sort=name:asc', [4, 1, 2, 0, 3]],
      ['&sort=name:desc', [3, 0, 2, 1, 4]],
      ['&sort=verified:asc,created:asc', [1, 3, 0, 2, 4]],
      ['&sort=verified:asc,created:desc', [3, 1, 0, 2, 4]],
      ['&sort=verified:desc,created:asc', [4, 2, 0, 1, 3]],
      ['&sort=verified:desc,account:desc', [4, 2, 0, 3, 1]]
    ] as const) t.strictSame(await order(sort), expected, sort)
  })

  t.test('4.3 GET /user/list: sort errors give ErrParam', async (t) => {
    for (const [sort, cause] of [
      ['foo:asc', 'unknown key \'foo\''],
      ['user_id:asc', 'unknown key'],
      ['password:asc', 'unknown key'],
      ['created_at:asc', 'unknown key'],
      ['constructor:asc', 'unknown key'],
      ['name', 'no direction'],
      ['name:sideways', 'unknown direction'],
      ['name:asc:desc', 'more than two parts'],
      ['name:asc,created:desc,name:asc', 'given twice']
    ] as const) {
      const reply = await admin.get(`/user/list?sort=${sort}`)
      t.match(reply, { status: 400, body: { code: 'ErrParam' } }, sort)
      t.match(reply.body.message, cause)
    }
  })

  t.test('4.3 GET /user/list: account and contains', async (t) => {
    const found = async (query: string) => (await admin.get<{ data: UserItem[] }>(`/user/list?${query}`)).body.data.map(({ user_id }) => ids.indexOf(user_id))
    for (const [query, expected] of [
      [`account=${mark}b`, [2]],
      [`account=${mark}B`, [2]],
      [`account=${mark}`, []],
      [`contains=${mark.toUpperCase()}`, [1, 4, 3, 2, 0]],
      [`contains=${mark}b`, [2]],
      [`account=${mark}b&contains=${mark}`, [2]],
      [`account=&contains=${mark}0`, [4]],
      [`account=${mark}c&contains=`, [0]]
    ] as const) t.strictSame(await found(query), expected, query)
    const everybody = (await admin.get<{ data: UserItem[] }>('/user/list?account=&contains=&fields=&sort=')).body.data
    t.ok(everybody.some(({ user_id }) => user_id === admin.user_id), 'empty ones count as not given')
  })

  t.test('4.3 GET /user/list: offset, limit and format', async (t) => {
    for (const [query, expected] of [
      ['&offset=1&limit=2', [4, 3]],
      ['&offset=4', [0]],
      ['&offset=5', []],
      ['&limit=0', [1, 4, 3, 2, 0]],
      ['&limit=0&offset=3', [2, 0]]
    ] as const) t.strictSame(await order(query), expected, query)
    t.strictSame((await admin.get(`/user/list?contains=${mark}&format=array`)).body, await list('&format=object'))
    for (const query of ['limit=-1', 'limit=ten', 'offset=1.5', 'offset=', 'format=csv', 'format=', 'user=x', 'sort=name:asc&sort=name:asc']) {
      t.match(await admin.get(`/user/list?${query}`), { status: 400, body: { code: 'ErrParam' } }, query)
    }
  })

  t.test('Lists: one record per line for application/x-ndjson', async (t) => {
    const { body, headers } = await kit.inject({
      url: `/api/v1/user/list?contains=${mark}&fields=expired`, headers: { ...admin.headers, accept: 'application/x-ndjson' }
    })
    t.equal(headers['content-type'], 'application/x-ndjson; charset=utf-8')
    t.strictSame(body.trimEnd().split('\n').map((line) => JSON.parse(line)), await list('&fields=expired'))
  })
})
