import t, { type Test } from 'tap'
import type { ClientRecord } from '../../lib/records/client.ts'
import { type UserRecord, createUserRecord } from '../../lib/records/user.ts'
import type { Store } from '../../lib/store/port.ts'
import { toUserWords } from '../../lib/words.ts'
import type { FindHit } from '../../schemas/answers.ts'
import type { TestKit } from '../../testing/index.ts'
import { build as buildApp, forEachStore } from '../helpers/build.ts'
import { type Api, callAs, createClient, createUser, signIn, unique } from '../helpers/people.ts'

t.setTimeout(240_000)

const PASSWORD = 'correct horse battery'

type List = { data: { account: string, name: string, clientId: string }[] }

/** The accounts, or the names of clients, that a path lists. */
async function list (api: Api, path: string, kind: 'user' | 'client' = 'user'): Promise<string[]> {
  const { status, body } = await api.get<List>(path)
  if (status !== 200) throw new Error(`${path}: ${status} ${JSON.stringify(body)}`)
  return body.data.map(({ account, name }) => kind === 'user' ? account : name)
}

const search = (api: Api, text: string, more = ''): Promise<string[]> => list(api, `/user/list?search=${encodeURIComponent(text)}${more}`)

const PEOPLE: [account: string, name: string][] = [
  ['jan.kowalski@example.com', 'Jan Kowalski'], ['zofia@example.com', 'Zofia Łącka-Żółć'], ['ivan@example.com', 'Иван Петров'], ['giorgos@example.com', 'ΓΙΏΡΓΟΣ Παπαδόπουλος'],
  ['yamada@example.com', '山田太郎'], ['minjun@example.com', '김민준'], ['jose', 'José Ñandú Straße Ærø'], ['wide', '\u{20000}'.repeat(256)],
  ['accent', 'e\u0301'.repeat(128)], ['many', 'one two three four five six seven eight nine'], ['quote', 'O\'Brien "Bob" 100%_x'], ['math', '𝓗𝓮𝓵𝓵𝓸 ﬁne'], ['turk', 'İstanbul IŞIK']
]

const FOUND: [text: string, accounts: string[]][] = [
  ['kow', ['jan.kowalski@example.com']], ['KOW ja', ['jan.kowalski@example.com']], ['jan.kow', ['jan.kowalski@example.com']], ['owalski', []], ['jan x', []],
  ['jan.kowalski@example.com', ['jan.kowalski@example.com']], ['lacka zolc', ['zofia@example.com']], ['ŁĄC', ['zofia@example.com']], ['żół', ['zofia@example.com']],
  ['иван', ['ivan@example.com']], ['ПЕТ ив', ['ivan@example.com']], ['петров иванов', []], ['γιωργος', ['giorgos@example.com']], ['ΓΙΩΡΓΟΣ', ['giorgos@example.com']],
  ['παπαδοπ', ['giorgos@example.com']], ['山田', ['yamada@example.com']], ['太郎', []], ['김민', ['minjun@example.com']], ['jose nan', ['jose']], ['strasse', ['jose']],
  ['STRASS aero', ['jose']], ['\u{20000}\u{20000}', ['wide']], ['\u{20000}'.repeat(256), ['wide']], ['eee', ['accent']], ['éé', ['accent']], ['one two seven', ['many']],
  ['nine', []], ['o\'b bob', ['quote']], ['100%', ['quote']], ['%', []], ['hello', ['math']], ['fine', ['math']], ['istanbul', ['turk']], ['isik', ['turk']],
  ['example zof', ['zofia@example.com']], ['com jan', ['jan.kowalski@example.com']], ['_x', ['quote']]
]

async function addPeople (store: Store, prefix: string, count: number, words: (number: number) => string): Promise<void> {
  const users = store.collection<UserRecord>('users')
  const records = Array.from({ length: count }, (_, number) => {
    const account = `${prefix}${String(number * 7919 % 100_003).padStart(6, '0')}`
    const user = { account, name: words(number) }
    return { ...createUserRecord(Date.now(), { ...user, roles: {}, info: {} }), words: toUserWords(user) }
  })
  for (let start = 0; start < count; start += 500) await users.insertMany(records.slice(start, start + 500))
}

/** The query of the next page. */
const follow = (headers: Record<string, unknown>, rel: 'next' | 'prev'): string | undefined => (
  new RegExp(`<(\\?[^>]*)>; rel="${rel}"`).exec(String(headers.link ?? ''))?.[1])

