import t from 'tap'
import { Args } from '../../cli/args.ts'
import { readSecretFilter } from '../../cli/client-filter.ts'
import { startIdentity } from '../../testing/index.ts'
import { assert, createTestKey } from '../helpers/assertions.ts'

const DAY = 24 * 60 * 60_000
const ADMIN = { user_id: 'root', isAdmin: true }

t.test('--unused-since: uses of secrets, of keys and of documents', async (t) => {
  const kit = await startIdentity({ t, oidc: { issuer: 'https://id.example', documents: { hosts: ['agent.example'] } } })
  const { clients, users } = kit.app.identity
  const { user_id } = await users.create({ data: { account: 'ann', password: 'correct horse' } })
  const create = async (name: string, credentials = true) => {
    const { clientId } = await clients.create({ data: { userId: user_id, name, redirectUris: [], scopes: [], grants: credentials ? ['client'] : ['code'] }, credentials }, ADMIN)
    return clientId
  }
  const request = async (fields: Record<string, string>) => {
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const { statusCode } = await kit.inject({ method: 'POST', url: '/api/v1/auth/token', headers, payload: String(new URLSearchParams({ grant_type: 'client_credentials', ...fields })) })
    t.equal(statusCode, 200)
  }
  const key = createTestKey('ES256')
  const named: Record<string, string> = {}
  for (const name of ['secret', 'secret used', 'key', 'key used', 'secret before, key used', 'secret added', 'key added', 'nothing left']) named[name] = await create(name)
  await create('public', false)
  await kit.agent({ client_name: 'agent' }).authorize({ account: 'ann', password: 'correct horse' }, { scope: 'openid' })
  for (const name of ['key', 'key used', 'secret before, key used']) {
    await clients.patch(named[name]!, { data: { jwks: { keys: [key.jwk] }, ...(name.startsWith('key') && { tokenAuth: 'private_key_jwt' }) } }, ADMIN)
  }
  await clients.patch(named['secret before, key used']!, { data: { tokenAuth: 'private_key_jwt' } }, ADMIN)
  await clients.removeSecret(named['nothing left']!, 'first', ADMIN)

  const list = async (days: number) => {
    const isWanted = readSecretFilter(new Args({ 'unused-since': `${days}d` }), kit.app.identity, kit.clock.now())!
    const found: string[] = []
    for await (const batch of clients.list({}, ADMIN)) for (const client of batch) if (await isWanted(client)) found.push(client.name)
    return found.sort()
  }
  t.strictSame(await list(90), [], 'they are new')
  kit.clock.advance(100 * DAY)
  await request({ client_id: named['secret used']!, client_secret: (await clients.require(named['secret used']!, ADMIN)).clientSecret! })
  for (const name of ['key used', 'secret before, key used']) {
    await request({ client_assertion: await assert(named[name]!, 'https://id.example', key), client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer' })
  }
  await clients.addSecret(named['secret added']!, { data: { name: 'new' } }, ADMIN)
  await clients.addKeys(named['key added']!, { keys: [key.jwk] }, ADMIN)
  t.strictSame(await list(90), ['agent', 'key', 'nothing left', 'secret'])
  t.strictSame(await list(101), [])
})
