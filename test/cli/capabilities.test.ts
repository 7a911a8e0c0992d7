import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { CAPABILITIES, type Capability } from '../../lib/status/capabilities.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import type { WebhookRecord } from '../../lib/webhooks/record.ts'
import { createCli } from '../helpers/cli.ts'
import { createMongoDatabase } from '../helpers/mongo-database.ts'
import { MONGODB_URL } from '../helpers/mongodb.ts'

const MAIL = { IDENTITY_MAIL_URL: 'smtp://user:word@mail.example.org', IDENTITY_MAIL_FROM: 'id@example.org', IDENTITY_ISSUER: 'https://id.example.org/base' }
const METRICS = { IDENTITY_METRICS: '127.0.0.1:9464' }
const MIGRATE = { IDENTITY_MIGRATE_URL: 'https://old.example.org/verify', IDENTITY_MIGRATE_SECRET_FILE: 'secret' }

/** What stands where a capability is off, on and broken: its settings, and what is said. `secret` and `upstreams` are names of files. */
const CASES: [name: Capability['name'], env: Record<string, string>, expected: object][] = [
  ['mail', {}, { state: 'off', to_do: /IDENTITY_MAIL_URL/ }],
  ['mail', MAIL, { state: 'on', summary: 'By mail.example.org, port 587 (STARTTLS), from id@example.org.', to_do: /mail test/ }],
  ['mail', { ...MAIL, IDENTITY_ISSUER: 'http://localhost:3000' }, { state: 'on', summary: /Links lead to http:\/\/localhost:3000, which works on this device only/ }],
  ['mail', { ...MAIL, IDENTITY_ISSUER: '' }, { state: 'broken', why: 'IDENTITY_MAIL_URL: needs IDENTITY_ISSUER, to which the links lead' }],
  ['sign-up', { IDENTITY_SIGN_UP_DOMAINS: 'example.org' }, { state: 'off', summary: /IDENTITY_SIGN_UP_DOMAINS has no effect/, to_do: /IDENTITY_SIGN_UP=on/ }],
  ['sign-up', { ...MAIL, IDENTITY_SIGN_UP: 'on', IDENTITY_SIGN_UP_DOMAINS: 'example.org, example.com' }, { state: 'on', summary: 'Whoever has an address at example.org, example.com.' }],
  ['sign-up', { IDENTITY_SIGN_UP: 'on' }, { state: 'broken', why: 'IDENTITY_SIGN_UP: needs IDENTITY_MAIL_URL' }],
  ['providers', {}, { state: 'off', to_do: /IDENTITY_UPSTREAMS_FILE/ }],
  ['providers', { IDENTITY_ISSUER: 'https://id.example.org/base', IDENTITY_UPSTREAMS_FILE: 'upstreams' }, {
    state: 'on',
    providers: [
      { id: 'google', name: 'Google', redirect_uri: 'https://id.example.org/base/api/v1/auth/upstream/google/callback' },
      {
        id: 'corp',
        redirect_uri: 'https://id.example.org/base/api/v1/auth/upstream/corp/callback',
        backchannel_logout_uri: 'https://id.example.org/base/api/v1/auth/upstream/corp/backchannel-logout'
      }
    ]
  }],
  ['providers', { IDENTITY_UPSTREAMS_FILE: 'upstreams' }, { state: 'on', summary: /Without IDENTITY_ISSUER/, providers: [{ redirect_uri: /^http:\/\/127\.0\.0\.1:3000\// }, {}] }],
  ['providers', { IDENTITY_ISSUER: 'http://id.example.org', IDENTITY_UPSTREAMS_FILE: 'upstreams' }, { state: 'broken', why: /^google: .*https only/, to_do: /IDENTITY_ISSUER/ }],
  ['providers', { IDENTITY_UPSTREAMS_FILE: '/none' }, { state: 'broken', why: /IDENTITY_UPSTREAMS_FILE: the file cannot be read/ }],
  ['passkeys', { IDENTITY_PASSKEYS: 'off' }, { state: 'off', to_do: /IDENTITY_PASSKEYS=on/ }],
  ['passkeys', { IDENTITY_ISSUER: 'https://id.example.org', IDENTITY_RELYING_PARTY: 'example.org' }, { state: 'on', summary: 'For example.org, on pages of https://id.example.org.' }],
  ['passkeys', {}, { state: 'broken', why: /^the service has an address and no name/, to_do: /IDENTITY_ISSUER/ }],
  ['passkeys', { IDENTITY_ISSUER: 'https://10.0.0.1' }, { state: 'broken', why: /10\.0\.0\.1 is an address/ }],
  ['passkeys', { IDENTITY_ISSUER: 'http://id.example.org' }, { state: 'broken', why: /with https and on localhost only/ }],
  ['passkeys', { IDENTITY_ISSUER: 'https://id.example.org', IDENTITY_RELYING_PARTY: 'example.com' }, { state: 'broken', why: /IDENTITY_RELYING_PARTY: must be the issuer's host id\.example\.org/ }],
  ['factors', { IDENTITY_FACTORS: 'off' }, { state: 'off', to_do: /IDENTITY_FACTORS=optional/ }],
  ['factors', {}, { state: 'on', summary: /Those who have added one/ }],
  ['factors', { IDENTITY_FACTORS: 'roles:root, boss' }, { state: 'on', summary: /these roles need one: root, boss/ }],
  ['factors', { IDENTITY_FACTORS: 'roles:' }, { state: 'broken', why: /^IDENTITY_FACTORS: must be/ }],
  ['agents', {}, { state: 'off', to_do: /IDENTITY_DOCUMENT_HOSTS/ }],
  ['agents', { IDENTITY_DOCUMENT_HOSTS: 'agent.example>cdn.example, localhost:8443' }, { state: 'on', summary: /agent\.example, localhost:8443/ }],
  ['agents', { IDENTITY_DOCUMENT_HOSTS: '*' }, { state: 'on', summary: /any host/ }],
  ['agents', { IDENTITY_DOCUMENT_HOSTS: '10.0.0.1' }, { state: 'broken', why: /10\.0\.0\.1/, to_do: /IDENTITY_OUTBOUND_HOSTS/ }],
  ['migration', {}, { state: 'off', to_do: /IDENTITY_MIGRATE_URL/ }],
  ['migration', { ...MIGRATE, IDENTITY_MIGRATE_CREATE: 'on' }, { state: 'on', summary: 'old.example.org is asked about anybody who is not here.' }],
  ['migration', { ...MIGRATE, IDENTITY_MIGRATE_UNTIL: '2020-01-01T00:00:00Z' }, { state: 'broken', why: /has passed/, to_do: /later IDENTITY_MIGRATE_UNTIL/ }],
  ['migration', { IDENTITY_MIGRATE_URL: 'https://10.0.0.1/', IDENTITY_MIGRATE_SECRET_FILE: 'secret' }, { state: 'broken', why: /^IDENTITY_MIGRATE_URL: / }],
  ['webhooks', {}, { state: 'on', summary: /registered/ }],
  ['webhooks', { IDENTITY_OUTBOUND_HOSTS: 'a b' }, { state: 'broken', why: /^IDENTITY_OUTBOUND_HOSTS: must be/ }],
  ['personal-tokens', {}, { state: 'off', to_do: /IDENTITY_PERSONAL_TOKENS/ }],
  ['personal-tokens', { IDENTITY_PERSONAL_TOKENS: '90' }, { state: 'on', summary: 'Everybody can make them, for 90 days at most.' }],
  ['personal-tokens', { IDENTITY_PERSONAL_TOKENS: '90', IDENTITY_PERSONAL_TOKENS_ROLES: 'editor' }, { state: 'on', summary: 'Whoever holds editor can make them, for 90 days at most.' }],
  ['personal-tokens', { IDENTITY_PERSONAL_TOKENS: '90', IDENTITY_PERSONAL_TOKENS_SCOPES: 'account:security' }, { state: 'broken', why: /no personal access token may have account:security/ }],
  ['console', {}, { state: 'on', summary: 'http://127.0.0.1:3000/admin, from everywhere, for administrators and support staff who have signed in in any way.' }],
  ['console', { NODE_ENV: 'production', IDENTITY_SECRET_KEY: Buffer.alloc(32, 7).toString('base64'), IDENTITY_ISSUER: 'https://id.example.org', IDENTITY_ADMIN_PATH: '/boss', IDENTITY_ADMIN_NETWORKS: '10.0.0.0/8, ::1' }, {
    state: 'on', summary: 'https://id.example.org/boss, from 10.0.0.0/8, ::1 only, for administrators and support staff who have signed in with a second factor.'
  }],
  ['console', { IDENTITY_ADMIN_PATH: 'off' }, { state: 'off', to_do: /IDENTITY_ADMIN_PATH/ }],
  ['console', { IDENTITY_OIDC: 'off' }, { state: 'off', to_do: /IDENTITY_OIDC=on/ }],
  ['console', { IDENTITY_ADMIN_ACR: '2' }, { state: 'broken', why: 'IDENTITY_ADMIN_ACR: must be 1, mfa or phr' }],
  ['forward-auth', {}, { state: 'off', to_do: /IDENTITY_FORWARD_AUTH=on/ }],
  ['forward-auth', { IDENTITY_FORWARD_AUTH: 'on' }, { state: 'on', summary: 'At /api/v1/auth/forward, with the rule in the query.' }],
  ['forward-auth', { IDENTITY_FORWARD_AUTH: 'on', IDENTITY_FORWARD_AUTH_HEADER: 'X-Rule' }, { state: 'on', summary: /in the header X-Rule\.$/ }],
  ['forward-auth', { IDENTITY_FORWARD_AUTH_HEADER: 'X-Rule' }, { state: 'broken', why: 'IDENTITY_FORWARD_AUTH_HEADER: needs IDENTITY_FORWARD_AUTH' }],
  ['forward-auth', { IDENTITY_FORWARD_AUTH: 'on', IDENTITY_FORWARD_AUTH_HEADER: 'Cookie' }, { state: 'broken', why: /must be a header that begins with X- or Identity-/ }],
  ['metrics', {}, { state: 'off', to_do: /IDENTITY_METRICS/ }],
  ['metrics', METRICS, { state: 'on', summary: 'http://127.0.0.1:9464/metrics.' }],
  ['metrics', { ...METRICS, IDENTITY_WORKERS: '3' }, { state: 'on', summary: /127\.0\.0\.1:9466, one for each worker/ }],
  ['metrics', { ...METRICS, PORT: '9464' }, { state: 'broken', why: 'IDENTITY_METRICS: must have another port than PORT' }],
  ['metrics', { ...METRICS, HOST: '0.0.0.0', PORT: '9466', IDENTITY_WORKERS: '3' }, { state: 'broken', why: /ports \(9464 to 9466\) other than PORT/ }],
  ['metrics', { IDENTITY_METRICS: '127.0.0.1:65535', IDENTITY_WORKERS: '2' }, { state: 'broken', why: /up to 65535/ }]
]

function createFiles (dir: string): (env: Record<string, string>) => Record<string, string> {
  const files: Record<string, string> = {
    secret: `whsec_${Buffer.alloc(24, 7).toString('base64')}`,
    upstreams: JSON.stringify([
      { id: 'google', kind: 'google', clientId: 'c', clientSecretFile: join(dir, 'secret') },
      { id: 'corp', kind: 'oidc', issuer: 'https://login.corp.example', clientId: 'c', clientSecretFile: join(dir, 'secret') }
    ])
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text, { mode: 0o600 })
  return (env) => Object.fromEntries(Object.entries(env).map(([name, text]) => [name, Object.hasOwn(files, text) ? join(dir, text) : text]))
}

const WORDS = { on: 'on', off: 'off', broken: 'cannot work' }

t.test('each capability is judged, and both outputs say the same', async (t) => {
  const dir = t.testdir()
  const fill = createFiles(dir)
  t.strictSame(CAPABILITIES.filter((name) => new Set(CASES.filter(([of]) => of === name).map(([,, { state }]: [string, object, { state?: string }]) => state)).size < 2), [])
  for (const [name, env, expected] of CASES) {
    const run = createCli(dir, fill(env))
    const { code, stderr, json } = await run('config check --json')
    const { capabilities, problems } = json() as unknown as { capabilities: Capability[], problems: string[] }
    const found = capabilities.find((capability) => capability.name === name)
    t.match(found, expected, `${name} with ${JSON.stringify(env)}`)
    t.equal(code, problems.length === 0 ? 0 : 1, stderr)
    if (problems.length === 0) t.strictSame(capabilities.map(({ name }) => name), CAPABILITIES)
    const { stdout } = await run('config check')
    const first = found?.summary ?? found?.why ?? ''
    t.ok(stdout.includes(`\n  ${name.padEnd(9)} ${WORDS[found!.state].padEnd(11)} ${first}\n`), `${name}: ${found?.state} on a terminal`)
    for (const text of [found?.why, found?.to_do, ...(found?.providers ?? []).map(({ redirect_uri: uri }) => uri)]) if (text !== undefined) t.ok(stdout.includes(text), text)
  }
})

t.test('without an authorization server nobody signs in, so most is off', async (t) => {
  const { json } = await createCli(t.testdir(), { IDENTITY_OIDC: 'off' })('config check --json')
  const { capabilities } = json() as unknown as { capabilities: Capability[] }
  t.strictSame(capabilities.filter(({ state }) => state !== 'off').map(({ name }) => name), ['webhooks'])
})

async function judgeWebhooks (t: Test, dir: string, database: string): Promise<void> {
  const env = { DATABASE_URL: database, IDENTITY_SECRET_KEY: Buffer.alloc(32, 1).toString('base64') }
  const judge = async (more: Record<string, string> = {}) => {
    const { code, stdout, stderr } = await createCli(dir, { ...env, ...more })('config check --json')
    t.equal(code, 0, stderr)
    return (JSON.parse(stdout) as { capabilities: Capability[] }).capabilities.find(({ name }) => name === 'webhooks')
  }
  const run = createCli(dir, { ...env, IDENTITY_OUTBOUND_HOSTS: 'hooks.internal' })
  await run('user create --account ann')
  t.match(await judge(), { state: 'on', summary: 'None is registered.' })
  const { webhookId: id } = (await run('webhook create --name a --url http://hooks.internal/x --type user.created --json')).json()
  t.match(await judge(), { state: 'broken', why: new RegExp(`^${id}: `), to_do: /IDENTITY_OUTBOUND_HOSTS/ }, 'its host is allowed no more')
  t.match(await judge({ IDENTITY_OUTBOUND_HOSTS: 'hooks.internal' }), { state: 'on', summary: '1 of 1 get events.' })
  const store = await openStore(database, { collections: COLLECTIONS })
  await store.collection<WebhookRecord>('webhooks').update(id!, { set: { state: 'off', failure: 'gone' } })
  await store.close()
  t.match(await judge(), { state: 'on', summary: '0 of 1 get events.', to_do: /webhook list/ })
}

t.test('the webhooks that are registered are judged, on SQLite', async (t) => {
  const dir = t.testdir()
  await judgeWebhooks(t, dir, `sqlite:${join(dir, 'identity.db')}`)
})

t.test('the webhooks that are registered are judged, on MongoDB', { skip: MONGODB_URL === undefined && 'MONGODB_URL is not set' }, async (t) => {
  await judgeWebhooks(t, t.testdir(), createMongoDatabase(t, MONGODB_URL!))
})