/** All pages, with the accounts of each. */
async function walk (api: Api, first: string, rel: 'next' | 'prev' = 'next'): Promise<{ pages: string[][], last: string }> {
  const pages: string[][] = []
  let [path, last]: [string | undefined, string] = [first, first]
  while (path !== undefined) {
    last = path
    const { body, headers, status } = await api.get<List>(path)
    if (status !== 200) throw new Error(`${path}: ${status} ${JSON.stringify(body)}`)
    pages.push(body.data.map(({ account }) => account))
    const query = follow(headers, rel)
    path = query && `/user/list${query}`
  }
  return { pages, last }
}

async function tryNames (t: Test, kit: TestKit): Promise<void> {
  const admin = await signIn(kit, { roles: ['admin'] })
  for (const [account, name] of PEOPLE) await createUser(admin, { account, password: PASSWORD, name })
  for (const [text, accounts] of FOUND) {
    if (text === '%') t.match(await admin.get('/user/list?search=%25'), { status: 400, body: { code: 'ErrParam', message: /^search: has no letter/ } })
    else {
      t.strictSame((await search(admin, text)).sort(), accounts.toSorted(), text)
      t.strictSame((await admin.get(`/user/count?search=${encodeURIComponent(text)}`)).body.data, { count: accounts.length }, text)
    }
  }
  t.equal((await search(admin, '')).length >= PEOPLE.length, true, 'an empty text is none')
  for (const [query, message] of [
    ['search=...', /^search: has no letter and no digit$/], ['search=a&sort=name:asc', /^sort: cannot be given together with search$/],
    ['search=a&contains=b', /^contains: cannot/], ['search=a&account=b', /^account: cannot/], ['search=a+b+c+d+e+f+g+h+i', /^search: has more than 8 words$/],
    [`search=${'a'.repeat(257)}`, /^search: has more than 256 characters$/], ['deadline=0', /deadline/], ['deadline=31', /deadline/],
    ['deadline=2&limit=0', /^deadline: needs a limit/], ['max=1', /max/]
  ] as const) t.match(await admin.get(`/user/list?${query}`), { status: 400, body: { code: 'ErrParam', message } }, query)
}

async function tryChanges (t: Test, kit: TestKit): Promise<void> {
  const admin = await signIn(kit, { roles: ['admin'] })
  const [before, after] = [unique('before').replaceAll('-', ''), unique('after').replaceAll('-', '')]
  const account = unique('someone')
  const id = await createUser(admin, { account, password: PASSWORD, name: before })
  t.strictSame([await search(admin, before), await search(admin, after)], [[account], []])
  await admin.patch(`/user/${id}`, { data: { name: after } })
  t.strictSame([await search(admin, before), await search(admin, after)], [[], [account]], 'by an administrator')
  const own = await signIn(kit, { user: id })
  await own.patch('/user', { data: { name: before } })
  t.strictSame([await search(admin, before), await search(admin, after)], [[account], []], 'by the user')
  const address = `${after}@example.com`
  await admin.patch(`/user/${id}`, { data: { email: address } })
  t.strictSame(await search(admin, `${after} ${before}`), [account], 'the address')
  const users = kit.app.identity.store.collection<UserRecord>('users')
  // As an earlier release, which knows no words.
  await users.update(id, { set: { name: 'renamed meanwhile' }, increment: { revision: 1 } })
  t.strictSame(await search(admin, 'meanwhile'), [])
  await admin.patch(`/user/${id}`, { data: { info: { a: 1 } } })
  t.strictSame([await search(admin, 'meanwhile'), await search(admin, before)], [[account], []], 'the next change corrects them')
  t.equal((await admin.delete(`/user/${id}`)).status, 204)
  await kit.flush()
  t.strictSame(await search(admin, 'meanwhile'), [])
}

async function tryClients (t: Test, kit: TestKit): Promise<void> {
  const [admin, ann, ben] = [await signIn(kit, { roles: ['admin'] }), await signIn(kit), await signIn(kit)]
  const of = async (api: Api, query: string): Promise<string[]> => await list(api, `/client/list?${query}`, 'client')
  const clientId = await createClient(ann, { name: 'Żabka Store' })
  await createClient(ben, { name: 'Zabka Admin' })
  t.strictSame(await of(admin, 'search=zabka'), ['Zabka Admin', 'Żabka Store'])
  t.strictSame(await of(admin, 'search=STO+za'), ['Żabka Store'])
  t.strictSame(await of(ann, 'search=zab'), ['Żabka Store'], 'others see their own')
  t.strictSame(await of(admin, `search=zab&user=${ann.user_id}`), ['Żabka Store'])
  t.strictSame(await of(admin, `search=${clientId.slice(0, 28)}`), ['Żabka Store'], 'the beginning of its id')
  t.strictSame(await of(admin, 'contains=abka+S'), ['Żabka Store'])
  t.strictSame(await of(admin, 'contains=abka+S&deadline=5&limit=10'), ['Żabka Store'])
  t.strictSame((await ann.get('/client/count?search=zab&max=5')).body.data, { count: 1 })
  t.strictSame((await admin.get('/client/count?search=zab&max=1')).body.data, { count: 1, more: true })
  await ann.patch(`/client/${clientId}`, { data: { name: 'Lidl' } })
  t.strictSame([await of(admin, 'search=store'), await of(admin, 'search=lid')], [[], ['Lidl']])
  t.match((await kit.app.identity.store.collection<ClientRecord>('clients').get(clientId))?.words, ['lidl'])
  t.match(await admin.get('/client/list?search=a&sort=name:asc'), { status: 400, body: { message: /^sort: / } })
}

