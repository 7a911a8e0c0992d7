import t from 'tap'
import type { DocumentRecord } from '../../lib/client-documents/record.ts'
import type { ClientKey, ClientRecord } from '../../lib/records/client.ts'
import type { GrantRecord } from '../../lib/records/token.ts'
import type { Document } from '../../lib/store/port.ts'
import { OutboundError } from '../../lib/outbound/fetcher.ts'
import { type TestKey, assert, createTestKey, toFields } from '../helpers/assertions.ts'
import { type TestAgent, startIdentity } from '../../testing/index.ts'
import { callAs, signIn as mintFor } from '../helpers/people.ts'
import { waitUntil } from '../helpers/wait.ts'
import { type App, askCode, eachStore, getCode, signIn } from './harness.ts'

const OPERATOR = { user_id: '', isAdmin: true }
const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const RESOURCE = { id: 'https://notes.example/mcp', name: 'Notes', scopes: { 'notes:read': 'read your notes', 'notes:write': 'change your notes' }, documents: ['notes:read'] }
/** Calls of hosts that serve no document here. */
const others: string[] = []
const OPTIONS = {
  readOutbound: () => async ({ url }: { url: string }) => {
    others.push(url)
    throw new OutboundError('ECONNREFUSED')
  },
  oidc: { documents: { hosts: ['agent.example', { host: 'editor.example', redirects: ['cdn.example', 'editor:'] }] }, signInLimit: false as const, sessionMax: 400 * 24 * 3600, sessionTtl: 366 * 24 * 3600 },
  resources: [RESOURCE, { id: 'https://closed.example/', name: 'Closed', scopes: { 'closed:read': 'read' } }]
}

