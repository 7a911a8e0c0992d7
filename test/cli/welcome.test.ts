import t from 'tap'
import { listPages, welcome } from '../../cli/welcome.ts'
import { readConfig } from '../../config.ts'
import { openServices, type Services } from '../../lib/identity.ts'

const HERE = { url: 'http://127.0.0.1:3000', production: false }

async function open (t: { teardown: (fn: () => unknown) => unknown }): Promise<Services> {
  const services = await openServices(readConfig({ DATABASE_URL: 'sqlite::memory:', IDENTITY_BCRYPT_COST: '4', IDENTITY_PASSWORD_MIN: '1' }).services)
  t.teardown(() => services.close())
  return services
}

t.test('an empty SQLite store gets a first admin, printed once with a first call', async (t) => {
  const services = await open(t)
  const text = await welcome(services, HERE)
  const [, token = ''] = /^ {2}token {5}(\S{43})$/m.exec(text) ?? []
  t.ok(text.includes(`\n  curl -H 'Authorization: Bearer ${token}' http://127.0.0.1:3000/api/v1/auth/tokeninfo\n`))
  const { user, client } = await services.tokens.authenticate(token)
  const [, password = ''] = /^ {2}password {2}(\S+)$/m.exec(text) ?? []
  t.ok(await services.users.verify(user.account, password))

  const later = await welcome(services, HERE)
  t.ok(later.includes(`\n  npm run -s cli -- token create --account admin --client ${client.clientId}\n`))
  for (const secret of [token, password]) t.notOk(later.includes(secret))
})

t.test('the pages that are on are named, at every start outside production', async (t) => {
  const services = await open(t)
  const name = async (env: Record<string, string>) => await welcome(services, { ...HERE, pages: listPages(readConfig({ DATABASE_URL: 'sqlite::memory:', ...env }), HERE.url) })
  t.ok((await name({})).includes('Pages to open in a browser:\n\n  http://127.0.0.1:3000/account\n  http://127.0.0.1:3000/admin\n  http://127.0.0.1:3000/docs\n'), 'with the first admin')
  t.ok((await name({ IDENTITY_ISSUER: 'https://id.example/auth', IDENTITY_ACCOUNT_PATH: '/me' })).includes('  https://id.example/auth/me\n  https://id.example/auth/admin\n  http://127.0.0.1:3000/docs\n'), 'later too')
  t.ok((await name({ IDENTITY_ACCOUNT_PATH: 'off', IDENTITY_ADMIN_PATH: '/boss', IDENTITY_OPENAPI: 'off' })).includes('Pages to open in a browser:\n\n  http://127.0.0.1:3000/boss\n\n'))
  t.notOk((await name({ IDENTITY_ACCOUNT_PATH: 'off', IDENTITY_ADMIN_PATH: 'off', IDENTITY_OPENAPI: 'off' })).includes('Pages to open'))
  t.notOk((await name({ IDENTITY_OIDC: 'off', IDENTITY_OPENAPI: 'off' })).includes('Pages to open'))
})

t.test('in production nothing is created or printed', async (t) => {
  const services = await open(t)
  t.equal(await welcome(services, { ...HERE, production: true }), '')
  t.equal(await services.users.count(), 0)
})

t.test('a database on a server may be shared: the command is printed instead', async (t) => {
  const services = await open(t)
  const shared = { ...services, store: { ...services.store, engine: 'mongodb' } }
  t.match(await welcome(shared, HERE), /\n {2}npm run -s cli -- bootstrap\n/)
  t.equal(await services.users.count(), 0)
})

t.test('users without clients: the help command is printed', async (t) => {
  const services = await open(t)
  await services.users.create({ data: { account: 'ann', password: 'p' } })
  t.match(await welcome(services, HERE), /\n {2}npm run -s cli -- help\n/)
})

t.test('of two processes that start at once, one prints the admin, the other the command', async (t) => {
  const services = await open(t)
  const texts = await Promise.all([welcome(services, HERE), welcome(services, HERE)])
  t.equal(texts.filter((text) => text.includes('password')).length, 1)
  t.equal(texts.filter((text) => text.includes('token create --account admin')).length, 1)
})
