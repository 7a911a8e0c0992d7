import t, { type Test } from 'tap'
import type { DeliveryRecord } from '../../lib/mail/delivery.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import type { Document, Json } from '../../lib/store/port.ts'
import type { WorkRecord } from '../../lib/work/record.ts'
import type { WebhookRecord } from '../../lib/webhooks/record.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { Pace } from '../../lib/work/pace.ts'
import { recordBackup } from '../../lib/maintenance/last-backup.ts'
import { prepareIdentity } from '../../plugins/prepare.ts'
import type { Setting, Status } from '../../schemas/status.ts'
import type { TestKit } from '../../testing/index.ts'
import { forEachStore } from '../helpers/build.ts'
import { createTimers } from '../helpers/timers.ts'
import { type Person, signIn } from '../helpers/people.ts'

t.setTimeout(120_000)

const DAY = 86_400_000
const ISSUER = 'https://id.example'

const read = async (admin: Person, query = ''): Promise<Status> => {
  const { status, body } = await admin.get<{ data: Status }>(`/status${query}`)
  if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`)
  return body.data
}

/** A piece of work in a collection of it. */
function createWork (kit: TestKit, fields: Partial<WorkRecord> & Record<string, Json>): WorkRecord {
  const time = kit.clock.now()
  const [ago, later] = [new Date(time - 10 * 60_000).toISOString(), new Date(time + DAY).toISOString()]
  return {
    id: `work-${Math.random()}`, state: 'due', due_at: ago, claim: 0, attempts: 1, created_at: ago, ends_at: later, expired_at: later, ...fields
  }
}

/** Puts work of a kind into its queue: due for ten minutes, or given up. */
const WORK: Record<string, [collection: string, fields: Record<string, Json>]> = {
  mail: ['deliveries', { kind: 'recovery' }],
  logout: ['logouts', { client_id: 'app', user_id: 'ann', uids: [] }],
  webhook: ['webhook_failures', { webhook_id: 'hook', event_id: 'event', type: 'user.created' }],
  secret: ['secret_ends', { client_id: 'app', until: '2020-01-01T00:00:00.000Z' }]
}

async function addWork (kit: TestKit, kind: string, state: 'due' | 'failed'): Promise<void> {
  const [collection, fields] = WORK[kind]!
  await kit.app.identity.store.collection<WorkRecord & Document>(collection).insert(createWork(kit, { ...fields, state }))
}

/** A mail server that this process alone would call, so that nothing of it is done unless a test asks for it. */
const LOCAL = { local: true, send: async () => {} }

const MARK = 'Marked0Marked0Marked0Marked0Marked0Mar'
const KEY = Buffer.from(MARK.slice(0, 32)).toString('base64')

await forEachStore(t, async (t, buildOne) => {
  /** An empty service, whose database all cases share. */
  async function build (t: Test, options: Parameters<typeof buildOne>[1] = {}): Promise<TestKit> {
    const kit = await buildOne(t, { secretKey: KEY, ...options })
    await kit.reset()
    await kit.app.identity.store.collection('meta').delete('last-backup')
    return kit
  }

  t.test('nothing needs attention at first, and what to set up next is said with its option and its variable', async (t) => {
    const kit = await build(t)
    const admin = await signIn(kit, { roles: ['admin'] })
    const status = await read(admin)
    t.match(status, { version: /^\d+\./, engine: kit.app.identity.store.engine, ready: true, attention: [] })
    t.notOk('reason' in status)
    t.strictSame(status.next.map(({ code }) => code), ['issuer_missing', 'backup', 'admin_factors', 'passkeys_broken', 'name', 'metrics'])
    for (const { text } of status.next) t.match(text, /\((IDENTITY_|DATABASE_URL)/, text)
    t.equal((await admin.get('/status?held=maybe')).status, 400)
  })

  t.test('what is set up is no next step', async (t) => {
    const kit = await build(t, {
      mail: LOCAL, factors: { roles: ['admin'] }, oidc: { issuer: ISSUER, name: 'Example' }, metrics: '127.0.0.1:0'
    })
    const admin = await signIn(kit, { roles: ['admin'] })
    t.strictSame((await read(admin)).next.map(({ code }) => code), ['backup'])
    await recordBackup(kit.app.identity.store, kit.clock.now)
    t.strictSame((await read(admin)).next, [])
  })

  t.test('an issuer without TLS, an end that has passed, and a webhook that must not be called', async (t) => {
    const kit = await build(t, {
      oidc: { issuer: 'http://id.example' }, migrate: { verify: async () => false as const, until: '2020-01-01T00:00:00Z' }, production: false, outboundHosts: ['10.0.0.1']
    })
    const admin = await signIn(kit, { roles: ['admin'] })
    const { webhookId } = await kit.app.identity.webhooks.create({ data: { name: 'n', url: 'https://10.0.0.1/', types: ['*'] } })
    await kit.app.identity.store.collection<WebhookRecord>('webhooks').update(webhookId, { set: { url: 'https://10.0.0.2/' } })
    const { next } = await read(admin)
    const codes = next.map(({ code }) => code)
    for (const code of ['issuer_insecure', 'passkeys_broken', 'migration_broken', 'webhooks_broken'] as const) t.ok(codes.includes(code), code)
    t.match(next.find(({ code }) => code === 'webhooks_broken'), { text: new RegExp(`${webhookId}: must be a public address.*outboundHosts \\(IDENTITY_OUTBOUND_HOSTS\\)`) })
  })

  t.test('work that stands still, and work that was given up, of every kind', async (t) => {
    const kit = await build(t, { mail: LOCAL })
    const admin = await signIn(kit, { roles: ['admin'] })
    for (const kind of Object.keys(WORK)) {
      const codes = async () => (await read(admin)).attention.filter(({ code }) => code.startsWith(`${kind}_`))
      t.strictSame(await codes(), [], `nothing of ${kind}`)
      await addWork(kit, kind, 'failed')
      await addWork(kit, kind, 'failed')
      t.match(await codes(), [{ code: `${kind}_failed`, count: 2, text: /: 2\.$/, more: `/jobs?kind=${kind}&state=failed` }])
    }
    // That of webhooks is found by the webhooks that are on: see below.
    for (const kind of ['mail', 'secret', 'logout']) {
      await addWork(kit, kind, 'due')
      const { attention } = await read(admin)
      const found = attention.find(({ code }) => code === `${kind}_stalled`)
      t.match(found, { since: new Date(kit.clock.now() - 10 * 60_000).toISOString(), text: /no process does anything about it/, more: `/jobs?kind=${kind}` }, kind)
    }
    for (const { more } of (await read(admin)).attention.filter((one) => one.more !== undefined)) t.equal((await admin.get(more!)).status, 200, `${more}`)
  })

  t.test('an email that the server refuses needs attention, until it is retried', async (t) => {
    let isRefused = true
    const kit = await build(t, {
      oidc: { issuer: ISSUER },
      mail: { async send () { if (isRefused) throw Object.assign(new Error('no such mailbox'), { responseCode: 550 }) } }
    })
    const admin = await signIn(kit, { roles: ['admin'] })
    await admin.post('/user/invite', { data: { account: 'ann@example.com' } })
    await kit.flush()
    t.match((await read(admin)).attention, [{ code: 'mail_failed', count: 1 }])
    isRefused = false
    await admin.post('/jobs/retry', { data: { kind: 'mail' } })
    await kit.flush()
    t.strictSame((await read(admin)).attention, [])
  })

  t.test('events that cannot be published', async (t) => {
    const kit = await build(t)
    const admin = await signIn(kit, { roles: ['admin'] })
    const letters = kit.app.identity.store.collection<Document & Record<string, Json>>('event_letters')
    await letters.insert({ id: 'letter', created_at: new Date(kit.clock.now()).toISOString(), due_at: new Date(kit.clock.now() + DAY).toISOString(), failure: 'TypeError' })
    t.match((await read(admin)).attention, [{ code: 'event_failed', count: 1, more: '/jobs?kind=event&state=failed' }])
    await letters.delete('letter')
    t.strictSame((await read(admin)).attention, [])
  })

  t.test('a webhook that the service has stopped, and none that an administrator has', async (t) => {
    const kit = await build(t)
    const admin = await signIn(kit, { roles: ['admin'] })
    const add = async () => (await kit.app.identity.webhooks.create({ data: { name: 'n', url: 'https://hooks.example.com/', types: ['*'] } })).webhookId
    await admin.patch(`/webhook/${await add()}`, { disable: true })
    t.strictSame((await read(admin)).attention, [])
    await kit.app.identity.store.collection<WebhookRecord>('webhooks').update(await add(), { set: { state: 'off', failure: 'GONE' } })
    t.match((await read(admin)).attention, [{ code: 'webhooks_stopped', count: 1, since: String, more: '/webhook/list' }])
    t.equal((await admin.get('/webhook/list')).status, 200)
  })

  t.test('a secret that ends in three days, and none that ends in twenty', async (t) => {
    const kit = await build(t)
    const admin = await signIn(kit, { roles: ['admin'] })
    const { body } = await admin.post<{ data: { client_id: string, clientId: string } }>('/client', { credentials: true, data: { redirectUris: [], scopes: [], name: 'app' } })
    const id = body.data.client_id ?? body.data.clientId
    const expiresIn = (days: number) => ({ data: { name: `ends in ${days}`, expiresAt: new Date(kit.clock.now() + days * DAY).toISOString() } })
    t.equal((await admin.post(`/client/${id}/secret`, expiresIn(20))).status, 200)
    t.strictSame((await read(admin)).attention, [])
    t.equal((await admin.post(`/client/${id}/secret`, expiresIn(3))).status, 200)
    t.match((await read(admin)).attention, [{ code: 'credentials_end', count: 1 }])
  })

  t.test('people whom an upstream with only shuts out are counted on demand, once in five minutes', async (t) => {
    const corp = { id: 'corp', kind: 'oidc' as const, issuer: 'https://corp.example', emails: 'verified' as const, domains: ['corp.example'], only: true, clientId: 'c', clientSecret: 's' }
    const kit = await build(t, { oidc: { issuer: ISSUER }, upstreams: [corp] })
    const admin = await signIn(kit, { roles: ['admin'] })
    const add = async (account: string) => await kit.app.identity.users.create({ data: { account, password: 'a horse too' } })
    await add('name@corp.example')
    t.strictSame((await read(admin)).attention, [], 'not unless asked')
    const counts = async () => (await read(admin, '?held=true')).attention.map(({ code, count }) => [code, count])
    t.strictSame(await counts(), [['people_unproved', 1]])
    const { user_id } = await add('other@corp.example')
    await kit.app.identity.store.collection<UserRecord>('users').update(user_id, { set: { email: 'other@private.example', email_verified_at: '2026-01-01T00:00:00.000Z' } })
    t.strictSame(await counts(), [['people_unproved', 1]], 'the count stands')
    kit.clock.advance(5 * 60_000)
    await kit.flush()
    t.strictSame(await counts(), [['people_unproved', 2], ['people_unreachable', 1]])
    t.strictSame((await read(admin, '?held=false')).attention, [])
  })

  t.test('a service that is about to close is not ready, with the reason', async (t) => {
    const closing = new AbortController()
    const kit = await build(t, { closing: closing.signal })
    const admin = await signIn(kit, { roles: ['admin'] })
    closing.abort()
    t.match(await read(admin), { ready: false, reason: 'the service is shutting down', attention: [{ code: 'not_ready', text: /the service is shutting down/ }] })
  })

  t.test('a test email goes to the verified address of the administrator, whose emails say what became of it', async (t) => {
    const kit = await build(t, { oidc: { issuer: ISSUER } })
    const admin = await signIn(kit, { roles: ['admin'] })
    const users = kit.app.identity.store.collection<UserRecord>('users')
    t.match(await admin.post('/mail/test'), { status: 400, body: { code: 'ErrParam', message: 'email: you have no verified email address' } })
    await users.update(admin.user_id, { set: { email: 'ann@example.com' } })
    t.equal((await admin.post('/mail/test')).status, 400, 'an address that is not verified')
    await users.update(admin.user_id, { set: { email_verified_at: new Date(kit.clock.now()).toISOString(), language: 'de' } })
    const { status, body } = await admin.post<{ data: { mail_id: string } }>('/mail/test')
    t.equal(status, 200)
    await kit.flush()
    t.match((await kit.mails.all()).at(-1), { subject: /Test-E-Mail$/, text: /kann E-Mails senden/ })
    t.match(await admin.get(`/user/${admin.user_id}/mails`), { body: { data: { mails: [{ mail_id: body.data.mail_id, kind: 'test', state: 'sent' }] } } })
    t.equal((await admin.post('/mail/test')).status, 200)
    t.equal((await admin.post('/mail/test')).status, 200)
    t.match(await admin.post('/mail/test'), { status: 429, body: { code: 'ErrLimit' }, headers: { 'retry-after': /^\d+$/ } })
    kit.clock.advance(61 * 60_000)
    const later = await signIn(kit, { user: admin.user_id, roles: ['admin'] })
    t.equal((await later.post('/mail/test')).status, 200, 'an hour later')
    const other = await signIn(kit, { roles: ['admin'] })
    t.equal((await other.post('/mail/test')).status, 400, 'what is refused counts for nobody')
  })

  t.test('a test email of an address that was taken away meanwhile is not sent', async (t) => {
    const kit = await build(t, { oidc: { issuer: ISSUER } })
    const admin = await signIn(kit, { roles: ['admin'] })
    const users = kit.app.identity.store.collection<UserRecord>('users')
    const time = new Date(kit.clock.now()).toISOString()
    await users.update(admin.user_id, { set: { email: 'ann@example.com', email_verified_at: time } })
    const { accounts, store } = kit.app.identity
    await users.update(admin.user_id, { set: { disabled_at: time } })
    await t.rejects(accounts.sendOwnTest({ user_id: 'nobody' }), { code: 'ErrNotFound' })
    await accounts.sendOwnTest({ user_id: admin.user_id })
    await kit.flush()
    t.equal(await store.collection<DeliveryRecord>('deliveries').count(), 0)
    t.strictSame(await kit.mails.all(), [])
  })

  t.test('a client that acts for itself has no address; without mail there is no test', async (t) => {
    const kit = await build(t, { mail: LOCAL })
    const { users } = { users: kit.app.identity.accounts }
    await t.rejects(users.sendOwnTest({ user_id: 'ann', isUser: false }), { code: 'ErrParam', message: /^token: / })
  })

  t.test('only administrators see the service, with the scope', async (t) => {
    const kit = await build(t, { roles: { support: 'helper' } })
    const people = [await signIn(kit), await signIn(kit, { roles: ['manager'] }), await signIn(kit, { roles: ['service'] }), await signIn(kit, { roles: ['helper'] })]
    for (const one of people) {
      for (const reply of [await one.get('/status'), await one.get('/settings'), await one.post('/mail/test')]) t.match(reply, { status: 403, body: { code: 'ErrPerm' } })
    }
    const narrow = await signIn(kit, { roles: ['admin'], scopes: ['account:read', 'roles'] })
    for (const reply of [await narrow.get('/status'), await narrow.get('/settings'), await narrow.post('/mail/test')]) t.equal(reply.status, 403)
  })

  t.test('no secret of an option is in the settings or in the status', async (t) => {
    const kit = await build(t, {
      mail: { url: `smtps://user:${MARK}@mail.example:465`, from: 'id@example.com' },
      oidc: { issuer: ISSUER, name: 'Example' },
      migrate: { url: `https://old.example/verify?key=${MARK}`, secret: `whsec_${Buffer.from(MARK).toString('base64')}`, create: true },
      upstreams: [{ id: 'corp', kind: 'oidc', issuer: 'https://corp.example', clientId: 'c', clientSecret: MARK, roles: { claim: 'groups', map: { staff: ['editor'] } } }],
      resources: [{ id: 'https://orders.example', name: 'Orders', scopes: { 'orders:read': 'Read orders' } }]
    })
    const admin = await signIn(kit, { roles: ['admin'] })
    const { body } = await admin.get<{ data: { settings: Setting[] } }>('/settings')
    const text = JSON.stringify([body, await read(admin)])
    for (const secret of [MARK, KEY, Buffer.from(MARK).toString('base64'), MARK.slice(0, 8)]) t.notMatch(text, secret)
    const settings = new Map(body.data.settings.map((setting) => [setting.name, setting]))
    t.match(settings.get('secretKey'), { variable: 'IDENTITY_SECRET_KEY', value: 'set', origin: 'option' })
    t.match(settings.get('mail.url'), { variable: 'IDENTITY_MAIL_URL', value: 'smtps://mail.example:465', origin: 'option' })
    t.match(settings.get('migrate.url'), { value: 'https://old.example/verify' })
    t.match(settings.get('migrate.secret'), { variable: 'IDENTITY_MIGRATE_SECRET_FILE', value: 'set' })
    t.match(settings.get('upstreams'), { variable: 'IDENTITY_UPSTREAMS_FILE', value: [{ id: 'corp', clientId: 'c', clientSecret: 'set', roles: { claim: 'groups', map: { staff: ['editor'] } } }] })
    t.match(settings.get('resources'), { value: [{ id: 'https://orders.example', scopes: { 'orders:read': 'Read orders' } }] })
    t.match(settings.get('oidc.issuer'), { variable: 'IDENTITY_ISSUER', value: ISSUER, origin: 'option' })
    t.match(settings.get('oidc.accessTtl'), { variable: 'IDENTITY_ACCESS_TTL', value: 3600, origin: 'default' })
    t.match(settings.get('roles.admin'), { variable: 'IDENTITY_ROLE_ADMIN', value: 'admin', origin: 'default' })
    t.equal(settings.size, body.data.settings.length, 'each name is there once')
  })
})