eachStore(t, 'an agent that nobody has registered', async (t, start) => {
  const harness = await start(OPTIONS)
  const { kit, user, get, post, browser } = harness
  const { clients, store, documents: lazy } = kit.app.identity
  const records = store.collection<ClientRecord>('clients')
  const stored = store.collection<DocumentRecord>('documents')
  const uses = store.collection<Document & Record<string, string>>('client_uses')
  const documents = await lazy!.load()
  // The limits of the fetches count for one address: each test begins in another minute.
  t.beforeEach(() => { kit.clock.advance(2 * MINUTE) })

  const toApp = ({ clientId: client_id, document }: TestAgent, redirect_uri = String((document.redirect_uris as string[])[0])): App => ({ client_id, client_secret: '', redirect_uri })
  const open = async (agent: TestAgent, params: Record<string, string | undefined> = {}, from = browser()) => await from.open(askCode(toApp(agent), { scope: 'openid offline_access', ...params }).url)
  /** As far as the consent page. */
  async function ask (agent: TestAgent, params: Record<string, string | undefined> = {}, from = browser()) {
    const page = await open(agent, params, from)
    return page.title === 'Sign in' ? await page.submit({ account: user.account, password: user.password }) : page
  }
  const readLocation = (url: URL | undefined) => Object.fromEntries(url?.searchParams ?? [])
  const down = new OutboundError('ECONNREFUSED')

  await t.test('signs a person in, gets a token for that resource only, and refreshes', async (t) => {
    const agent = kit.agent({ client_name: 'Notes reader' })
    const tokens = await agent.authorize(user, { scope: 'openid offline_access notes:read', resource: RESOURCE.id })
    t.match(tokens, { scope: 'notes:read', token_type: 'Bearer', refresh_token: String })
    t.match((await get('tokeninfo', tokens.access_token)).body, { data: { client_id: agent.clientId, scopes: ['notes:read'], aud: RESOURCE.id, roles: {} } })
    const renewed = await agent.refresh(tokens.refresh_token!)
    t.equal((await get('tokeninfo', renewed.access_token)).status, 200)
    t.equal((await kit.inject({ url: '/api/v1/user', headers: { authorization: `Bearer ${renewed.access_token}` } })).statusCode, 401, 'not at our own API')
    t.equal(agent.fetches, 1)
    const record = (await records.get(agent.clientId))!
    t.match(record, { name: 'Notes reader', document: { method: 'none' }, grants: ['code', 'refresh'], scopes: [] })
    t.notOk('userId' in record || 'secret' in record || 'first_party' in record)
    t.equal((await stored.get(record.document!.id))!.expired_at, undefined)
    t.match((await kit.events.list({ client: agent.clientId })).map(({ type, user_id }) => [type, user_id]), [['sign_in.succeeded', user.user_id], ['client.document_added', undefined], ['app.connected', user.user_id]])
  })

  await t.test('a request with the resource and no scope asks for what the resource opens to documents', async (t) => {
    const agent = kit.agent()
    const page = await ask(agent, { scope: undefined, resource: RESOURCE.id })
    t.match(page, { left: undefined, title: 'Continue to agent.example', text: /read your notes/ })
    t.notMatch(page.text, /change your notes/)
    const tokens = await agent.authorize(user, { scope: '', resource: RESOURCE.id })
    t.match(tokens, { scope: 'notes:read', refresh_token: undefined, id_token: undefined })
    t.match((await get('tokeninfo', tokens.access_token)).body, { data: { scopes: ['notes:read'], aud: RESOURCE.id, roles: {} } })
    t.equal((await open(kit.agent({ scope: 'notes:write' }), { scope: undefined, resource: RESOURCE.id })).error, 'invalid_target', 'its document leaves nothing')
    for (const resource of ['https://closed.example/', `${harness.url}/api/v1`]) t.match(await open(agent, { scope: undefined, resource }), { left: undefined, error: 'invalid_target' }, resource)
    t.match(await ask(agent, { scope: undefined }), { title: 'Continue to agent.example' }, 'without a resource it signs in')
  })

  await t.test('a document that says require_signed_request_object is held to it, until it says so no more', async (t) => {
    const key = createTestKey('ES256', 'ec')
    const agent = kit.agent({ token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [key.jwk] }, require_signed_request_object: true })
    const app = toApp(agent)
    const params = Object.fromEntries(new URL(askCode(app, { scope: 'openid' }).url, harness.url).searchParams)
    t.match(await open(agent), { left: undefined, error: 'invalid_request' })
    const push = async (fields: Record<string, string>) => await post('par', { ...fields, ...toFields(await assert(agent.clientId, harness.url, key)) })
    t.match(await push(params), { status: 400, body: { error: 'invalid_request' } }, 'pushed')
    const consent = async (query: Record<string, string>) => {
      const page = await (await browser().open(`/api/v1/auth/authorize?${new URLSearchParams(query)}`)).submit({ account: user.account, password: user.password })
      t.match(page.title, /^Continue to/)
      return (await page.submit({ decision: 'allow' })).left?.searchParams.get('code')
    }
    t.type(await consent({ client_id: agent.clientId, request: await assert(agent.clientId, harness.url, key, { sub: undefined, ...params }) }), 'string', 'signed')
    t.equal((await records.get(agent.clientId))?.signedRequests, 'required')
    t.match(await documents.test(agent.clientId), { require_signed_request_object: true })
    agent.document.require_signed_request_object = false
    await documents.refresh(agent.clientId)
    t.type(await consent(params), 'string', 'without a signature')
    t.equal((await records.get(agent.clientId))?.signedRequests, undefined)
  })

  await t.test('a document that says first_party, vouched, own_scopes or registered_uris is not believed', async (t) => {
    const evil = 'https://evil.example/steal'
    const agent = kit.agent({
      first_party: true,
      vouched: true,
      own_scopes: ['users:read', 'notes:write'],
      declared_scopes: ['users:read'],
      registered_uris: [evil],
      owner: user.user_id,
      epoch: 1e15,
      public: false,
      accepted: true,
      grants: ['client', 'device'],
      document: { print: '', accepted: true },
      skip_consent: true,
      trusted: true,
      roles: { admin: true },
      scopes: ['users:read'],
      admin_scopes: ['users:read'],
      ...Object.fromEntries(['sector_identifier_uri', 'backchannel_logout_uri', 'frontchannel_logout_uri', 'backchannel_client_notification_endpoint', 'logo_uri', 'jwks_uri', 'initiate_login_uri'].map((name) => [name, evil])),
      subject_type: 'pairwise',
      request_uris: [evil],
      post_logout_redirect_uris: [evil]
    })
    t.match(await open(agent, { redirect_uri: evil }), { left: undefined, response: { status: 400 }, text: /invalid_redirect_uri/ })
    for (const scope of ['openid users:read', 'openid account:read', 'openid roles', 'openid notes:write', 'openid made:up', 'clients:write']) {
      t.match(await open(agent, { scope }), { left: undefined, error: /invalid_scope|invalid_target/ }, scope)
    }
    for (const resource of ['https://id.example/api/v1', `${harness.url}/api/v1`]) t.match(await open(agent, { resource, scope: 'openid users:read' }), { left: undefined, error: /invalid_scope|invalid_target/ })
    const page = await ask(agent)
    t.match(page, { left: undefined, title: 'Continue to agent.example', text: /This app isn’t registered here/ })
    t.equal(await records.get(agent.clientId), null, 'nothing is stored before the decision')
    const left = (await page.submit({ decision: 'allow' })).left!
    t.match(left.href, /^https:\/\/agent\.example\/callback\?code=/)
    const record = (await records.get(agent.clientId))!
    t.strictSame(Object.keys(record).filter((key) => !/^event/.test(key)).sort(), ['createdAt', 'document', 'epoch', 'grants', 'id', 'modifiedAt', 'name', 'redirectUris', 'revision', 'scopes', 'tokenAuth', 'words'])
    t.strictSame([record.grants, record.scopes, record.tokenAuth], [['code', 'refresh'], [], 'none'])
    for (const scope of ['', 'users:read']) t.match(await post('token', { grant_type: 'client_credentials', scope }, toApp(agent)), { status: 400, body: { error: /unauthorized_client|invalid_request/ } })
    t.match(await post('device_authorization', { scope: 'openid' }, toApp(agent)), { status: 400 })
    const out = `session/end?${new URLSearchParams({ client_id: agent.clientId, post_logout_redirect_uri: evil })}`
    t.match(await page.browser.open(`/api/v1/auth/${out}`), { left: undefined, response: { status: 400 } })
    await kit.flush()
    t.strictSame([agent.fetches, others], [1, []], 'nothing but the document is fetched or called')
  })

  await t.test('a token of a removed client stays dead when somebody allows the same document again', async (t) => {
    const agent = kit.agent()
    const first = await agent.authorize(user)
    const tokens = store.collection('access_tokens')
    const kept = (await Array.fromAsync(tokens.page({ filter: { equal: { client_id: agent.clientId } } }))).flat()
    t.equal((await get('userinfo', first.access_token)).status, 200)
    await clients.remove(agent.clientId, OPERATOR)
    await kit.app.identity.tokens.settle()
    kit.clock.advance(1)
    await agent.authorize(user)
    // As if the process had died before it deleted the tokens and the session.
    const grants = store.collection<GrantRecord>('grants')
    const [grant] = (await Array.fromAsync(grants.page({ filter: { equal: { client_id: agent.clientId } } }))).flat()
    for (const token of kept) await tokens.put({ ...token, grant_id: grant!.id } as never)
    t.equal((await get('userinfo', first.access_token)).status, 401)
    await t.rejects(agent.refresh(first.refresh_token!), /invalid_grant/)
  })

  await t.test('the consent page says the host first, and asks again when the document changes before, during and after', async (t) => {
    const agent = kit.agent({ client_name: 'Your bank' })
    const one = browser()
    const page = await ask(agent, {}, one)
    t.match(page.text, /<h1>[^<]*<bdi>agent\.example<\/bdi>[^<]*<\/h1>\s*<p>It calls itself <bdi>Your bank<\/bdi>/)
    t.match(page.text, /You’ll be sent to <bdi>agent\.example<\/bdi>/)
    agent.document.client_name = 'Your other bank'
    await documents.refresh(agent.clientId)
    const shown = await page.submit({ decision: 'allow' })
    t.match(shown, { left: undefined, text: /Your other bank/ }, 'the page is shown again')
    t.equal(await records.get(agent.clientId), null)
    t.match((await shown.submit({ decision: 'allow' })).left?.search, /code=/)
    t.match(await records.get(agent.clientId), { name: 'Your other bank' })
    t.match(readLocation((await open(agent, {}, one)).left), { code: String }, 'the same browser is not asked again')
    agent.document.redirect_uris = ['https://agent.example/callback', 'https://agent.example/other']
    await documents.refresh(agent.clientId)
    const again = await open(agent, {}, one)
    t.match(again.title, /Continue to/)
    await again.submit({ decision: 'allow' })
    t.match(readLocation((await open(agent, {}, one)).left), { code: String })
    agent.document.scope = 'notes:read'
    await documents.refresh(agent.clientId)
    t.match(readLocation((await open(agent, {}, one)).left), { code: String }, 'a scope of its own narrows it, and asks nobody')
    t.match((await kit.events.list({ client: agent.clientId, type: 'client.document_changed' })).map(({ changed }) => changed), [['redirectUris']])
  })

  await t.test('the document changes between the decision and the code: there is no code for what nobody has seen', async (t) => {
    const agent = kit.agent()
    const page = await ask(agent)
    const [, action = ''] = /<form[^>]* action="([^"]*)"/.exec(page.text) ?? []
    const [, print = ''] = /name="document" value="([^"]*)"/.exec(page.text) ?? []
    const decided = await page.browser.fetch(action, { method: 'POST', body: new URLSearchParams({ decision: 'allow', document: print }), headers: { origin: harness.url } })
    agent.document.client_name = 'Somebody else'
    await documents.refresh(agent.clientId)
    const next = await page.browser.open(decided.headers.get('location')!)
    t.match(next, { left: undefined, text: /Somebody else/ })
    t.match(readLocation((await next.submit({ decision: 'allow' })).left), { code: String })
    for (const document of ['made up', '']) {
      const other = kit.agent()
      const { text, browser: one } = await ask(other)
      const body = new URLSearchParams({ decision: 'allow', document })
      const shown = await one.open(/<form[^>]* action="([^"]*)"/.exec(text)![1]!, { method: 'POST', body, headers: { origin: harness.url } })
      t.match(shown, { left: undefined, title: /Continue to/ }, 'a version that nobody was shown')
      t.equal(await records.get(other.clientId), null)
    }
  })

  await t.test('without a stored client, prompt=none is consent_required', async (t) => {
    const agent = kit.agent()
    const one = browser()
    await ask(kit.agent(), {}, one)
    t.match(readLocation((await open(agent, { prompt: 'none' }, one)).left), { error: 'consent_required' })
    const page = await ask(agent, {}, one)
    await page.submit({ decision: 'allow' })
    t.match(readLocation((await open(agent, { prompt: 'none' }, one)).left), { code: String })
    await clients.remove(agent.clientId, OPERATOR)
    t.match(readLocation((await open(agent, { prompt: 'none' }, one)).left), { error: 'consent_required' }, 'the browser remembers the consent, and the client is gone')
  })

  await t.test('Claude Code: a program on the device, with any port, asked each time', async (t) => {
    const agent = kit.agent({ client_name: 'Claude Code', redirect_uris: ['http://localhost/callback', 'http://127.0.0.1/callback'], grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] })
    const one = browser()
    for (const redirect_uri of ['http://127.0.0.1:53682/callback', 'http://localhost:1234/callback']) {
      const page = await ask(agent, { redirect_uri }, one)
      t.match(page.title, 'Continue to agent.example')
      t.match(page.text, /an app on this computer/)
      t.match((await page.submit({ decision: 'allow' })).left?.href.startsWith(`${redirect_uri}?code=`), true)
    }
    t.match(await open(agent, { redirect_uri: 'http://127.0.0.1:53682/other' }, one), { left: undefined, text: /invalid_redirect_uri/ })
    const code = await getCode(harness, toApp(agent, 'http://127.0.0.1:4000/callback'), { scope: 'openid offline_access' })
    const { body } = await post('token', code, toApp(agent))
    t.match(await agent.refresh(String(body.refresh_token)), { access_token: String })
  })

  await t.test('ChatGPT: RS256 at a jwks_uri, and another key between two refreshes', async (t) => {
    const [first, second] = [createTestKey('RS256', 'one'), createTestKey('RS256', 'two')]
    const host = kit.agent({ client_id: 'https://agent.example/keys' })
    const serve = (...keys: TestKey[]) => { host.answer = { body: JSON.stringify({ keys: keys.map(({ jwk }) => jwk) }) } }
    serve(first)
    const agent = kit.agent({ client_name: 'ChatGPT', token_endpoint_auth_method: 'private_key_jwt', token_endpoint_auth_signing_alg: 'RS256', jwks_uri: host.clientId, logo_uri: 'https://agent.example/logo.png' })
    const { issuer } = (await get('../../../.well-known/openid-configuration')).body as { issuer: string }
    const prove = async (key: TestKey, kid = key.jwk.kid) => toFields(await assert(agent.clientId, issuer, key, {}, { kid }))
    const code = await getCode(harness, toApp(agent), { scope: 'openid offline_access' })
    t.equal((await post('token', { ...code, client_id: agent.clientId })).status, 401, 'never public')
    const { body } = await post('token', { ...code, ...await prove(first) })
    t.match(body, { access_token: String, refresh_token: String })
    const refresh = async (from: Record<string, unknown>, fields: object) => await post('token', { grant_type: 'refresh_token', refresh_token: String(from.refresh_token), ...fields })
    const again = await refresh(body, await prove(first))
    t.equal(again.status, 200)
    t.equal((await records.get(agent.clientId))!.keys!.length, 1)

    const [{ id: formerKey }] = (await records.get(agent.clientId))!.keys as [ClientKey]
    await uses.put({ id: agent.clientId, [`use:${formerKey}`]: '2026-01-01T00:00:00.000Z' })
    serve(second)
    const before = host.fetches
    t.equal((await refresh(again.body, await prove(second))).status, 401, 'not a second fetch within a minute')
    t.equal(host.fetches, before)
    kit.clock.advance(61 * SECOND)
    const rotated = await refresh(again.body, await prove(second))
    t.equal(rotated.status, 200)
    t.equal(host.fetches, before + 1)
    t.equal((await get('tokeninfo', String(again.body.access_token))).status, 401, 'the tokens of the former key ended')
    t.equal((await get('tokeninfo', String(rotated.body.access_token))).status, 200)
    t.equal((await post('introspect', { token: String(rotated.body.access_token), ...await prove(second) })).body.active, true)
    t.equal((await refresh(rotated.body, await prove(first))).status, 401, 'the former key')
    t.match((await kit.events.list({ client: agent.clientId })).map(({ type }) => type).includes('client.keys_changed'), true)
    t.strictSame(await uses.get(agent.clientId), { id: agent.clientId }, 'the last use of a former key is forgotten')
    const { document } = await clients.require(agent.clientId, OPERATOR)
    t.match(await clients.listKeys(document!.id, OPERATOR), [{ kid: 'two', lastUsedAt: String }], 'by the id of the document too')

    host.answer = down
    kit.clock.advance(2 * DAY)
    const down_ = await refresh(rotated.body, await prove(second))
    t.equal(down_.status, 200, 'the last good ones serve while the host is down')
    kit.clock.advance(6 * DAY)
    t.equal((await refresh(down_.body, await prove(second))).status, 401, 'for seven days')
    host.answer = undefined
    serve(second)
    kit.clock.advance(61 * SECOND)
    await refresh(down_.body, await prove(second))
    const isBack = async () => (await refresh(down_.body, await prove(second))).status === 200
    await waitUntil('the host is back: fetched in the background', isBack)

    const [third, fourth] = [createTestKey('RS256', 'three'), createTestKey('RS256', 'four')]
    const asked = Object.fromEntries(new URL(askCode(toApp(agent), { scope: 'openid' }).url, harness.url).searchParams)
    serve(third)
    kit.clock.advance(61 * SECOND)
    t.equal((await post('par', { ...asked, ...await prove(third) })).status, 201, 'a pushed request by another key')
    serve(fourth)
    kit.clock.advance(61 * SECOND)
    const request = await assert(agent.clientId, issuer, fourth, { sub: undefined, ...asked }, { kid: 'four' })
    t.match((await signIn(harness, `/api/v1/auth/authorize?${new URLSearchParams({ client_id: agent.clientId, request })}`)).left?.search, /code=/, 'a signed one by another key')
  })

  await t.test('redirects to a named host, and to a named private scheme', async (t) => {
    const client_id = 'https://editor.example/client.json'
    const agent = kit.agent({ client_id, redirect_uris: ['https://cdn.example/cb', 'editor://auth/cb', 'https://editor.example/cb'] })
    for (const redirect_uri of agent.document.redirect_uris as string[]) {
      t.match((await (await ask(agent, { redirect_uri })).submit({ decision: 'allow' })).left?.href.startsWith(`${redirect_uri}?code=`), true, redirect_uri)
    }
    t.match(await ask(agent, { redirect_uri: 'editor://auth/cb' }), { text: /an app on this device that opens/ })
  })

  await t.test('why an agent was refused: the log, the event and the test name the rule and the value, and the page what the request alone shows', async (t) => {
    const cases: [string, string, Record<string, unknown>][] = [
      ['host', 'evil.example', { client_id: 'https://evil.example/client.json' }],
      ['redirect_host', 'https://evil.example/cb', { redirect_uris: ['https://agent.example/cb', 'https://evil.example/cb?a=b'] }],
      ['token_endpoint_auth_method', 'client_secret_post', { token_endpoint_auth_method: 'client_secret_post' }]
    ]
    for (const [rule, value, document] of cases) {
      const agent = kit.agent(document)
      for (let count = 0; count < 2; count++) {
        const page = await open(agent)
        t.match(page, { left: undefined, response: { status: 400 } })
        t.equal(page.error, 'invalid_client')
        if (rule === 'host') t.match(page.text.replaceAll('&#x2F;', '/'), new RegExp(`the document of the client was refused: ${rule}: [^<]*: ${value}`))
        else t.match(page.text, /<\/code> the document of the client could not be read</)
        if (rule !== 'host') t.notMatch(page.text, value)
      }
      await t.rejects(documents.test(agent.clientId), { name: 'DocumentError', rule, value })
      const events = (await kit.events.list({ type: 'client.document_refused' })).filter(({ target }) => target.id === agent.clientId)
      t.match(events[0], { outcome: 'failure', refusal: { rule, value } })
      t.equal(events[0]!.user_id, undefined)
      t.equal(agent.fetches, rule === 'host' ? 0 : 2, 'one for two pages, and one for the test')
    }
    t.match((await open(kit.agent({ client_id: 'https://agent.example/a#b' }))).text, /url: must not have a fragment/)
    t.match(await post('par', { response_type: 'code', redirect_uri: 'https://evil.example/cb', code_challenge: 'x'.repeat(43), code_challenge_method: 'S256' }, toApp(kit.agent({ redirect_uris: ['https://evil.example/cb'] }))), { status: /400|401/, body: { error: 'invalid_client' } })
  })

  await t.test('a failure is remembered for a minute', async (t) => {
    const agent = kit.agent()
    agent.answer = down
    for (let count = 0; count < 3; count++) t.match((await open(agent)).text, /<\/code> the document of the client could not be read</)
    t.equal(agent.fetches, 1)
    agent.answer = undefined
    t.equal((await open(agent)).response.status, 400)
    kit.clock.advance(MINUTE)
    t.match((await open(agent)).title, 'Sign in')
  })

  await t.test('ten new documents a minute are fetched for one address; another one waits', async (t) => {
    const agents = Array.from({ length: 11 }, () => kit.agent())
    const statuses: number[] = []
    for (const agent of agents) statuses.push((await open(agent)).response.status)
    t.strictSame(statuses, [...Array<number>(10).fill(200), 503])
    const { response, text } = await open(agents[10]!)
    t.ok(Number(response.headers.get('retry-after')) > 0)
    t.match(text, /rate: at most 10 new documents a minute/)
    t.match((await open(agents[0]!)).title, 'Sign in', 'a known one is served')
    t.strictSame(agents.map(({ fetches }) => fetches), [...Array<number>(10).fill(1), 0])
    kit.clock.advance(MINUTE)
    t.match((await open(agents[10]!)).title, 'Sign in')
  })

  await t.test('eight networks with made-up documents of the host keep no new agent out', async (t) => {
    const openFrom = async (app: App, remoteAddress: string) => await kit.inject({ url: askCode(app, { scope: 'openid' }).url, remoteAddress, headers: { accept: 'text/html' } })
    const toMadeUp = (name: string) => ({ ...toApp(kit.agent()), client_id: `https://agent.example/none-${name}` })
    for (let network = 0; network < 8; network++) {
      const statuses: number[] = []
      for (let count = 0; count < 6; count++) {
        kit.clock.advance(SECOND)
        statuses.push((await openFrom(toMadeUp(`${network}-${count}`), `192.0.2.${network}`)).statusCode)
      }
      t.strictSame(statuses, [400, 400, 400, 400, 400, 503], 'five failures a minute')
    }
    t.equal((await openFrom(toApp(kit.agent()), '198.51.100.1')).statusCode, 303)
    t.equal((await openFrom(toApp(kit.agent()), '192.0.2.7')).statusCode, 503)
    others.length = 0
    t.match((await open(kit.agent())).title, 'Sign in')
  })

  await t.test('it is read again when it is no longer fresh; a host that is down does not matter for seven days, nor to refresh tokens', async (t) => {
    const agent = kit.agent()
    const { refresh_token } = await agent.authorize(user)
    kit.clock.advance(59 * MINUTE)
    await open(agent)
    t.equal(agent.fetches, 1)
    kit.clock.advance(2 * MINUTE)
    await open(agent)
    t.equal(agent.fetches, 2)
    agent.answer = down
    kit.clock.advance(6 * DAY)
    t.match((await open(agent)).title, 'Sign in')
    t.match((await open(agent)).title, 'Sign in', 'also while the failure is remembered')
    t.equal(agent.fetches, 3)
    kit.clock.advance(2 * DAY)
    t.match((await open(agent)).text, /could not be read/)
    t.match(await agent.refresh(refresh_token!), { access_token: String })
    agent.answer = undefined
    kit.clock.advance(MINUTE)
    t.match((await open(agent)).title, 'Sign in')
    agent.answer = { body: '{"client_id": "another"}' }
    kit.clock.advance(2 * HOUR)
    t.match((await open(agent)).text, /could not be read/, 'a wrong document is no outage')
  })

  await t.test('a document that is gone twice, an hour apart, signs nobody in; one that comes back does', async (t) => {
    const agent = kit.agent()
    const { refresh_token } = await agent.authorize(user)
    const missing = { status: 404, body: '' }
    agent.answer = missing
    kit.clock.advance(2 * HOUR)
    t.match((await open(agent)).title, 'Sign in')
    kit.clock.advance(30 * MINUTE)
    t.match((await open(agent)).title, 'Sign in', 'half an hour later it may be a mistake')
    agent.answer = undefined
    kit.clock.advance(10 * MINUTE)
    await open(agent)
    agent.answer = { status: 410, body: '' }
    kit.clock.advance(2 * HOUR)
    t.match((await open(agent)).title, 'Sign in', 'the first time again')
    kit.clock.advance(61 * MINUTE)
    t.match((await open(agent)).text, /could not be read/)
    t.match(await agent.refresh(refresh_token!), { access_token: String })
    agent.answer = undefined
    kit.clock.advance(MINUTE)
    t.match((await open(agent)).title, 'Sign in')
  })

  await t.test('it is forgotten an hour after its last use, unless somebody has consented', async (t) => {
    const agent = kit.agent()
    await open(agent)
    const [found] = (await Array.fromAsync(documents.list())).flat().filter(({ url }) => url === agent.clientId)
    t.match(found, { state: 'new', id: /^document:[\w-]{43}$/, name: 'An agent' })
    const { expired_at } = (await stored.get(found!.id.slice(9)))!
    t.equal(Date.parse(expired_at!), kit.clock.now() + HOUR)
    kit.clock.advance(50 * MINUTE)
    await open(agent)
    t.equal(Date.parse((await stored.get(found!.id.slice(9)))!.expired_at!), kit.clock.now() + HOUR)
    kit.clock.advance(61 * MINUTE)
    await open(agent)
    t.equal(agent.fetches, 2, 'fetched as a new one')
  })

  await t.test('an operator blocks one, also before its first use and between the page and the decision', async (t) => {
    const admin = callAs(kit, (await mintFor(kit, { roles: ['admin'] })).headers)
    const agent = kit.agent()
    const { access_token, refresh_token } = await agent.authorize(user)
    const { body } = await admin.get<{ data: { clientId: string, document: { id: string, host: string }, userId?: string }[] }>('/client/list?limit=0')
    const listed = body.data.find(({ clientId }) => clientId === agent.clientId)!
    t.match(listed, { document: { id: /^document:/, host: 'agent.example' }, userId: undefined })
    t.notOk((await callAs(kit, (await mintFor(kit, {})).headers).get<{ data: { clientId: string }[] }>('/client/list?limit=0')).body.data.some(({ clientId }) => clientId === agent.clientId), 'only administrators see it')
    for (const id of [listed.document.id, encodeURIComponent(agent.clientId)]) t.match((await admin.get(`/client/${id}`)).body, { data: { clientId: agent.clientId } }, id)
    for (const data of [{ first_party: true }, { scopes: ['users:read'] }, { redirectUris: ['https://evil.example/'] }, { name: 'x' }, { grants: ['client'] }, { roles: { admin: true } }, { backchannelLogoutUri: 'https://evil.example/' }]) {
      t.match(await admin.patch(`/client/${listed.document.id}`, { data }), { status: 400, body: { code: 'ErrParam', message: new RegExp(`^${Object.keys(data)[0]}: `) } })
    }
    t.match(await admin.patch(`/client/${listed.document.id}`, { take_over: true }), { status: 400 })
    t.match(await admin.patch(`/client/${listed.document.id}`, { data: { disabled: true } }), { status: 204 })
    t.equal((await get('userinfo', access_token)).status, 401)
    await t.rejects(agent.refresh(refresh_token!), /invalid_client|invalid_grant/)
    t.match((await open(agent)).text, /blocked: the operator has blocked this client/)
    t.match(await admin.patch(`/client/${encodeURIComponent(agent.clientId)}`, { data: { disabled: false } }), { status: 204 })
    t.match((await open(agent)).title, 'Sign in')

    const unseen = kit.agent()
    const block = { data: { url: unseen.clientId } }
    t.match(await admin.post('/client/document/block', block), { status: 204 })
    t.match((await open(unseen)).text, /blocked/)
    t.equal(unseen.fetches, 0)
    t.match(await admin.post('/client/document/block', block), { status: 204 }, 'twice is once')
    const shown = (await admin.get<{ data: { id: string, url: string, state: string, name: string }[] }>('/client/document/list')).body.data.find(({ url }) => url === unseen.clientId)!
    t.match(shown, { state: 'blocked', name: '', id: /^document:[\w-]{43}$/ })
    const person = callAs(kit, (await mintFor(kit, {})).headers)
    for (const path of [shown.id, encodeURIComponent(unseen.clientId)]) t.match(await person.patch(`/client/${path}`, { data: { disabled: false } }), { status: 404 }, 'only an administrator finds it')
    t.match(await admin.patch(`/client/${shown.id}`, { data: { disabled: false } }), { status: 204 }, 'by the id of its document too')
    t.match(await unseen.authorize(user), { access_token: String })
    const events = await kit.events.list({ client: unseen.clientId })
    t.match(events.map(({ type }) => type), ['client.updated', 'client.updated', 'sign_in.succeeded', 'client.document_added', 'app.connected'])
    t.match(events[0], { actor: { via: 'api', user_id: String }, changed: ['disabled'] })

    const late = kit.agent()
    const page = await ask(late)
    await documents.block(late.clientId)
    t.match(await page.submit({ decision: 'allow' }), { left: undefined, response: { status: 400 } })
    t.match(await records.get(late.clientId), { disabled_at: String, redirectUris: [] })
    t.match(await admin.delete(`/client/${encodeURIComponent(late.clientId)}`), { status: 204 })
  })

  await t.test('over HTTP an administrator lists all documents, and has one read again', async (t) => {
    const admin = callAs(kit, (await mintFor(kit, { roles: ['admin'] })).headers)
    const agent = kit.agent()
    const body = { data: { url: agent.clientId } }
    t.match(await admin.post('/client/document/refresh', body), { status: 404, body: { code: 'ErrNotFound', message: 'url: no such document' } })
    await open(agent)
    const list = async () => (await admin.get<{ data: { url: string }[] }>('/client/document/list')).body.data.find(({ url }) => url === agent.clientId)
    t.match(await list(), { state: 'new', name: 'An agent', fetched_at: String, used_at: undefined })
    agent.document.client_name = 'Another name'
    t.match(await admin.post('/client/document/refresh', body), { status: 204 })
    t.match(await list(), { state: 'new', name: 'Another name' })
    const names = async (query: string) => (await admin.get<{ data: { name: string }[] }>(`/client/document/list?${query}`)).body.data.map(({ name }) => name)
    t.strictSame(await names('contains=OTHER%20n'), ['Another name'], 'by a part of the name, in any case')
    t.strictSame(await names('contains=nothing'), [])
    t.equal((await names('limit=1')).length, 1)
    // From here on, the list has only the documents that people have allowed.
    await stored.deleteMany({ before: { id: '~' } })
    await agent.authorize(user)
    t.match(await list(), { state: 'allowed', used_at: String })
    agent.document.client_name = ''
    t.match(await admin.post('/client/document/refresh', body), { status: 400, body: { code: 'ErrParam', message: /^url: client_name: must be a text/ } })
    for (const url of ['https://agent.example/', 'http://agent.example/a', `https://agent.example/${'x'.repeat(128)}`, 7]) {
      for (const path of ['block', 'refresh']) t.match(await admin.post(`/client/document/${path}`, { data: { url } }), { status: 400, body: { code: 'ErrParam' } }, `${path} ${url}`)
    }
  })

  await t.test('repo-harness#162: an unused client is removed after 90 days, and never one with a session, however old, or a block', async (t) => {
    const [unused, held, blocked] = [kit.agent(), kit.agent(), kit.agent()]
    const gone = await unused.authorize(user)
    await clients.patch(unused.clientId, { data: { disabled: false } }, OPERATOR)
    const { refresh_token } = await held.authorize(user)
    await documents.block(blocked.clientId)
    await kit.app.identity.ownSessions.disconnect(user.user_id, unused.clientId)
    kit.clock.advance(20 * DAY)
    const renewed = await held.refresh(refresh_token!)
    for (let count = 0; count < 3; count++) {
      kit.clock.advance(25 * DAY)
      renewed.refresh_token = (await held.refresh(renewed.refresh_token!)).refresh_token!
    }
    await uses.put({ id: unused.clientId, 'use:x': '2026-01-01T00:00:00.000Z' })
    const counted = await documents.sweep()
    t.ok(counted >= 1)
    t.strictSame([await records.get(unused.clientId), await uses.get(unused.clientId)], [null, null])
    t.ok(await records.get(held.clientId) !== null && await records.get(blocked.clientId) !== null)
    t.match(await held.refresh(renewed.refresh_token!), { access_token: String })
    t.equal((await get('userinfo', gone.access_token)).status, 401)
    t.match(await unused.authorize(user), { access_token: String }, 'it may come again')
    t.equal(await documents.sweep(), 0)
  })
})

