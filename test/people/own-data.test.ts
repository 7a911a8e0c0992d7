import { readFileSync } from 'node:fs'
import ajvFormats from 'ajv-formats'
import { Ajv2020 } from 'ajv/dist/2020.js'
import t from 'tap'
import { USER_FIELDS } from '../../lib/export/own-profile.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import type { Document } from '../../lib/store/port.ts'
import { OwnDataSchema } from '../../schemas/export.ts'
import { createCli } from '../helpers/cli.ts'
import { readDoc } from '../helpers/docs.ts'
import { type App, type Harness, eachStore, getCode } from '../oidc/harness.ts'
import { enrol, nextCode } from '../pages/factors.ts'
import { addUser, enter, post, readXsrf } from '../pages/visits.ts'

type Stored = Document & { password?: string, sealed?: string, way_keys?: string[], material?: { hashes?: string[] } }
type Data = Record<string, unknown[]> & { profile: Record<string, unknown>, events: { type: string, by: string, address?: string }[] }

const ADMIN_ADDRESS = '203.0.113.7'
const PARTS = COLLECTIONS.flatMap(({ own }) => 'leftOut' in own ? [] : own)

/** The schema without any field that it does not name. */
function close (schema: unknown): unknown {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return schema
  const closed = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, close(value)]))
  return 'properties' in closed && !('additionalProperties' in closed) ? { ...closed, additionalProperties: false } : closed
}

const ajv = new Ajv2020({ strict: false, allErrors: true })
ajvFormats.default(ajv)
const isValid = ajv.compile(close(OwnDataSchema) as object)

async function readAll (harness: Harness): Promise<[collection: string, documents: Stored[]][]> {
  return await Promise.all(COLLECTIONS.map(async ({ name }) => {
    const found: Stored[] = []
    for await (const batch of harness.kit.app.identity.store.collection<Stored>(name).stream()) found.push(...batch)
    return [name, found] as [string, Stored[]]
  }))
}

/** The texts in a value, with those of its fields. */
const listTexts = (value: unknown): string[] => typeof value === 'string'
  ? [value]
  : typeof value === 'object' && value !== null ? Object.values(value).flatMap(listTexts) : []

/** Gives a person something in every part of their data. */
async function furnish (harness: Harness, who: Harness['user'], other: App): Promise<{ seed: string, codes: string[], secrets: string[] }> {
  const { kit, browser, post: call } = harness
  const { clients, ways, store, tokens } = kit.app.identity
  const { user_id, account, password } = who
  const page = await enter(harness, '/account', browser(), who)
  const { seed, codes } = await enrol(kit.clock, page, password)
  const tab = { ...harness, user: who }
  const code = await getCode({ ...tab, user: who }, other, { scope: 'openid offline_access read' }, page.browser)
  const { body } = await call('token', code, other)
  const own = await clients.create({ data: { name: `App of ${account}`, redirectUris: [], scopes: ['read'] }, credentials: true }, { user_id, isAdmin: false })
  const { clientSecret } = await clients.require(own.clientId, { user_id, isAdmin: false })
  const app = { client_id: own.clientId, client_secret: String(clientSecret), redirect_uri: '' }
  const acted = await call('token', { grant_type: 'client_credentials' }, app)
  await call('revoke', { token: String(acted.body.access_token) }, app)
  const user = (await store.collection<Document & { epoch: number }>('users').get(user_id))!
  await ways.add({ user_id, epoch: user.epoch }, { kind: 'upstream', key: `key of ${account}`, upstream: 'work', material: { issuer: 'https://idp.example', subject: `subject of ${account}` } })
  const minted = await tokens.mint({ user_id, client_id: own.clientId })
  const service = await kit.serviceToken(own.clientId, { name: `Token of ${account}`, scopes: ['read'] })
  return { seed, codes, secrets: [service.token, String(body.access_token), String(body.refresh_token), String(clientSecret), minted.access_token, password] }
}

