import t from 'tap'
import type { Client } from '../../schemas/client.ts'
import type { User } from '../../schemas/user.ts'
import { forEachStore } from '../helpers/build.ts'
import { startBridge } from '../helpers/bridge.ts'
import { type Api, type Reply, createClient, createUser, signIn } from '../helpers/people.ts'

// In the future of a MongoDB server's clock, whose TTL index would remove expired documents.
const BEGIN = Date.UTC(2126, 10, 21, 2, 51)

/** The links of a page, as queries. */
function readLinks (link: unknown): { next?: string, prev?: string } {
  if (link === undefined) return {}
  const links = String(link).split(', ').map((one) => {
    const [, query = '', rel] = /^<\?([\w=&%*.+-]+)>; rel="(next|prev)"$/.exec(one) ?? []
    if (rel === undefined) throw new Error(`what is this link: ${one}`)
    return [rel, query]
  })
  return Object.fromEntries(links)
}

/** The cursor of the next page, with the rest of its query. */
function readLink (link: unknown): { query: string, after: string } | undefined {
  const { next: query } = readLinks(link)
  return query === undefined ? undefined : { query, after: new URLSearchParams(query).get('after')! }
}

/** The pages of a list, each linked from the previous one. */
async function walk<T> (api: Api, path: string, first: string): Promise<T[][]> {
  const pages: T[][] = []
  for (let query: string | undefined = first; query !== undefined;) {
    const { status, headers, body }: Reply<{ data: T[] }> = await api.get(`${path}?${query}`)
    if (status !== 200) throw new Error(`${path}?${query} answered ${status}: ${JSON.stringify(body)}`)
    pages.push(body.data)
    if (pages.length > 50) throw new Error('the walk has no end')
    query = readLink(headers.link)?.query
  }
  return pages
}

const CLIENT_SORTS = ['', ...['name', 'created', 'modified'].flatMap((key) => [`${key}:asc`, `${key}:desc`]), 'name:asc,created:desc', 'modified:desc,name:asc']
const USER_SORTS = ['', ...['account', 'created', 'modified', 'verified', 'name'].flatMap((key) => [`${key}:asc`, `${key}:desc`]), 'verified:desc,name:asc', 'name:asc,verified:desc']

