import { randomBytes } from 'node:crypto'
import t from 'tap'
import { hashToken } from '../../lib/crypto/random-token.ts'
import type { ClientRecord, NamedSecret } from '../../lib/records/client.ts'
import type { TokenRecord } from '../../lib/records/token.ts'
import { type App, type Harness, eachStore, startHarness } from './harness.ts'

// All endpoints that authenticate clients, and introspection, which the service answers itself.

const DAY = 24 * 60 * 60 * 1000

const ASSERTION = { client_assertion: 'e30.e30.e30', client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer' }

const basic = (id: string, secret: string) => ({ authorization: `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString('base64')}` })

const named = (id: string, secret: string, more: Partial<NamedSecret> = {}): NamedSecret =>
  ({ id, name: id, hash: hashToken(secret), last4: secret.slice(-4), created_at: '2026-01-01T00:00:00.000Z', ...more })

/** What the endpoints ask for, beside the credentials. */
const FIELDS = {
  token: { grant_type: 'client_credentials' },
  introspect: { token: 'x' },
  revoke: { token: 'x' },
  par: { response_type: 'code', redirect_uri: 'https://app.example/cb', code_challenge: 'c'.repeat(43), code_challenge_method: 'S256' },
  device_authorization: {}
}

/** Whether the request authenticates, by what each endpoint answers. */
async function judge ({ post }: Harness, fields: Record<string, string>, headers: Record<string, string>): Promise<Record<string, string>> {
  const outcomes = await Promise.all(Object.entries(FIELDS).map(async ([path, own]) => {
    const { status, body } = await post(path, { ...own, ...fields }, undefined, headers)
    const refused = body.error === 'invalid_client' || /one mechanism|client_id mismatch|no client authentication|authorization header/i.test(String(body.error_description ?? ''))
    return [path, refused ? `${status} ${body.error}` : 'authenticated']
  }))
  return Object.fromEntries(outcomes) as Record<string, string>
}

eachStore(t, 'one judge for all endpoints: the same credentials get the same verdict', async (t, start) => {
  const harness = await start()
  const { kit, register } = harness
  const records = kit.app.identity.store.collection<ClientRecord>('clients')
  const change = async (app: App, fields: Partial<ClientRecord>, unset: string[] = []) => {
    await records.update(app.client_id, { set: fields, unset })
    return app
  }
  const time = (ahead: number) => new Date(kit.clock.now() + ahead).toISOString()
  const secret = randomBytes(32).toString('base64url')
  const app = await register()
  const open = await register({ public: true })
  const many = await change(await register(), { secrets: [named('s1', secret), named('s2', `${secret}2`, { expires_at: time(DAY) }), named('s3', `${secret}3`, { expires_at: time(-1) })] })
  const only = await change(await register(), { tokenAuth: 'secret', secrets: [named('s1', secret)] }, ['secret'])
  const none = await change(await register(), { tokenAuth: 'secret' }, ['secret'])
  const disabled = await change(await register(), { disabled_at: time(0) })
  const keys = await change(await register(), { tokenAuth: 'private_key_jwt' })
  const window = await change(await register(), { tokenAuth: 'private_key_jwt', former_auth: { method: 'secret', until: time(DAY) } })
  const past = await change(await register(), { tokenAuth: 'private_key_jwt', former_auth: { method: 'secret', until: time(0) } })

  const yes = 'authenticated'
  const cases: Record<string, [expected: string, fields: Record<string, string>, headers?: Record<string, string>]> = {
    Basic: [yes, {}, basic(app.client_id, app.client_secret)],
    'the form': [yes, { client_id: app.client_id, client_secret: app.client_secret }],
    'Basic and the same id in the form': [yes, { client_id: app.client_id }, basic(app.client_id, app.client_secret)],
    'Basic and another id in the form': ['400 invalid_request', { client_id: open.client_id }, basic(app.client_id, app.client_secret)],
    'Basic and the form at once': ['400 invalid_request', { client_id: app.client_id, client_secret: app.client_secret }, basic(app.client_id, app.client_secret)],
    'a wrong secret': ['401 invalid_client', {}, basic(app.client_id, 'wrong')],
    'an empty secret': ['400 invalid_request', {}, basic(app.client_id, '')],
    'nothing of a confidential client': ['401 invalid_client', { client_id: app.client_id }],
    'an assertion of nobody': ['401 invalid_client', { client_id: app.client_id, ...ASSERTION }],
    'an unknown client': ['401 invalid_client', { client_id: 'nobody' }],
    'no client': ['400 invalid_request', {}],
    'a secret of a public client': ['401 invalid_client', { client_id: open.client_id, client_secret: 'x' }],
    'a broken header': ['400 invalid_request', {}, { authorization: 'Basic %%%' }],
    'the first secret beside named ones': [yes, {}, basic(many.client_id, many.client_secret)],
    'a named secret': [yes, {}, basic(many.client_id, secret)],
    'a named secret in the form': [yes, { client_id: many.client_id, client_secret: secret }],
    'a named secret that ends later': [yes, {}, basic(many.client_id, `${secret}2`)],
    'a named secret that has ended': ['401 invalid_client', {}, basic(many.client_id, `${secret}3`)],
    'the hash of a named secret': ['401 invalid_client', {}, basic(many.client_id, hashToken(secret))],
    'a named secret of a client without a readable one': [yes, {}, basic(only.client_id, secret)],
    'nothing of a client without a readable secret': ['401 invalid_client', { client_id: only.client_id }],
    'nothing of a confidential client without any secret': ['401 invalid_client', { client_id: none.client_id }],
    'its former secret': ['401 invalid_client', {}, basic(none.client_id, none.client_secret)],
    'a disabled client': ['401 invalid_client', {}, basic(disabled.client_id, disabled.client_secret)],
    'a secret of a client that has keys': ['401 invalid_client', {}, basic(keys.client_id, keys.client_secret)],
    'nothing of a client that has keys': ['401 invalid_client', { client_id: keys.client_id }],
    'the former method within its time': [yes, {}, basic(window.client_id, window.client_secret)],
    'nothing within that time': ['401 invalid_client', { client_id: window.client_id }],
    'the former method after its time': ['401 invalid_client', {}, basic(past.client_id, past.client_secret)]
  }
  for (const [name, [expected, fields, headers = {}]] of Object.entries(cases)) {
    t.strictSame(await judge(harness, fields, headers), Object.fromEntries(Object.keys(FIELDS).map((path) => [path, expected])), name)
  }
  const publicly = await judge(harness, { client_id: open.client_id }, {})
  t.strictSame({ ...publicly, token: '' }, { token: '', introspect: yes, revoke: yes, par: yes, device_authorization: yes }, 'a public client by its id alone')

  // What oidc-provider has instead of secrets is no credential.
  for (const path of ['token', 'introspect'] as const) {
    const { status } = await harness.post(path, { ...FIELDS[path], client_id: only.client_id, client_secret: '' })
    t.equal(status, 401, path)
  }
})

t.test('an access token names the secret that got it, and lives no longer than the client has that secret', async (t) => {
  const harness = await startHarness(t)
  const { kit, register, post } = harness
  const { store } = kit.app.identity
  const records = store.collection<ClientRecord>('clients')
  const app = await register()
  const secret = randomBytes(32).toString('base64url')
  await records.update(app.client_id, { set: { secrets: [named('s1', secret)] as never } })
  const get = async (text: string) => String((await post('token', { grant_type: 'client_credentials' }, { ...app, client_secret: text })).body.access_token)
  const [first, second] = [await get(app.client_secret), await get(secret)]
  const tokens = store.collection<TokenRecord>('access_tokens')
  t.equal((await tokens.get(hashToken(first)))?.auth_id, 'first')
  t.equal((await tokens.get(hashToken(second)))?.auth_id, 's1')
  const alive = async (token: string) => (await post('introspect', { token }, { ...app, client_secret: secret })).body.active
  t.strictSame([await alive(first), await alive(second)], [true, true])
  await records.update(app.client_id, { set: { tokenAuth: 'secret' }, unset: ['secret'] })
  t.strictSame([await alive(first), await alive(second)], [false, true], 'the readable one is gone')
  const device = await post('device_authorization', { scope: 'openid' }, { ...app, client_secret: secret })
  t.notOk(JSON.stringify(await store.collection('device_codes').get(hashToken(String(device.body.device_code))))?.includes('auth_id'))
  await records.update(app.client_id, { set: { secrets: [named('s1', secret, { expires_at: new Date(kit.clock.now() + 1_000).toISOString() })] as never } })
  kit.clock.advance(2_000)
  t.match((await harness.get('tokeninfo', second)).status, 200, 'the end of a secret ends no token')
})