t.test('the credentials of a database, and a key that the first start has made', async (t) => {
  const { judgeNext } = await import('../../lib/status/next-steps.ts')
  const { listOptions } = await import('../../lib/status/options.ts')
  const given = { database: `mongodb://${MARK}:${MARK}@127.0.0.1:1/db?authSource=${MARK}`, oidc: { issuer: `https://${MARK}:${MARK}@id.example` } }
  const settings = listOptions(given, given)
  t.notMatch(JSON.stringify(settings), MARK)
  t.match(settings.find(({ name }) => name === 'database'), { value: 'mongodb://127.0.0.1:1/db', origin: 'option' })
  const { options, passkeys, server } = prepareIdentity({})
  const steps = judgeNext({ options, passkeys, server, url: 'http://localhost', checkUrl: (url) => url })
  t.match(steps.find(({ code }) => code === 'secret_key'), { text: /secretKey \(IDENTITY_SECRET_KEY_FILE\)/ })
})

t.test('each kind of work that stands still has its code, the publication of events among them', async (t) => {
  const { listAttention } = await import('../../lib/status/attention.ts')
  const store = await openStore('sqlite::memory:', { collections: COLLECTIONS })
  t.teardown(() => store.close())
  const since = '2026-01-01T00:00:00.000Z'
  const kinds = ['mail', 'logout', 'webhook', 'secret', 'event'] as const
  const work = Object.fromEntries(kinds.map((kind) => [kind, { findStall: async () => since, pace: new Pace(createTimers()) }]))
  const found = await listAttention({ store, work, secretEnds: { count: async () => 0 } }, undefined)
  t.match(found, kinds.map((kind) => ({ code: `${kind}_stalled`, since, text: new RegExp(`due since ${since}, and no process`), more: `/jobs?kind=${kind}` })))
})
