import { readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import fastify from 'fastify'
import identity from '../../index.ts'
import type { ClientRecord } from '../../lib/records/client.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { type Client, CreateClientSchema, CreateSecretSchema } from '../../schemas/client.ts'
import { CreateResourceSchema } from '../../schemas/resource.ts'
import { CreateUserSchema } from '../../schemas/user.ts'
import { CreateWebhookSchema } from '../../schemas/webhook.ts'
import { startIdentity } from '../../testing/index.ts'
import { alter } from '../helpers/alter.ts'
import { forEachStore } from '../helpers/build.ts'
import { createClient, createUser, signIn, unique } from '../helpers/people.ts'

/** A request that creates a record: the members of its body, its `data` apart. */
interface Given { data: Record<string, unknown>, [member: string]: unknown }

interface CreateRow {
  schema: { properties: { data: { properties: object } } }
  /** Requests that together have every member of the schema, each with another value than the one that it has by default. */
  requests: Given[]
  create: (given: Given) => Promise<string>
  read: (id: string) => Promise<Record<string, unknown>>
  /** Members that come back otherwise, and as what. */
  shown?: (given: Given) => Record<string, unknown>
}

const jwk = { kty: 'EC', crv: 'P-256', x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU', y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0', kid: '2026' }

await forEachStore(t, async (t, build) => {
  t.test('Records: every member of a new record is stored, and comes back', async (t) => {
    const kit = await build(t)
    const admin = await signIn(kit, { roles: ['admin'] })
    const owner = await createUser(admin)
    const client = await createClient(admin, {}, { credentials: true })
    const post = async (path: string, key: string, given: Given): Promise<string> => {
      const { status, body } = await admin.post<{ data: Record<string, string> }>(path, given)
      t.equal(status, 200, JSON.stringify(body))
      return body.data[key]!
    }
    const get = async (path: string) => (await admin.get<{ data: Record<string, unknown> }>(path)).body.data
    const account = unique('ann')
    const rows: Record<string, CreateRow> = {
      user: {
        schema: CreateUserSchema,
        requests: [{ data: { account, password: 'a long enough one', name: 'Ann', info: { plan: 'gold' }, attributes: { tenant: 'acme' } } }, { data: { account: unique('bob'), password: 'p' }, expired_at: '2099-01-01T00:00:00.000Z' }],
        create: async (given) => await post('/user', 'user_id', given),
        read: async (id) => await get(`/user/${id}?fields=expired`),
        shown: ({ data: { password, ...data }, ...rest }) => ({ ...data, ...rest })
      },
      client: {
        schema: CreateClientSchema,
        requests: [{
          data: {
            name: 'Shop',
            redirectUris: ['https://shop.example/callback'],
            scopes: ['orders'],
            image: 'https://shop.example/logo.png',
            userId: owner,
            tokenAuth: 'private_key_jwt',
            jwks: { keys: [jwk] },
            grants: ['code', 'device'],
            profile: 'fapi2',
            first_party: true,
            roles: { clerk: true },
            disabled: true,
            idTokenAlg: 'ES256',
            signedRequests: 'required',
            id_token_claims: true,
            claims: { tenant: { from: 'attributes.tenant', in: ['id_token', 'jwt'] } },
            backchannelLogoutUri: 'https://shop.example/logout'
          }
        }, { data: { name: 'Old shop', redirectUris: [], scopes: [], pkce: 'optional' }, credentials: true }],
        create: async (given) => await post('/client', 'clientId', given),
        read: async (id) => await get(`/client/${id}`),
        shown: ({ data, credentials }) => ({ ...data, ...(credentials === true && { clientSecret: String }) })
      },
      secret: {
        schema: CreateSecretSchema,
        requests: [{ data: { name: 'Nightly', expiresAt: '2099-01-01T00:00:00.000Z' } }],
        create: async (given) => await post(`/client/${client}/secret`, 'id', given),
        read: async (id) => (await get(`/client/${client}/secret`) as unknown as { id: string }[]).find((secret) => secret.id === id)!
      },
      resource: {
        schema: CreateResourceSchema,
        requests: [{ data: { id: `https://${unique('api')}.example/`, name: 'Orders', scopes: { [`${account}:read`]: 'see orders' }, selfService: [`${account}:read`], documents: [`${account}:read`], accessTtl: 1_800, tokenFormat: 'jwt', tokenAlg: 'ES256', roles: ['clerk'], claims: { tenant: { from: 'attributes.tenant', in: ['introspection', 'jwt'] } } } }],
        create: async (given) => await post('/resource', 'resourceId', given),
        read: async (id) => await get(`/resource/${id}`)
      },
      webhook: {
        schema: CreateWebhookSchema,
        requests: [{ data: { name: 'Orders', url: 'https://hooks.example.com/', types: ['user.*'], disabled: true } }],
        create: async (given) => await post('/webhook', 'webhookId', given),
        read: async (id) => await get(`/webhook/${id}`)
      }
    }
    for (const [kind, { schema, requests, create, read, shown = ({ data }: Given) => data }] of Object.entries(rows)) {
      const list = (values: object[]) => [...new Set(values.flatMap((value) => Object.keys(value)))].sort()
      t.strictSame(list(requests), Object.keys(schema.properties).sort(), `${kind}: every member`)
      t.strictSame(list(requests.map(({ data }) => data)), Object.keys(schema.properties.data.properties).sort(), `${kind}: every member of data`)
      for (const given of requests) t.match(await read(await create(given)), shown(given), kind)
    }
    t.ok(await kit.app.identity.users.verify(account, 'a long enough one'), 'the password is stored')
  })

  t.test('Records: a client secret is sealed at rest and bound to its client', async (t) => {
    const kit = await build(t)
    const ann = await signIn(kit)
    const read = async (id: string) => await ann.get<{ data: Client }>(`/client/${id}`)
    const [one, two] = [await createClient(ann, {}, { credentials: true }), await createClient(ann, {}, { credentials: true })]
    const { clientSecret } = (await read(one)).body.data
    const clients = kit.app.identity.store.collection<ClientRecord>('clients')
    const record = await clients.get(one)
    t.ok(clientSecret)
    t.notMatch(JSON.stringify(record), clientSecret)
    t.equal((await read(one)).body.data.clientSecret, clientSecret, 'its owner can read it')

    await clients.update(two, { set: { secret: record!.secret! } })
    t.match(await read(two), { status: 500, body: { code: 'ErrInternal' } }, 'a secret sealed for another client does not open')
    await clients.update(one, { set: { secret: alter(record!.secret!) } })
    t.match(await read(one), { status: 500, body: { code: 'ErrInternal' } }, 'an altered secret does not open')
  })

  t.test('Records: a hash with a lower cost is renewed at the next sign-in', async (t) => {
    const account = unique('old')
    const weak = await build(t, { bcryptCost: 4 })
    const user_id = await createUser(await signIn(weak, { roles: ['admin'] }), { account, password: 'p' })
    const strong = await build(t, { bcryptCost: 5 })
    const cost = async () => (await strong.app.identity.store.collection<UserRecord>('users').get(user_id))?.password?.split('$')[2]
    t.equal(await strong.app.identity.users.verify(account, 'wrong'), null)
    t.equal(await cost(), '04', 'a wrong password renews nothing')
    const session = await weak.mint({ user: account })
    t.match(await strong.app.identity.users.verify(account, 'p'), { user_id })
    t.equal(await cost(), '05')
    t.match(await strong.app.identity.users.verify(account, 'p'), { user_id })
    t.equal((await strong.inject({ url: '/api/v1/user', headers: session.headers })).statusCode, 200, 'no session ends')
    t.match(await weak.app.identity.users.verify(account, 'p'), { user_id }, 'a service with a lower cost does not renew it')
    t.equal(await cost(), '05')
  })

  t.test('Records: the service does not start with a key other than the one that sealed the database', async (t) => {
    await build(t)
    await t.rejects(build(t, { secretKey: Buffer.alloc(32, 1).toString('base64') }), { message: /not the one this database was sealed with/ })
  })
})

t.test('Records: without a configured key, the first run creates one next to the SQLite database', async (t) => {
  const dir = t.testdir()
  const start = async (options: object = {}) => {
    const app = fastify()
    t.teardown(() => app.close())
    await app.register(identity, { database: `sqlite:${join(dir, 'data', 'identity.db')}`, bcryptCost: 4, passwordMin: 1, ...options })
    return app
  }
  const apps = await Promise.all([start(), start(), start()])
  const file = join(dir, 'data', 'secret.key')
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.equal(Buffer.from(readFileSync(file, 'utf8'), 'base64').length, 32)
  t.strictSame(readdirSync(join(dir, 'data')).filter((name) => name.includes('secret')), ['secret.key'], 'three concurrent starts create one, and leave no drafts')

  const actor = { user_id: 'ann', isAdmin: true }
  const { clientId } = await apps[0].identity.clients.create({ data: { redirectUris: [], scopes: [], name: 'n' }, credentials: true }, actor)
  const { clientSecret } = await apps[1].identity.clients.require(clientId, actor)
  await Promise.all(apps.map((app) => app.close()))
  t.equal((await (await start()).identity.clients.require(clientId, actor)).clientSecret, clientSecret, 'the next run reads it')

  await t.rejects(start({ production: true }), { message: /in production a secret key must be configured/ }, 'production does not accept a generated key')
  writeFileSync(file, 'not a key')
  await t.rejects(start(), { message: /32 random bytes/ })
  rmSync(file)
  await t.rejects(start(), { message: /secret\.key: it is missing/ }, 'a lost key is not replaced silently')
})

t.test('Records: the key in a separate data folder', async (t) => {
  const dir = t.testdir()
  const kit = await startIdentity({ t, database: `sqlite:${join(dir, 'identity.db')}`, dataDir: join(dir, 'keys'), secretKey: undefined as never })
  t.ok(kit)
  t.ok(statSync(join(dir, 'keys', 'secret.key')).isFile())
})
