import t from 'tap'
import { openServices } from '../../lib/identity.ts'
import { readConfig } from '../../config.ts'
import { CALL } from '../../cli/welcome.ts'
import { createCli } from '../helpers/cli.ts'

t.test('resource create, list and remove', async (t) => {
  const dir = t.testdir()
  const run = createCli(dir, { IDENTITY_ISSUER: 'https://id.example' })
  const services = await openServices(readConfig({ DATABASE_URL: `sqlite:${dir}/identity.db`, IDENTITY_BCRYPT_COST: '4', IDENTITY_PASSWORD_MIN: '1' }).services)
  t.teardown(() => services.close())
  const { clientId } = await services.clients.create({ data: { redirectUris: [], scopes: ['orders:read', 'own'], name: 'c' } }, { user_id: 'u', isAdmin: true })
  t.equal((await run('resource list')).stdout, 'none\n')

  const { code, stdout } = await run([
    'resource', 'create', '--id', 'https://api.example/orders', '--name', 'Orders', '--scope', 'orders:read=see your orders', '--scope', 'orders:write=place = pay',
    '--self-service', 'orders:read', '--role', 'clerk', '--role', 'boss', '--access-ttl', '7200', '--claim', 'tenant=attributes.tenant:introspection,jwt', '--claim', 'https://a.example/p=attributes.p:jwt', '--json'
  ])
  t.equal(code, 0)
  const { resourceId, ...rest } = JSON.parse(stdout)
  t.strictSame(rest, { strippedClients: 1 })
  t.match(await services.resources.require(resourceId), {
    id: 'https://api.example/orders',
    name: 'Orders',
    scopes: { 'orders:read': 'see your orders', 'orders:write': 'place = pay' },
    selfService: ['orders:read'],
    accessTtl: 7200,
    roles: ['boss', 'clerk'],
    claims: { tenant: { from: 'attributes.tenant', in: ['introspection', 'jwt'] }, 'https://a.example/p': { from: 'attributes.p', in: ['jwt'] } }
  })
  t.match(await services.clients.require(clientId, { user_id: 'u', isAdmin: true }), { scopes: ['own'] })

  t.match((await run('resource list')).stdout, new RegExp(
    '^RESOURCE_ID +ID +NAME +SCOPES +SELF_SERVICE +DOCUMENTS +ACCESS_TTL +TOKENS +ROLES +CLAIMS\n' +
    `${resourceId} +https://api\\.example/orders +Orders +orders:read,orders:write +orders:read +7200 +opaque +boss,clerk +https://a\\.example/p,tenant\n$`))
  t.match((await run('resource list --json')).json(), { data: [{ resourceId, name: 'Orders' }] })

  await t.test('an error names its flag', async (t) => {
    const good = ['resource', 'create', '--id', 'urn:example:a', '--name', 'A']
    for (const [argv, message, expected = 1] of [
      [['resource', 'create', '--name', 'A'], 'URI: is required', 2],
      [['resource', 'create', '--id', 'a', '--name', 'A'], '--id: must be an absolute URI'],
      [['resource', 'create', '--id', 'https://api.example/orders', '--name', 'A'], '--id: a resource with this id exists'],
      [['resource', 'create', '--id', 'https://id.example/api/v1', '--name', 'A'], "--id: must not be the URI of this service's own API"],
      [[...good, '--access-ttl', '59'], '--access-ttl: must be an integer from 60 to 86400', 2],
      [[...good, '--scope', 'a'], '--scope: must be NAME=DESCRIPTION', 2],
      [[...good, '--scope', '=a'], '--scope: must be NAME=DESCRIPTION', 2],
      [[...good, '--scope', 'a=x', '--scope', 'a=y'], '--scope: names a scope twice', 2],
      [[...good, '--scope', 'a b=x'], '--scope[0]: must be a scope token: printable ASCII without space, quote and backslash'],
      [[...good, '--scope', 'orders:read=x'], "--scope: 'orders:read' belongs to another resource"],
      [[...good, '--scope', 'openid=x'], "--scope: 'openid' is reserved"],
      [[...good, '--self-service', 'a'], '--self-service: must be scopes of the resource'],
      [[...good, '--claim', 'a'], '--claim: must be NAME=FROM:PLACES', 2],
      [[...good, '--claim', 'a=attributes.a'], '--claim: must be NAME=FROM:PLACES', 2],
      [[...good, '--claim', 'a=attributes.a:jwt', '--claim', 'a=attributes.b:jwt'], '--claim: names a claim twice', 2],
      [[...good, '--claim', 'sub=attributes.a:jwt'], '--claim.sub: is a name that standards or this service use, and cannot be given another meaning'],
      [[...good, '--claim', 'a=info.a:jwt'], '--claim.a.from: must be attributes. and at most 5 keys with dots between them, of letters, digits, _ and -'],
      [[...good, '--role', ''], '--role[0]: must NOT have fewer than 1 characters', 2],
      [['resource', 'remove', '--id', 'urn:example:none'], '--id: no resource has this URI']
    ] as const) {
      const hint = expected === 2 ? `fastify-identity: see: ${CALL} help resource create\n` : ''
      const { code, stdout, stderr } = await run([...argv])
      t.strictSame({ code, stdout, stderr }, { code: expected, stdout: '', stderr: `fastify-identity: ${message}\n${hint}` }, message)
    }
    t.equal(await services.resources.count(), 1)
  })

  t.strictSame((await run('resource remove --id https://api.example/orders --json')).json(), { resourceId, strippedClients: 0 })
  t.equal(await services.resources.count(), 0)
})

t.test('commands publish their events: no number of them fills a record while no service runs', async (t) => {
  const dir = t.testdir()
  const run = createCli(dir)
  // A record carries at most 32 events that are not published.
  for (let number = 0; number < 34; number++) {
    const { code, stderr } = await run(['resource', 'create', '--id', `urn:example:${number}`, '--name', 'A'])
    t.equal(code, 0, stderr)
  }
})
