import t, { type Test } from 'tap'
import type { ClientRecord } from '../../lib/records/client.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { createConsoleLook, renderConsole } from '../../lib/pages/console/index.ts'
import { settingsPage } from '../../lib/pages/console/settings.ts'
import { createLook } from '../../lib/pages/look.ts'
import type { Document, Json } from '../../lib/store/port.ts'
import type { Page } from '../oidc/browser.ts'
import { eachStore } from '../oidc/harness.ts'
import { PASSWORD } from './console-visits.ts'
import { type Console, PAGES, Things, enterAs, startConsole } from './console-forms.ts'

// What people, clients and other servers have stored, put into the store as it is, and every page of the console beside it.

t.setTimeout(480_000)

/** In every text, so that it is found wherever a page shows it. */
const MARK = 'zq7'

const CORPUS: readonly string[] = [
  '<script>alert(1)</script>', '"><img src=x onerror=alert(1)>', "' onfocus='alert(1)' x='", 'javascript:alert(1)//', '//evil.example/', '</textarea><b>', '</pre></code><b>',
  '</title></style><base href=//evil.example>', '&lt;script&gt;&#60;b&#62;', '\u202egpj.exe\u2066\u2069', '\u0000\u0007\u001b[31m\u009b\r', '\u200b\u200d\ufeff\u00ad', '{{7*7}}<%=7*7%>',
  '\ufdfd'.repeat(252), '\u05d3\u05e0\u05d4 (\u0645\u0631\u062d\u0628\u0627)', 'data:text/html,<script>alert(1)</script>', '\ud83d\udc68\u200d\ud83d\udc69\u0301\u0301\u0301'
].map((text) => `${MARK}${text}`)

/** What a page must show as a code, but for line breaks. */
// eslint-disable-next-line no-control-regex
const UNSEEN = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/u

/** Names of fields whose values the service makes and reads itself: ids, enumerations, hashes, sealed texts and times. */
const OWN = new Set([
  'id', 'user_id', 'client_id', 'userId', 'grant_id', 'session_uid', 'uid', 'holder', 'owner_id', 'token_id', 'key', 'once', 'user', 'client', 'state', 'via', 'outcome', 'kind', 'method',
  'sealed', 'password', 'password_scheme', 'secret', 'hash', 'print', 'way_keys', 'addresses', 'words', 'administers', 'upstreams', 'proofs', 'payload', 'ways', 'way', 'undos', 'tokenAuth',
  'former_auth', 'grants', 'pkce', 'idTokenAlg', 'signedRequests', 'profile', 'language', 'resource_id', 'registry_id', 'auth_id', 'jkt', 'operator', 'upstream', 'sharer', 'external_keys',
  'email_verified_by', 'declared', 'cursor', 'owner', 'machine', 'in', 'from', 'methods', 'auth', 'issued_by', 'imported_run', 'amr', 'acr', 'type'
])

const TIME = /^\d{4}-\d\d-\d\dT/

/** Objects whose names come from outside too. */
const NAMED = new Set(['roles', 'info', 'attributes', 'external', 'claims'])

/** The value with a hostile text for each text of it that may come from outside. */
function spoil (value: Json, name: string, next: () => string): Json {
  if (OWN.has(name) || name.startsWith('event_') || name.startsWith('event:')) return value
  if (typeof value === 'string') return TIME.test(value) ? value : next()
  if (Array.isArray(value)) return value.map((one) => spoil(one, '', next))
  if (typeof value !== 'object' || value === null) return value
  const fields = Object.entries(value).map(([field, one]) => [NAMED.has(name) ? next() : field, spoil(one, field, next)])
  return Object.fromEntries(fields) as Json
}

/** What stands in the page outside tags, fields, lines with encoded URLs, and texts that are set apart from the direction of what is around them. */
const readBare = (text: string) => text.replaceAll(/^(?:<pre tabindex="0">)?curl -H [!-~ ]*$/gm, '').replaceAll(/<style>.*?<\/style>|<title>.*?<\/title>|<textarea[^>]*>.*?<\/textarea>|<option[^>]*>[^<]*<\/option>|<bdi>(?:[^<]|<span class="unseen">[^<]*<\/span>)*<\/bdi>/gs, '').replaceAll(/<[^>]*>/g, '')