async function tryPages (t: Test, kit: TestKit): Promise<void> {
  const admin = await signIn(kit, { roles: ['admin'] })
  // More than FEW have the common words, and fewer the rare one.
  await addPeople(kit.app.identity.store, 'pp', 7_000, (number) => `Qommon Qerson${number % 3 === 0 ? ' Qhird' : ''}${number % 1_000 === 0 ? ' Qrare' : ''}${number < 2 ? ' Qends' : ''}`)
  for (const [text, count] of [['qommon', 7_000], ['qer qhi', 2_334], ['qrare qom', 7], ['qhird qrare', 3], ['qends', 2]] as const) {
    const limit = count > 100 ? 100 : 3
    const { pages, last } = await walk(admin, `/user/list?search=${encodeURIComponent(text)}&limit=${limit}`)
    const all = pages.flat()
    t.equal(all.length, count, text)
    t.strictSame(all, [...new Set(all)].sort(), `${text}: sorted, and each once`)
    const back = await walk(admin, last, 'prev')
    if (pages.every((page) => page.length > 0)) t.strictSame(back.pages.toReversed(), pages, `${text}: backwards`)
  }
  const whole = await search(admin, 'qer qhi', '&limit=0')
  t.equal(whole.length, 2_334, 'a list without a limit')
  t.strictSame((await admin.get('/user/count?search=qom')).body.data, { count: 7_000 })
  t.strictSame((await admin.get('/user/count?search=qom&max=1000')).body.data, { count: 1_000, more: true })
  t.strictSame((await admin.get('/user/count?max=100')).body.data, { count: 100, more: true })
  t.equal(Object.keys((await admin.get<{ data: object }>('/user/count?max=100000')).body.data).join(), 'count')
  t.equal(Object.keys((await admin.get<{ data: object }>('/user/count')).body.data).join(), 'count')
  for (const max of ['0', '100001', 'x']) t.equal((await admin.get(`/user/count?max=${max}`)).status, 400, max)
}

async function tryWindows (t: Test, kit: TestKit): Promise<void> {
  const admin = await signIn(kit, { roles: ['admin'] })
  // Each word is common. Both together are met after more documents than the first window has.
  await addPeople(kit.app.identity.store, 'w', 8_000, (number) => {
    const account = number * 7919 % 100_003
    return account > 99_000 ? 'Qleft Qright' : number % 2 === 0 ? 'Qleft' : 'Qright'
  })
  const { pages } = await walk(admin, '/user/list?search=qleft+qright&limit=10')
  const expected = Array.from({ length: 8_000 }, (_, number) => number * 7919 % 100_003).filter((account) => account > 99_000)
  t.strictSame(pages.flat(), expected.sort((a, b) => a - b).map((account) => `w${String(account).padStart(6, '0')}`))
  t.strictSame((await walk(admin, '/user/list?search=qleft+nobodyhasthis')).pages.flat(), [])
}

async function tryDeadline (t: Test, kit: TestKit): Promise<void> {
  const admin = await signIn(kit, { roles: ['admin'] })
  const account = unique('deadline')
  await createUser(admin, { account, password: PASSWORD })
  t.strictSame(await list(admin, `/user/list?contains=${account.slice(2)}&deadline=30`), [account])
  const { users } = kit.app.identity
  await t.rejects(users.page({ contains: 'x', deadline: -1 }), { code: 'ErrBusy', statusCode: 503, message: /^deadline: / })
  t.strictSame(await list(admin, `/user/list?contains=${account.slice(2)}&deadline=30`), [account], 'the next search is answered')
}

async function find (api: Api, q: string): Promise<FindHit[]> {
  const { status, body } = await api.get<{ data: { hits: FindHit[] } }>(`/find?q=${encodeURIComponent(q)}`)
  if (status !== 200) throw new Error(`${q}: ${status} ${JSON.stringify(body)}`)
  return body.data.hits
}