eachStore(t, 'documents that are off, or accepted no longer', async (t, start) => {
  const harness = await start(OPTIONS)
  const { kit, user, url } = harness
  for (const path of ['openid-configuration', 'oauth-authorization-server']) t.match(await (await fetch(`${url}/.well-known/${path}`)).json(), { client_id_metadata_document_supported: true })
  const agent = kit.agent()
  const { refresh_token } = await agent.authorize(user)
  for (const oidc of [{}, { documents: { hosts: ['other.example'] } }]) {
    const later = await startIdentity({ t, oidc, store: kit.app.identity.store, rateLimit: false })
    const metadata = (await later.inject({ url: '/.well-known/oauth-authorization-server', headers: { accept: 'application/json' } })).json<object>()
    t.equal('client_id_metadata_document_supported' in metadata, 'documents' in oidc)
    t.equal(later.app.identity.documents === undefined, !('documents' in oidc))
    const { url } = askCode({ client_id: agent.clientId, client_secret: '', redirect_uri: 'https://agent.example/callback' })
    t.match((await later.inject({ url, headers: { accept: 'text/html' } })).body, /invalid_client/)
    const payload = String(new URLSearchParams({ grant_type: 'refresh_token', refresh_token: refresh_token!, client_id: agent.clientId }))
    const refused = await later.inject({ method: 'POST', url: '/api/v1/auth/token', headers: { 'content-type': 'application/x-www-form-urlencoded' }, payload })
    t.match([refused.statusCode, refused.json()], [401, { error: 'invalid_client' }])
  }
  t.match(await agent.refresh(refresh_token!), { access_token: String })
  t.equal(agent.fetches, 1)
})
