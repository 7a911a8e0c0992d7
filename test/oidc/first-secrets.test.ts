import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { welcome } from '../../cli/welcome.ts'
import { startIdentity } from '../../testing/index.ts'
import { Browser } from './browser.ts'
import { type Harness, askCode, signIn } from './harness.ts'

t.test('the file with the password of the first admin is removed when they first sign in', async (t) => {
  const dir = t.testdir()
  const kit = await startIdentity({ t, database: `sqlite:${dir}/identity.db` })
  const { url } = await kit.listen()
  const { identity } = kit.app
  await welcome(identity, { url, production: false, secretsDir: dir })
  const [file, token] = [join(dir, 'first-admin.txt'), join(dir, 'first-token')]
  const [, password = ''] = /^ {2}password {2}(\S+)$/m.exec(readFileSync(file, 'utf8')) ?? []
  const { user_id } = await identity.users.create({ data: { account: 'ann', password: 'p' } })
  const { clientId: client_id } = await identity.clients.create({
    data: { redirectUris: ['https://app.example/cb'], scopes: [], name: 'The App', first_party: true }, credentials: false
  }, { user_id, isAdmin: true })
  const { url: request } = askCode({ client_id, client_secret: '', redirect_uri: 'https://app.example/cb' }, { scope: 'openid' })
  const as = async (account: string, password: string) => await signIn({ user: { account, password }, browser: () => new Browser(url) } as unknown as Harness, request)

  t.equal((await as('admin', 'wrong')).title, 'Error: Sign in')
  t.ok((await as('ann', 'p')).left)
  t.ok(existsSync(file), 'a wrong password and somebody else remove nothing')
  t.ok((await as('admin', password)).left)
  t.notOk(existsSync(file))
  t.ok(existsSync(token), 'the token expires by itself')
  t.ok((await as('admin', password)).left, 'and again')
})