const URLS = new Set(['href', 'src', 'action', 'formaction', 'poster', 'data', 'srcset', 'background', 'ping'])

const listTags = (text: string) => [...text.replaceAll(/<style>.*?<\/style>/gs, '').matchAll(/<(\/?[a-zA-Z!][\w-]*)([^>]*)>/g)].map(([, name = '', rest = '']) => ({ name: name.toLowerCase(), rest }))

/** @param tags those that pages have without anything hostile */
function check (t: Test, { response, text }: Pick<Page, 'response' | 'text'>, tags: ReadonlySet<string>, what: string): void {
  const faults: string[] = []
  for (const { name, rest } of listTags(text)) {
    if (!tags.has(name)) faults.push(`tag <${name}>`)
    if (!/^(?:\s+[a-z][\w-]*(?:="[^"]*")?)*\s*$/.test(rest)) faults.push(`attributes of <${name}${rest.slice(0, 80)}>`)
    for (const [, attribute = '', value = ''] of rest.matchAll(/\s([\w-]+)(?:="([^"]*)")?/g)) {
      if (attribute.startsWith('on') || attribute === 'style') faults.push(`attribute ${attribute}`)
      if (URLS.has(attribute) && !/^(?:\/(?![/\\])|\?|#|https?:|data:image\/|mailto:)/.test(value)) faults.push(`${attribute}="${value.slice(0, 80)}"`)
    }
  }
  const count = (tag: string) => listTags(text).filter(({ name }) => name === tag).length
  for (const tag of ['textarea', 'pre', 'form', 'bdi', 'code', 'section', 'ul', 'details', 'main']) {
    if (count(tag) !== count(`/${tag}`)) faults.push(`${count(tag)} <${tag}> and ${count(`/${tag}`)} </${tag}>`)
  }
  const title = /<title>([^<]*)/.exec(text)?.[1] ?? ''
  const unseen = UNSEEN.exec(text.replaceAll(/<textarea[^>]*>.*?<\/textarea>|<[^>]*>/gs, '') + title)
  if (unseen !== null) faults.push(`U+${unseen[0].codePointAt(0)?.toString(16)} as it is, at ${JSON.stringify(unseen.input.slice(Math.max(0, unseen.index - 40), unseen.index + 10))}`)
  const bare = readBare(text).indexOf(MARK)
  if (bare >= 0) faults.push(`not set apart: ${JSON.stringify(readBare(text).slice(Math.max(0, bare - 60), bare + 20))}`)
  const policy = response.headers.get('content-security-policy') ?? ''
  if (policy.includes('script-src') || !policy.includes("default-src 'none'")) faults.push(policy)
  t.strictSame([...new Set(faults)].slice(0, 6), [], what)
}

const SPOILED = ['users', 'credentials', 'clients', 'client_uses', 'documents', 'sign_in_sessions', 'grants', 'access_tokens', 'deliveries', 'logouts', 'webhook_failures', 'secret_ends', 'events'] as const

/** Somebody and something with a value in every field that pages show. */
async function fill (console: Console, things: Things): Promise<{ user_id: string, clientId: string, documentId: string }> {
  const { kit } = console
  const { store } = kit.app.identity
  const user_id = await things.linked()
  const account = await things.account(user_id)
  const clientId = await things.client()
  const agent = await things.agent()
  await agent.authorize({ account, password: PASSWORD })
  await kit.totp(user_id)
  for (const batch of await Array.fromAsync(store.collection('credentials').stream())) for (const { id } of batch) await store.collection('credentials').update(id, { set: { name: 'x' } })
  await kit.secret(clientId)
  await kit.serviceToken(clientId)
  const at = new Date(kit.clock.now() + 3_600_000).toISOString()
  const created_at = new Date(kit.clock.now()).toISOString()
  await store.collection<UserRecord>('users').update(user_id, {
    set: {
      name: 'x', email: `mail-${account}`, email_verified_at: created_at, info: { a: { b: ['x', 'y'] } }, attributes: { c: 'x' }, roles: { editor: true, writer: { level: 'x', of: ['y'] } }, external: { hr: 'x' }
    }
  })
  const stored = await store.collection<ClientRecord>('clients').get(clientId)
  await store.collection<ClientRecord>('clients').update(clientId, {
    set: {
      userId: user_id,
      image: 'https://x.example/a.png',
      backchannelLogoutUri: 'https://x.example/logout',
      roles: { robot: { a: 'x' } },
      scopes: ['a', 'b'],
      redirectUris: ['https://x.example/a', 'https://y.example/b'],
      claims: { tier: { from: 'attributes.c', in: ['id_token'] } },
      keys: [{ jwk: { kid: 'x', kty: 'x', alg: 'x', crv: 'x' }, id: 'k', created_at }] as unknown as NonNullable<ClientRecord['keys']>,
      secrets: (stored?.secrets ?? []).map((one) => ({ ...one, name: 'x', last4: 'abcd' }))
    }
  })
  const work = { state: 'failed', due_at: at, claim: 0, attempts: 3, ends_at: at, created_at, expired_at: at, failure: 'x' }
  const put = async (name: string, fields: object) => await store.collection<Document>(name).insert({ ...work, ...fields } as unknown as Document)
  await put('deliveries', { id: `${MARK}"><b>mail`, kind: `${MARK}<b>kind`, user_id })
  await put('logouts', { id: `${MARK}"><b>logout`, user_id, client_id: `${MARK}"><script>`, uids: [] })
  await put('webhook_failures', { id: `${MARK}"><b>webhook`, webhook_id: `${MARK}<i>`, type: `${MARK}"><b>` })
  await kit.flush()
  const [events = []] = await Array.fromAsync(store.collection<Document & { content: object }>('events').stream())
  await store.collection<Document>('events').update(events[0]!.id, {
    set: {
      user: user_id, content: { ...events[0]!.content, user_id, request_id: 'x', address: 'x', changed: ['x'], granted: ['x'], reason: 'x', mail: 'x', failure: 'x', refusal: { rule: 'x', value: 'x' }, counts: { x: 1 }, outcome: 'failure' }
    }
  })
  return { user_id, clientId, documentId: agent.clientId }
}

eachStore(t, 'pages of the console show whatever is stored as text', async (t, start) => {
  const console = await startConsole(t, start)
  const { kit, pages } = console
  const { store } = kit.app.identity
  const things = await Things.create(console)
  const { user_id, clientId, documentId } = await fill(console, things)
  const door = await enterAs(console, ['admin'])
  const these = { person: async () => await Promise.resolve(user_id), client: async () => await Promise.resolve(clientId) }
  const urls = [
    ...(await Promise.all(pages.map(async ({ path }) => await PAGES[path]!(these)))).flat(), `/clients/${encodeURIComponent(documentId)}`, `/clients/${encodeURIComponent(documentId)}/token?user_id=${user_id}`,
    `/clients/${clientId}/token?user_id=${user_id}&scope=openid+profile+email`, `/events?user=${user_id}`, `/clients?user=${user_id}`, `/find?q=${user_id}`, `/find?q=${clientId}`, `/find?q=${MARK}`
  ]
  const open = async (url: string) => await door.browser.open(`/admin${url}`)
  const TURNING = ['/people', `/people/${user_id}`, '/clients', `/clients/${clientId}`, `/events?user=${user_id}`]
  const tags = new Set<string>()
  for (const url of urls) {
    const page = await open(url)
    t.equal(page.response.status, 200, url)
    for (const { name } of listTags(page.text)) if (!page.text.includes(`<${name}>${MARK}`)) tags.add(name)
  }
  for (const tag of ['script', 'img', 'b', 'base', 'iframe']) t.notOk(tags.has(tag), `a page has no <${tag}>`)

  const originals = new Map<string, Document[]>()
  for (const name of SPOILED) originals.set(name, (await Array.fromAsync(store.collection(name).stream())).flat())
  const shown = new Set<string>()
  for (const [pass, first] of CORPUS.entries()) {
    let count = pass
    const next = () => CORPUS[count++ % CORPUS.length] ?? first
    for (const [name, records] of originals) {
      for (const record of records) {
        const same = CORPUS[pass] ?? first
        const set = Object.fromEntries(Object.entries({ ...record }).filter(([field]) => field !== 'id' && !field.startsWith('event') && !(record.id === door.user_id && field === 'roles')).map(([field, value]) => {
          const spoiled = spoil(value, field, field === 'name' || name === 'events' ? () => same : next)
          // Accounts and addresses are of one person each.
          return [field, name === 'users' && field === 'account' ? `${same} ${record.id}` : spoiled]
        }))
        await store.collection<Document>(name).update(record.id, { set })
      }
    }
    for (const url of urls) {
      const page = await open(url)
      t.equal(page.response.status, 200, `${pass} ${url}`)
      check(t, page, tags, `${JSON.stringify(first.slice(0, 60))} ${url}`)
      if (page.text.includes(MARK)) shown.add(url).add(url.split('?')[0] ?? '')
      for (const [, id = '', body = ''] of page.text.matchAll(/<section aria-labelledby="([\w-]+)">(.*?)<\/section>/gs)) if (body.includes(MARK)) shown.add(`${url} ${id}`)
      if (first.includes('\u202e') && TURNING.includes(url)) t.match(page.text, 'U+202E', `${url} shows what turns the text`)
    }
    for (const path of new Set(urls.map((url) => url.split('?')[0] ?? ''))) {
      const query = new URLSearchParams(['q', 'search', 'within', 'user', 'client', 'type', 'reason', 'from', 'to', 'kind', 'state', 'after', 'before', 'held', 'done', 'scope', 'resource', 'user_id'].map((name) => [name, first.slice(0, 48)] as [string, string]))
      const page = await open(`${path}?${query}`)
      t.ok([200, 400, 404].includes(page.response.status), `${path}: ${page.response.status}`)
      check(t, page, tags, `${JSON.stringify(first.slice(0, 60))} in the query of ${path}`)
    }
  }
  const parts = ['profile', 'methods', 'sessions', 'identities', 'clients', 'mails', 'events'].map((id) => `/people/${user_id} ${id}`)
  const others = ['acts', 'settings', 'secrets', 'keys', 'tokens', 'events'].map((id) => `/clients/${clientId} ${id}`)
  const jobs = ['mail', 'logout', 'webhook'].map((id) => `/jobs ${id}`)
  for (const path of ['/people', '/clients', `/clients/${encodeURIComponent(documentId)}`, '/clients?kind=documents', '/events', '/find', ...parts, ...others, ...jobs]) {
    t.ok(shown.has(path), `${path} shows stored texts`)
  }
})

t.test('settings are shown as text', async (t) => {
  const look = createConsoleLook(createLook({}))
  const view = { base: '/admin', sections: [], maySearch: false, account: 'a', xsrf: '', isFresh: true, again: '/account/sign-in', calls: [], api: '', commands: [] } as const
  const render = (text: string) => renderConsole((context) => settingsPage(view, {
    settings: [{ name: text, variable: text, value: text, origin: 'variable' as never }, { name: 'x', value: { [text]: [text] }, origin: 'default' }], mayMail: true
  }, context), look, { language: 'en', zone: 'UTC', query: '' })
  const tags = new Set(listTags(render('x')).map(({ name }) => name))
  const response = { headers: new Headers({ 'content-security-policy': "default-src 'none'" }) } as Response
  for (const text of CORPUS) check(t, { response, text: render(text) }, new Set([...tags, 'span']), JSON.stringify(text.slice(0, 60)))
})