async function tryFind (t: Test, kit: TestKit): Promise<void> {
  const [admin, manager] = [await signIn(kit, { roles: ['admin'] }), await signIn(kit, { roles: ['manager'] })]
  const helper = await kit.support()
  const staff = { ...helper, ...callAs(kit, helper.headers) }
  const word = unique('finder').replaceAll('-', '')
  const account = `${word}@example.com`
  const id = await createUser(admin, { account, password: PASSWORD, name: 'Fiona Finder' })
  const boss = await createUser(admin, { account: `${word}boss@example.com`, password: PASSWORD, name: 'Fiona Boss' })
  await admin.patch(`/user/${boss}`, { data: { roles: { manager: true } } })
  const other = `${word}other@example.com`
  await admin.patch(`/user/${id}`, { data: { email: other } })
  const person = await signIn(kit, { user: id, refresh: true })
  const clientId = await createClient(person, { name: `${word} App` })
  const hit = { kind: 'user', id, user_id: id, label: `Fiona Finder (${account})` } as const
  const app = { kind: 'client', id: clientId, user_id: id, label: `${word} App` } as const
  const { sessions } = (await admin.get<{ data: { sessions: { session_id: string }[] } }>(`/user/${id}/sessions`)).body.data
  const session = sessions[0]!.session_id
  await kit.flush()
  const [event] = await kit.events.list({ type: 'user.created', user: id })
  for (const [who, api] of [['admin', admin], ['manager', manager], ['support', staff]] as const) {
    const isAdmin = who === 'admin'
    for (const q of [id, account, account.toUpperCase(), other, ` ${account} `]) t.match(await find(api, q), [hit], `${who}: ${q}`)
    t.match((await find(api, `${word} exa fion`)).map(({ id }) => id), isAdmin ? [id, boss] : [id], who)
    t.strictSame(await find(api, clientId), isAdmin ? [app] : [], `${who}: a client of somebody else`)
    t.strictSame(await find(api, session), [{ kind: 'session', id: session, user_id: id, label: hit.label }], `${who}: a session`)
    t.strictSame(await find(api, event!.id), isAdmin ? [{ kind: 'event', id: event!.id, user_id: id, label: 'user.created' }] : [], `${who}: an event`)
    t.strictSame((await find(api, boss)).map((one) => one.id), isAdmin ? [boss] : [], `${who}: a person with a role`)
    t.equal((await find(api, `${word}boss`)).length, isAdmin ? 1 : 0, `${who}: also by words`)
    t.strictSame((await find(api, word)).map(({ kind }) => kind), isAdmin ? ['user', 'user', 'client'] : ['user'], `${who}: by a word`)
    t.strictSame(await find(api, '...'), [], 'no word')
    t.match(await api.get('/find?q=%20'), { status: 400, body: { message: /^q: is empty$/ } })
    t.match(await api.get(`/find?q=${'x'.repeat(257)}`), { status: 400, body: { message: /^q: has more than 256 characters$/ } })
    t.equal((await api.get('/find')).status, 400)
  }
  t.strictSame((await kit.events.list({ type: 'user.viewed', user: id })).filter(({ actor }) => actor.user_id === staff.user_id), [], 'a hit is no read')
  const narrow = await signIn(kit, { roles: ['admin'], scopes: ['users:read'] })
  t.strictSame([await find(narrow, clientId), await find(narrow, event!.id)], [[], []], 'without the scopes of clients and of events')
  for (const plain of [await signIn(kit), await signIn(kit, { roles: ['admin'], scopes: ['account:read'] })]) t.equal((await plain.get('/find?q=a')).status, 403)
  await Promise.all(Array.from({ length: 25 }, (_, number) => createUser(admin, { account: `${word}x${number}`, password: PASSWORD, name: 'Crowd' })))
  const crowd = await find(admin, word)
  t.equal(crowd.length, 20, 'at most 20')
  t.ok(crowd.some(({ kind }) => kind === 'client'), 'with room for clients')
}

await forEachStore(t, async (t, build) => {
  t.test('people are found by the beginnings of words, in any script', async (t) => await tryNames(t, await build(t)))
  t.test('words follow every change of names', async (t) => await tryChanges(t, await build(t)))
  t.test('clients are found by their names', async (t) => await tryClients(t, await build(t)))
  t.test('a search is paged, whether few or many have its words', async (t) => await tryPages(t, await build(t)))
  t.test('a search of two common words goes on by its cursor', async (t) => await tryWindows(t, await build(t)))
  t.test('a search of parts has a deadline', async (t) => await tryDeadline(t, await build(t)))
  t.test('one box finds whatever is named, as far as the reader may see it', async (t) => await tryFind(t, await build(t, { roles: { support: 'helpdesk' } })))
})

t.test('without a deadline the parts are searched as before', async (t) => {
  const kit = await buildApp(t)
  const admin = await signIn(kit, { roles: ['admin'] })
  await createUser(admin, { account: 'parts', password: PASSWORD })
  t.strictSame(await list(admin, '/user/list?contains=art'), ['parts'])
})