eachStore(t, 'the data of one of two people: all of theirs, nothing of the other, and no secret', async (t, start) => {
  const harness = await start()
  const { kit, user: ann, browser } = harness
  const bob = await addUser(harness, 'bob@example.org')
  const shop = await harness.register({ first_party: false, name: 'Shop' })
  const admin = await kit.mint({ user: 'root', roles: ['admin'], client: 'console' })
  const made = await furnish(harness, ann, shop)
  const others = await furnish(harness, bob, shop)
  for (const { user_id } of [ann, bob]) {
    const by = { headers: admin.headers, remoteAddress: ADMIN_ADDRESS }
    t.equal((await kit.inject({ ...by, method: 'PATCH', url: `/api/v1/user/${user_id}`, payload: { data: { roles: { editor: true }, attributes: { number: `of ${user_id}` } } } })).statusCode, 204)
    t.equal((await kit.inject({ ...by, method: 'POST', url: `/api/v1/user/${user_id}/recovery` })).statusCode, 200)
  }
  await kit.flush()

  const page = await enter(harness, '/account', browser(), ann)
  const entered = await post(page, new URL(page.response.url).pathname, { code: await nextCode(kit.clock, made.seed) })
  const form = await entered.browser.open('/account/data')
  t.equal(form.title, 'Your data')
  t.notMatch(form.text, '<script ', 'no script but that of the password')
  const fields = { current_password: ann.password, code: await nextCode(kit.clock, made.seed) }
  const { response, text } = await post(form, '/account/data', fields)
  t.equal(response.status, 200)
  t.match(Object.fromEntries(response.headers), {
    'content-type': /^application\/json/, 'content-disposition': 'attachment; filename="account-data.json"', 'cache-control': 'no-store', 'x-content-type-options': 'nosniff'
  })
  const data = JSON.parse(text) as Data
  t.ok(isValid(data), JSON.stringify(isValid.errors))
  t.same(Object.keys(data).slice(2).sort(), [...new Set(PARTS)].sort(), 'the parts are those that the collections name')
  for (const part of PARTS) t.ok(Object.keys(data[part]!).length > 0, `there is something in ${part}`)
  t.match(data, {
    profile: { user_id: ann.user_id, account: ann.account, name: 'Ann', roles: { editor: true }, attributes: { number: `of ${ann.user_id}` } },
    addresses: [{ address: ann.account, is_account: true }],
    ways: [{ kind: 'password' }, { kind: 'totp', name: 'Phone' }, { kind: 'recovery', codes_left: 10 }],
    identities: [{ upstream: 'work', issuer: 'https://idp.example', subject: `subject of ${ann.account}` }],
    apps: [{ client_id: shop.client_id, client_name: 'Shop', scopes: ['openid', 'read', 'offline_access'] }],
    links: [{ purpose: 'reset', mailed: true, address: ann.account }]
  })
  const tokens = data.tokens as { service?: boolean, name?: string }[]
  t.strictSame(tokens.filter(({ service }) => service).map(({ name }) => name), [`Token of ${ann.account}`])
  t.equal(tokens.length, 2)
  t.ok(data.events.some(({ type, by, address }) => type === 'user.roles_changed' && by === 'operator' && address === undefined))

  const stored = await readAll(harness)
  const documents = stored.flatMap(([, found]) => found)
  const kept = new Map(stored)
  const secrets = [
    ...made.secrets, made.seed, ...made.codes, readXsrf(form), fields.code,
    ...['users', 'credentials'].flatMap((name) => kept.get(name)!.flatMap(({ password, sealed, way_keys, material }) => listTexts([password, sealed, way_keys, material?.hashes]))),
    ...['access_tokens', 'refresh_tokens', 'tickets', 'sign_in_sessions'].flatMap((name) => kept.get(name)!.map(({ id }) => id))
  ].filter((secret) => secret.length > 5)
  t.ok(secrets.length > 20)
  t.same(secrets.filter((secret) => text.includes(secret)), [], 'no secret is in the file')
  t.notMatch(text, ADMIN_ADDRESS)
  t.notMatch(text, admin.user_id)
  t.notMatch(text, admin.client_id)

  const bobs = new Set([bob.user_id, bob.account, ...others.secrets, ...others.codes])
  const isOfBob = (document: Document) => listTexts(document).some((value) => bobs.has(value))
  const ids = documents.filter((document) => isOfBob(document) && !listTexts(document).includes(ann.user_id)).map(({ id }) => id)
  t.ok(ids.length > 20)
  t.same([...bobs, ...ids].filter((value) => text.includes(value)), [], 'nothing of the other person is in the file')
  t.notMatch(text, 'bob')

  const silent = COLLECTIONS.filter(({ own }) => 'leftOut' in own && /[Nn]ames nobody/.test(own.leftOut)).map(({ name }) => name)
  const named = new Set([ann, bob].flatMap(({ user_id, account }) => [user_id, account]))
  t.same(silent.filter((name) => kept.get(name)!.some((document) => listTexts(document).some((value) => named.has(value)))), [], 'what is said to name nobody does not')
})

t.test('each collection and each field of a user says where it is in the data, or why it is not', async (t) => {
  const declared = (name: string) => COLLECTIONS.find((one) => one.name === name)!
  const naming = COLLECTIONS.filter(({ keys }) => ['user_id', 'userId', 'user', 'owner', 'holder'].some((key) => key in keys))
  t.same(naming.filter(({ own }) => 'leftOut' in own && /[Nn]ames nobody/.test(own.leftOut)), [], 'what has a key for users does not claim to name nobody')
  t.ok(COLLECTIONS.every(({ own }) => 'leftOut' in own ? own.leftOut.endsWith('.') : own.length > 0))
  t.same(declared('users').own, [...new Set(Object.values(USER_FIELDS).filter((place) => typeof place === 'string'))])
  const rows = [...readDoc('docs/people.md').matchAll(/^\| `(\w+)` \| (.*) \|$/gm)].map(([, name, text]) => [name, text])
  const leftOut = COLLECTIONS.flatMap(({ name, own }) => 'leftOut' in own && !/[Nn]ames nobody/.test(own.leftOut) ? [[name, own.leftOut.replace(/\.$/, '')]] : [])
  t.same(rows.filter(([name]) => leftOut.some(([one]) => one === name)), leftOut, 'the documentation says the same')
  for (const part of new Set(PARTS)) t.ok(rows.some(([name]) => name === part), `docs/people.md describes ${part}`)
})