await forEachStore(t, async (t, build) => {
  const kit = await build(t, { time: BEGIN })
  const admin = await signIn(kit, { roles: ['admin'] })
  const ann = await signIn(kit)
  const bob = await signIn(kit)
  const NAMES = ['b', 'a', 'a', 'Ä & <\u{1F34F}>', '', 'a', 'b?', 'x'.repeat(256), '\u{10FFFF}'.repeat(256), 'a']
  for (const [index, name] of NAMES.entries()) {
    if (index % 3 === 0) kit.clock.advance(1000)
    await createClient(ann, { name })
    await createClient(bob, { name: `bob's ${index}` })
    await createUser(admin, { account: `crowd${index}`, name: NAMES[index]! }, index % 4 === 1 ? { expired_at: '2999-01-01T00:00:00Z' } : {})
  }

  async function whole<T> (api: Api, path: string, query: string): Promise<T[]> {
    return (await api.get<{ data: T[] }>(`${path}?${query}&limit=0`)).body.data
  }

  t.test('following the links gives the whole list, for every sort', async (t) => {
    for (const [api, path, filter, sorts] of [
      [ann, '/client/list', '', CLIENT_SORTS],
      [admin, '/client/list', '', CLIENT_SORTS],
      [admin, '/client/list', `user=${bob.user_id}`, CLIENT_SORTS],
      [admin, '/user/list', 'fields=expired%2Cdisabled', USER_SORTS],
      [admin, '/user/list', 'contains=crowd', USER_SORTS]
    ] as const) {
      for (const sort of sorts) {
        const query = `${filter}${filter === '' ? '' : '&'}sort=${sort}`
        const pages = await walk(api, path, `${query}&limit=3`)
        const all = await whole(api, path, query)
        t.ok(all.length >= NAMES.length)
        t.strictSame(pages.flat(), all, `${path}?${query}`)
        t.equal(pages.length, Math.ceil(all.length / 3), 'the last page has no next one, full or not')
      }
    }
  })

  t.test('and so do the links back, from the last page to the first', async (t) => {
    for (const [api, path, filter, sorts] of [
      [ann, '/client/list', '', CLIENT_SORTS],
      [admin, '/user/list', 'fields=expired%2Cdisabled', USER_SORTS]
    ] as const) {
      for (const sort of sorts) {
        const query = `${filter}${filter === '' ? '' : '&'}sort=${sort}`
        const all = await whole<{ clientId?: string, user_id?: string }>(api, path, query)
        const forward: { data: unknown[], query: string }[] = []
        for (let next: string | undefined = `${query}&limit=3`; next !== undefined;) {
          const { body, headers }: Reply<{ data: unknown[] }> = await api.get(`${path}?${next}`)
          forward.push({ data: body.data, query: next })
          next = readLinks(headers.link).next
        }
        const back: unknown[][] = []
        for (let prev: string | undefined = forward.at(-1)!.query; prev !== undefined;) {
          const { status, body, headers }: Reply<{ data: unknown[] }> = await api.get(`${path}?${prev}`)
          t.equal(status, 200)
          back.unshift(body.data)
          const links = readLinks(headers.link)
          if (back.length > 1) {
            t.strictSame((await api.get<{ data: unknown[] }>(`${path}?${links.next}`)).body.data, back[1], 'forth and back')
          }
          prev = links.prev
        }
        t.strictSame(back, forward.map(({ data }) => data), `${path}?${query}`)
        t.strictSame(back.flat(), all)
      }
    }
  })

  t.test('a page before a record that has few before it, or none', async (t) => {
    const all = await whole<{ clientId: string }>(ann, '/client/list', '')
    const { headers } = await ann.get('/client/list?limit=2')
    const second = await ann.get<{ data: { clientId: string }[] }>(`/client/list?${readLinks(headers.link).next}`)
    const { prev = '' } = readLinks(second.headers.link)
    const wide = await ann.get<{ data: unknown[] }>(`/client/list?${prev.replace('limit=2', 'limit=7')}`)
    t.strictSame(wide.body.data, all.slice(0, 2))
    t.strictSame(Object.keys(readLinks(wide.headers.link)), ['next'])
    const first = await ann.get<{ data: { clientId: string }[] }>('/client/list?limit=1&offset=1')
    t.strictSame(Object.keys(readLinks(first.headers.link)), ['next', 'prev'], 'after an offset there are some before')
    const back = await ann.get<{ data: unknown[] }>(`/client/list?${readLinks(first.headers.link).prev}`)
    t.strictSame(back.body.data, all.slice(0, 1))
    t.notOk('prev' in readLinks(back.headers.link))
    const cursor = new URLSearchParams(readLinks(back.headers.link).next).get('after')!
    const none = await ann.get<{ data: unknown[] }>(`/client/list?limit=1&before=${cursor}`)
    t.strictSame([none.body.data, none.headers.link], [[], undefined])
    for (const [query, message] of [
      [`before=${cursor}&after=${cursor}`, 'before: cannot be given together with after'],
      [`before=${cursor}&offset=1`, 'before: cannot be given together with offset'],
      [`before=${cursor}&limit=0`, 'before: needs a limit from 1 to 100'],
      [`before=${cursor}&limit=101`, 'before: needs a limit from 1 to 100'],
      [`before=${cursor}&sort=name:desc`, 'before: is a cursor of another sort'],
      ['before=x', 'before: is not a cursor of this list']
    ] as const) t.match(await ann.get(`/client/list?${query}`), { status: 400, body: { message } }, query)
    t.match(await ann.get(`/client/list?limit=2&before=&after=${cursor}&offset=0`), { status: 200 }, 'empty means absent')
  })

  t.test('there is a link exactly when more records follow, with the rest of the query', async (t) => {
    const count = NAMES.length
    for (const [query, next] of [
      ['', undefined],
      ['limit=100', undefined],
      [`limit=${count}`, undefined],
      [`limit=${count - 1}`, `limit=${count - 1}`],
      ['limit=1', 'limit=1'],
      [`limit=3&offset=${count - 3}`, undefined],
      [`limit=3&offset=${count - 4}`, 'limit=3'],
      ['limit=3&offset=1000', undefined],
      ['limit=0', undefined],
      ['format=array&limit=2&sort=name:desc&user=a%20%26b', 'format=array&limit=2&sort=name%3Adesc&user=a+%26b']
    ] as const) {
      const { headers } = await ann.get(`/client/list?${query}`)
      t.equal(readLink(headers.link)?.query.replace(/&after=[\w-]+$/, ''), next, query)
    }
    const lines = await kit.inject({ url: '/api/v1/client/list?limit=2', headers: { ...ann.headers, accept: 'application/x-ndjson' } })
    t.equal(lines.body.trimEnd().split('\n').length, 2)
    t.ok(readLink(lines.headers.link), 'in every format')
    const { paths } = (await kit.inject('/openapi.json')).json()
    for (const path of ['/api/v1/client/list', '/api/v1/user/list']) {
      t.match(paths[path].get.parameters.find(({ name }: { name: string }) => name === 'after'), { in: 'query', schema: { type: 'string' } })
      t.match(paths[path].get.responses[200].headers.Link, { schema: { type: 'string' }, description: /rel="next".*rel="prev"/s }, 'OpenAPI knows of it')
    }
  })

  t.test('a page longer than 100 is streamed, and has no link; it may start at a cursor', async (t) => {
    const { headers } = await ann.get('/client/list?limit=4')
    const { after } = readLink(headers.link)!
    for (const query of [`limit=0&after=${after}`, `limit=101&after=${after}`]) {
      const reply = await ann.get<{ data: Client[] }>(`/client/list?${query}`)
      t.strictSame(reply.body.data, (await whole<Client>(ann, '/client/list', '')).slice(4))
      t.notOk(reply.headers.link)
    }
  })

  t.test('any value other than a cursor of this list and sort gives ErrParam', async (t) => {
    const { after } = readLink((await ann.get('/client/list?limit=2&sort=created:asc')).headers.link)!
    const [version, sort, values, id] = JSON.parse(Buffer.from(after, 'base64url').toString()) as [number, string, string[], string]
    const forge = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const user = readLink((await admin.get('/user/list?limit=2&sort=created:asc')).headers.link)!
    t.equal((await ann.get(`/client/list?limit=2&sort=created:asc&after=${after}`)).status, 200)
    t.equal((await ann.get(`/client/list?limit=2&sort=created:asc&offset=0&after=${after}`)).status, 200, 'the default offset, which generated clients send')
    for (const [label, query] of Object.entries({
      'another sort': `sort=created:desc&after=${after}`,
      'the default sort': `after=${after}`,
      'a sort with one key more': `sort=created:asc,name:asc&after=${after}`,
      'the user list': `sort=created:asc&after=${user.after}`,
      'with an offset': `sort=created:asc&offset=1&after=${after}`,
      twice: `sort=created:asc&after=${after}&after=${after}`,
      'cut short': `sort=created:asc&after=${after.slice(0, -2)}`,
      'with a character that is none of its': `sort=created:asc&after=${after}!`,
      'with padding': `sort=created:asc&after=${after}=`,
      'too long': `sort=created:asc&after=${'A'.repeat(4097)}`,
      'no JSON': `sort=created:asc&after=${Buffer.from('[').toString('base64url')}`,
      'no array': `sort=created:asc&after=${forge({ version, sort, values, id })}`,
      null: `sort=created:asc&after=${forge(null)}`,
      'another version': `sort=created:asc&after=${forge([2, sort, values, id])}`,
      'no values': `sort=created:asc&after=${forge([version, sort, null, id])}`,
      'too many values': `sort=created:asc&after=${forge([version, sort, [...values, 'x'], id])}`,
      'an operator': `sort=created:asc&after=${forge([version, sort, [{ $gt: '' }], id])}`,
      'a number': `sort=created:asc&after=${forge([version, sort, [1], id])}`,
      'an id that is none': `sort=created:asc&after=${forge([version, sort, values, { $gt: '' }])}`,
      'an id that is too long': `sort=created:asc&after=${forge([version, sort, values, 'x'.repeat(129)])}`
    })) {
      const reply = await ann.get(`/client/list?${query}`)
      t.match(reply, { status: 400, body: { code: 'ErrParam' } }, label)
      t.match(reply.body.message, /^after: /, label)
    }
    t.strictSame((await ann.get('/client/list?after=&offset=1')).body, (await ann.get('/client/list?offset=1')).body, 'an empty one counts as not given')
  })

  t.test('a cursor grants no access: its user sees only their own records', async (t) => {
    const reply = await admin.get<{ data: Client[] }>('/client/list?limit=2&sort=name:desc')
    const { after } = readLink(reply.headers.link)!
    const seen = JSON.stringify(reply.body.data)
    const [, , values, id] = JSON.parse(Buffer.from(after, 'base64url').toString()) as [number, string, string[], string]
    for (const value of [...values, id]) t.ok(seen.includes(JSON.stringify(value)), 'it holds nothing that the page did not show')
    const found = (await bob.get<{ data: Client[] }>(`/client/list?sort=name:desc&after=${after}`)).body.data
    t.ok(found.length > 0)
    const own = (await whole<Client>(bob, '/client/list', 'sort=name:desc')).map(({ clientId }) => clientId)
    t.ok(found.every(({ clientId, userId }) => own.includes(clientId) && userId === undefined))
    const forged = Buffer.from(JSON.stringify([1, 'name:asc', ['\u0000\ud800\'"$'], ''])).toString('base64url')
    const all = await whole<Client>(bob, '/client/list', '')
    t.strictSame((await bob.get<{ data: Client[] }>(`/client/list?after=${forged}`)).body.data, all, 'a forged one too')
  })

  t.test('a record removed between two pages hides no other', async (t) => {
    const first = await admin.get<{ data: User[] }>('/user/list?contains=crowd&limit=4')
    for (const { user_id } of first.body.data) await admin.delete(`/user/${user_id}`)
    const rest = await walk<User>(admin, '/user/list', readLink(first.headers.link)!.query)
    t.strictSame(rest.flat().map(({ account }) => account), NAMES.map((_, index) => `crowd${index}`).slice(4))
  })

  t.test('the bridge: the same links, at its own path, for JSON and CSV', async (t) => {
    const { url: upstream } = await kit.listen()
    const { url } = await startBridge(t, { upstream })
    const names = (await whole<Client>(ann, '/client/list', '')).map(({ clientId }) => clientId)
    for (const [query, accept, read] of [
      ['limit=4', 'application/json', (text: string) => JSON.parse(text).data.map(({ clientId }: Client) => clientId)],
      ['limit=4&format=csv', '*/*', readCsv],
      ['limit=4', 'text/csv', readCsv]
    ] as const) {
      const seen: string[][] = []
      for (let next: string | undefined = `${url}/list?${query}`; next !== undefined;) {
        const response: Response = await fetch(next, { headers: { ...ann.headers, accept } })
        t.equal(response.status, 200)
        seen.push(read(await response.text()))
        // As a client does: the reference is relative to the requested URL.
        const [, reference] = /^<([^>]*)>; rel="next"/.exec(response.headers.get('link') ?? '') ?? []
        next = reference === undefined || seen.length > 9 ? undefined : new URL(reference, response.url).href
      }
      t.strictSame(seen.map(({ length }) => length), [4, 4, 2])
      t.strictSame(seen.flat(), names, `${query} as ${accept}`)
    }
  })
})

/** The ids in our CSV: each row starts with one. */
function readCsv (text: string): string[] {
  if (!text.startsWith('\uFEFFclientId,') && !text.startsWith('clientId,')) throw new Error('this is not our CSV')
  return text.trimEnd().split('\n').slice(1).map((row) => row.split(',')[0]!)
}
