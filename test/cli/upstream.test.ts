import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { openStore } from '../../lib/store/index.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { openServices } from '../../lib/identity.ts'
import { DEFAULT_ROLE_NAMES as roles } from '../../lib/roles.ts'
import { toWayKey } from '../../lib/way.ts'
import { createTestUpstream } from '../../testing/index.ts'
import { createCli } from '../helpers/cli.ts'
import { waitUntil } from '../helpers/wait.ts'

t.test('upstream test says whether a provider can be used, and config check what is wrong', async (t) => {
  const provider = await createTestUpstream()
  t.teardown(provider.close)
  const dir = t.testdir({ secret: 'hunter2' })
  const file = join(dir, 'upstreams.json')
  const corp = { id: 'corp', kind: 'oidc', issuer: provider.issuer, clientId: 'c', clientSecretFile: join(dir, 'secret') }
  const write = (upstreams: unknown) => writeFileSync(file, JSON.stringify(upstreams))
  const run = createCli(dir, { IDENTITY_UPSTREAMS_FILE: file })
  write([corp])
  t.match((await run('upstream test --id corp --json')).json(), { id: 'corp', kind: 'oidc', name: '127.0.0.1', reachable: true, backchannel_logout_uri: '/api/v1/auth/upstream/corp/backchannel-logout' })
  t.match(await run('upstream test --id work'), { code: 1, stderr: /--id: no such upstream, there are corp/ })
  const named = createCli(dir, { IDENTITY_UPSTREAMS_FILE: file, IDENTITY_ISSUER: 'https://id.example.com/base' })
  const uri = 'https://id.example.com/base/api/v1/auth/upstream/corp/backchannel-logout'
  t.match((await named('upstream test --id corp --json')).json(), { backchannel_logout_uri: uri })
  t.match((await named('config check --json')).json(), { capabilities: [{}, {}, { name: 'providers', providers: [{ backchannel_logout_uri: uri }] }] })
  t.match(await named('config check'), { code: 0, stdout: new RegExp(uri) })
  t.notMatch((await createCli(dir)('config check')).stdout, /backchannel/)
  t.equal((await run('config check')).code, 0)
  write([{ ...corp, issuer: 'http://127.0.0.1:9' }])
  t.match(await run('upstream test --id corp'), { code: 1, stderr: /the upstream corp cannot be used: .*ECONNREFUSED/ })
  write([{ ...corp, issuer: `${provider.issuer}/other` }])
  t.match(await run('upstream test --id corp'), { code: 1, stderr: /the upstream corp cannot be used: / })
  write([{ ...corp, create: true }])
  t.match(await run('config check'), { code: 1, stderr: /IDENTITY_UPSTREAMS_FILE: corp: create: needs the option signUp/ })
  t.match(await createCli(dir, { IDENTITY_UPSTREAMS_FILE: '/none' })('config check'), { code: 1, stderr: /IDENTITY_UPSTREAMS_FILE: the file cannot be read \(ENOENT\)/ })
  write([{ ...corp, issuer: 'http://192.0.2.1' }])
  t.match(await run('config check'), { code: 1, stderr: /corp: issuer: must be an https URL/ })
})

t.test('people whom a removed upstream leaves without a way in: the start warns, and user list names them', async (t) => {
  const dir = t.testdir()
  const run = createCli(dir)
  for (const account of ['ann', 'bob']) await run(`user create --account ${account}`)
  const database = `sqlite:${join(dir, 'identity.db')}`
  const store = await openStore(database, { collections: COLLECTIONS })
  const users = store.collection<UserRecord>('users')
  const ann = (await users.getBy('account', 'ann'))!
  const upstreams = [{ id: 'corp', kind: 'oidc' as const, issuer: 'https://corp.example', clientId: 'c', clientSecret: 's', create: false, link: 'confirm' as const, sync: 'first' as const }]
  const warnings: string[] = []
  async function start (configured: typeof upstreams) {
    warnings.length = 0
    const services = await openServices({
      database,
      store,
      storeTimeout: 10_000,
      bcryptCost: 4,
      hashQueue: 10,
      passwordMin: 1,
      production: false,
      roles,
      managerRoles: undefined,
      clientsPerUser: false,
      auditDays: 1,
      addresses: 'off',
      dataDir: dir,
      secretKey: undefined,
      upstreams: configured,
      relaysEvents: true,
      onWarning: (message) => { warnings.push(message) }
    })
    await services.ways.list(ann)
    return services
  }
  const first = await start(upstreams)
  for (const account of ['ann', 'bob']) {
    const { id } = (await users.getBy('account', account))!
    await first.accounts.linkIdentity({ user_id: id, epoch: 0 }, { kind: 'upstream', upstream: 'corp', key: toWayKey('upstream', 'corp', account), material: {} }, 'Corp')
  }
  await users.update(ann.id, { unset: ['password'] })
  await first.close()
  t.strictSame(warnings, [])
  for (let count = 0; count < 2; count++) {
    const services = await start([])
    await waitUntil('a warning', () => warnings.length > 0)
    t.strictSame(warnings, ['the upstream corp is no longer configured, and 1 person has no other sign-in method: see user list --no-way'])
    await services.close()
  }
  await store.close()
  const { stdout } = await run('user list --no-way')
  t.match(stdout, /ann/)
  t.notMatch(stdout, /bob/)
})
