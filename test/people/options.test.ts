import Fastify from 'fastify'
import t from 'tap'
import identity, { type IdentityOptions } from '../../index.ts'
import { serveTesting, startIdentity } from '../../testing/index.ts'

const MAIL = { url: 'smtp://user:s3cret@mail.example.com', from: 'id@example.com' }
const ISSUER = { issuer: 'https://id.example.com' }

t.test('a wrong option of mail is named at the start, without the password of the server', async (t) => {
  const send = async () => {}
  const cases: [IdentityOptions, string][] = [
    [{ mail: MAIL }, 'option oidc.issuer: is required with the option mail, since its links lead there'],
    [{ mail: { send } }, 'option oidc.issuer: is required with the option mail, since its links lead there'],
    [{ mail: MAIL, oidc: false }, 'option mail: needs the authorization server'],
    [{ mail: { ...MAIL, url: 'http://user:s3cret@mail.example.com' }, oidc: ISSUER }, 'option mail.url: must be smtps://USER:PASSWORD@HOST:PORT, or smtp: for STARTTLS'],
    [{ mail: { ...MAIL, from: 'nobody' }, oidc: ISSUER }, 'option mail.from: must be an email address, or a name with the address in < >'],
    [{ signUp: true }, 'option signUp: needs the option mail'],
    [{ links: { reset: 'https://app.example.com/reset' } }, 'option links.reset: must be an http or https URL with {token}']
  ]
  for (const [options, message] of cases) {
    const app = Fastify()
    await t.rejects(async () => await app.register(identity, { database: 'sqlite::memory:', ...options }), { message })
    await app.close()
  }
})

t.test('links lead to the pages of the embedder, with their token', async (t) => {
  const kit = await startIdentity({ t, links: { reset: 'https://app.example.com/reset#{token}' } })
  await kit.app.identity.users.create({ data: { account: 'ann@example.com', password: 'p' } })
  await kit.inject({ method: 'POST', url: '/api/v1/auth/forgot', payload: { data: { account: 'ann@example.com' } } })
  t.match(await kit.mails.next({ to: 'Ann@example.com' }), { link: /^https:\/\/app\.example\.com\/reset#[\w-]{43}$/ })
  await t.rejects(kit.mails.next(), { message: 'no mail was sent' })
})

t.test('users delete their own accounts where they may, with their clients; the last administrator stays', async (t) => {
  const kit = await startIdentity({ t, selfDelete: true })
  const ann = await kit.mint({ user: 'ann@example.com', client: 'app' })
  const remove = async (headers: Record<string, string>) => await kit.inject({ method: 'DELETE', url: '/api/v1/user', headers, payload: { data: {} } })
  t.equal((await remove(ann.headers)).statusCode, 204)
  t.equal((await kit.inject({ url: '/api/v1/user', headers: ann.headers })).statusCode, 401)
  t.match(await kit.mails.all(), [{ to: 'ann@example.com', subject: /your account was deleted/, link: undefined }], 'and are told so')
  t.equal(await kit.app.identity.clients.count(ann.user_id, { user_id: '', isAdmin: true }), 0)
  const root = await kit.mint({ user: 'root', roles: ['admin'] })
  t.match((await remove(root.headers)).json(), { code: 'ErrPerm', message: 'user: the last administrator cannot be deleted' })
  await kit.mint({ user: 'other', roles: ['admin'] })
  t.equal((await remove(root.headers)).statusCode, 204)
})

t.test('a suite in another language takes mails over HTTP', async (t) => {
  const { url, kit, close } = await serveTesting({})
  t.teardown(close)
  await kit.app.identity.users.create({ data: { account: 'ann@example.com', password: 'p' } })
  await kit.inject({ method: 'POST', url: '/api/v1/auth/forgot', payload: { data: { account: 'ann@example.com' } } })
  t.match(await (await fetch(`${url}/testing/mails?to=ann@example.com`)).json(), { data: { to: 'ann@example.com', token: /^[\w-]{43}$/ } })
  t.equal((await fetch(`${url}/testing/mails`)).status, 404)
})
