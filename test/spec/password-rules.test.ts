import t from 'tap'
import { forEachStore } from '../helpers/build.ts'
import { createCli } from '../helpers/cli.ts'
import { createUser, signIn, unique } from '../helpers/people.ts'

const GOOD = 'wide orange lamp'
const RULES = { passwordMin: 8, oidc: { name: 'Acme Straße' } }

/** Passwords that are refused for the account `Ann.Lee@example.com`, with the reason. */
const REFUSED: [password: string, reason: string, message: RegExp][] = [
  ['', 'short', /^password: must not be empty$/],
  ['sixteen', 'short', /^password: must have at least 8 characters$/],
  ['\u{1F600}'.repeat(7), 'short', /at least 8 characters/],
  ['password', 'common', /^password: is one of the most common passwords$/],
  ['PassWord1', 'common', /common/],
  ['ｐａｓｓｗｏｒｄ', 'common', /common/],
  ['1q2w3e4r', 'common', /common/],
  ['ann.lee@example.com', 'name', /^password: must not be the account or the name of the service$/],
  ['ANN.LEE@EXAMPLE.COM', 'name', /name/],
  ['ACME STRASSE', 'name', /name/],
  ['acme straße', 'name', /name/]
]

/** There is no rule about kinds of characters, any Unicode is accepted, and nothing is truncated. */
const ACCEPTED = [GOOD, '        ', '\u{1F600}'.repeat(8), 'пароль для входа', 'password 12345678', 'x'.repeat(1000) + 'y', '\u{1F600}'.repeat(1024), 'nul\0nul\0nul']

t.test('new passwords are checked wherever one is set', async (t) => await forEachStore(t, async (t, build) => {
  const kit = await build(t, RULES)
  const { users } = kit.app.identity
  const admin = await signIn(kit, { roles: ['admin'] })
  const account = 'ann.lee@example.com'
  const user_id = await createUser(admin, { account, password: GOOD })
  const ann = await signIn(kit, { user: user_id })
  const unrestricted = { data: { password: GOOD } }

  for (const [password, reason, message] of REFUSED) {
    const refused = { status: 400, body: { code: 'ErrParam', reason, message } }
    t.match(await ann.patch('/user', { data: { password, current_password: GOOD } }), refused, `own: ${reason}`)
    t.match(await admin.patch(`/user/${user_id}`, { data: { password } }), refused, `by an administrator: ${reason}`)
    await t.rejects(users.checkNewPassword(password, { account }), { code: 'ErrParam', reason }, `service: ${reason}`)
  }
  for (const [password, reason] of REFUSED.filter(([, reason]) => reason !== 'name')) {
    t.match(await admin.post('/user', { data: { account: unique('new'), password } }), { status: 400, body: { reason } }, `create: ${reason}`)
  }
  t.match(await admin.post('/user', { data: { account: 'Somebody-Else', password: 'somebody-ELSE' } }), { status: 400, body: { reason: 'name' } })
  await t.rejects(users.checkNewPassword('ann@home.example', { account, email: 'Ann@Home.example' }), { code: 'ErrParam', reason: 'name' })
  t.ok(await users.verify(account, GOOD), 'none was set')

  for (const password of ACCEPTED) {
    t.match(await admin.patch(`/user/${user_id}`, { data: { password } }), { status: 204 })
    t.ok(await users.verify(account, password))
    t.notOk(await users.verify(account, password.slice(0, -1)), 'every character counts')
  }
  t.match(await admin.patch(`/user/${user_id}`, unrestricted), { status: 204 })
}))

t.test('stored passwords stay valid, and passwordMin 1 turns the rules off', async (t) => await forEachStore(t, async (t, build) => {
  const lax = await build(t, { passwordMin: 1 })
  const account = unique('old')
  await lax.app.identity.users.create({ data: { account, password: 'x' } })
  t.match(await (await signIn(lax, { user: account })).patch('/user', { data: { password: '', current_password: 'x' } }), { status: 400, body: { code: 'ErrParam', reason: 'short' } })
  await lax.close()
  const strict = await build(t, RULES)
  t.ok(await strict.app.identity.users.verify(account, 'x'))
}))

t.test('the minimum is an option', async (t) => await forEachStore(t, async (t, build) => {
  const { users } = (await build(t, { passwordMin: 15 })).app.identity
  await t.rejects(users.checkNewPassword('fourteen chars', { account: 'ann' }), { reason: 'short', message: 'password: must have at least 15 characters' })
  t.equal(await users.checkNewPassword('fifteen chars..', { account: 'ann' }), 'fifteen chars..')
}))

t.test('the command line checks passwords too, and generates good ones', async (t) => {
  const run = createCli(t.testdir(), { IDENTITY_PASSWORD_MIN: '', IDENTITY_NAME: 'Acme Portal' })
  const create = 'user create --account ann --password-stdin'
  t.match(await run(create, { stdin: 'short\n' }), { code: 1, stderr: /--password-stdin: must have at least 8 characters/ })
  t.match(await run(create, { stdin: 'sunshine\n' }), { code: 1, stderr: /is one of the most common/ })
  t.match(await run(create, { stdin: 'acme portal\n' }), { code: 1, stderr: /must not be the account or the name of the service/ })
  t.match(await run(create, { stdin: `${GOOD}\n` }), { code: 0 })
  t.match(await run('user password --account ann --password-stdin', { stdin: 'short\n' }), { code: 1, stderr: /--password-stdin: must have at least 8/ })
  t.match(await run('user password --account ann'), { code: 0 })
  const longest = createCli(t.testdir(), { IDENTITY_PASSWORD_MIN: '24' })
  t.match(await longest('bootstrap'), { code: 0 })
  t.match(await longest('user create --account bob'), { code: 0 })
})