const ALL = ['account:read', 'account:security', 'clients:read']

async function open (start: (options?: object) => Promise<Harness>) {
  const { kit } = await start({ oidc: { issuer: 'https://id.example' } })
  const get = async (request: Parameters<typeof kit.mint>[0], { method = 'GET', wait = 0 }: { method?: 'GET' | 'HEAD', wait?: number } = {}) => {
    const minted = await kit.mint(request)
    kit.clock.advance(wait)
    return { minted, ...await again(minted, method) }
  }
  const again = async ({ headers }: { headers: Record<string, string> }, method: 'GET' | 'HEAD' = 'GET') => {
    const { statusCode: status, headers: given, body } = await kit.inject({ method, url: '/api/v1/user/export', headers })
    return { status, headers: given, body }
  }
  return { kit, get, again }
}

eachStore(t, 'by the API: a fresh sign-in of an app that has all the scopes', async (t, start) => {
  const { get } = await open(start)
  for (const missing of ALL) {
    const { status, headers } = await get({ scopes: ALL.filter((scope) => scope !== missing), acr: '1' })
    t.equal(status, 403, `without ${missing}`)
    t.match(headers['www-authenticate'], missing)
  }
  const challenge = /^Bearer error="insufficient_user_authentication".*acr_values="1", max_age="600"$/
  const none = await get({ scopes: ALL })
  t.match(none, { status: 401, headers: { 'www-authenticate': challenge } }, 'a token that comes from no sign-in')
  t.match(await get({ scopes: ALL, acr: '1' }, { wait: 601_000 }), { status: 401, headers: { 'www-authenticate': challenge } }, 'a sign-in of more than ten minutes')
  const fresh = await get({ scopes: ALL, acr: '1' }, { wait: 600_000 })
  t.match(fresh, { status: 200, headers: { 'content-type': 'application/json; charset=utf-8' } })
  t.equal((JSON.parse(fresh.body) as Data).profile.user_id, fresh.minted.user_id)
  t.equal((await get({})).status, 200, "an operator's unrestricted token")
})

eachStore(t, 'once an hour for each person; what was refused, and HEAD, do not count', async (t, start) => {
  const { kit, get, again } = await open(start)
  const { minted } = await get({ scopes: ALL, acr: '1' }, { method: 'HEAD' })
  t.match(await again(minted, 'HEAD'), { status: 200, body: '' })
  const narrow = await kit.mint({ user: minted.user_id, scopes: ['account:security'] })
  t.equal((await again(narrow)).status, 403)
  t.equal((await again(minted)).status, 200)
  t.match(await again(minted), { status: 429, headers: { 'retry-after': '3600' } })
  t.equal((await get({})).status, 200, 'another person')
  const { events } = kit.app.identity
  await kit.flush()
  t.match((await events.listOwn(minted.user_id)).filter(({ type }) => type === 'user.exported'), [{ actor: { via: 'api', user_id: minted.user_id }, address: '127.0.0.1' }])
})

eachStore(t, 'on the page: a wrong password, a second download, and the language', async (t, start) => {
  const harness = await start()
  const form = await enter(harness, '/account/data')
  const send = async (fields: Record<string, string>, headers = {}) => await post(form, '/account/data', fields, headers)
  const wrong = await send({ current_password: 'wrong' })
  t.match(wrong.text, 'Your current password is wrong')
  t.match(wrong.response.headers.get('content-type'), 'text/html')
  t.equal((await post({ ...form, text: '' } as typeof form, '/account/data', { current_password: harness.user.password })).response.status, 400, 'a form from elsewhere')
  t.match((await send({ current_password: harness.user.password })).response.headers.get('content-type'), 'application/json')
  const second = await send({ current_password: harness.user.password })
  t.equal(second.response.status, 429)
  t.match(second.text, 'You can download it again in 60 minutes.')
  t.match((await send({ current_password: harness.user.password }, { 'accept-language': 'de' })).text, 'In 60 Minuten können Sie sie erneut herunterladen.')
})

t.test('on the command line: to stdout or to a file, as often as the operator wants', async (t) => {
  const directory = t.testdir()
  const cli = createCli(directory)
  await cli('user create --account ann@example.com')
  await cli('user create --account bob')
  const { stdout } = await cli('user data --account ann@example.com')
  t.match(JSON.parse(stdout), { profile: { account: 'ann@example.com' }, events: [{ type: 'user.created', by: 'operator' }] })
  t.notMatch(stdout, 'bob')
  const file = `${directory}/ann.json`
  t.match((await cli(`user data --account ann@example.com --out ${file} --json`)).json(), { account: 'ann@example.com', file })
  t.match(JSON.parse(readFileSync(file, 'utf8')), { profile: { account: 'ann@example.com' }, events: [{}, { type: 'user.exported', by: 'operator' }] })
  t.match(await cli('user data --account nobody'), { code: 1, stderr: '--account: no user has this account' })
})
