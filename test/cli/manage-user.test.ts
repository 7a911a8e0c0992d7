import t from 'tap'
import { createCli } from '../helpers/cli.ts'
import { startSmtp } from '../helpers/smtp.ts'

t.test('a user is shown, disabled, enabled and deleted, and their clients are counted', async (t) => {
  const run = createCli(t.testdir())
  const { user_id } = (await run('user create --account ann@example.com --role editor --json')).json()
  await run('client create --owner ann@example.com --name one --credentials')
  const { clientId } = (await run('client create --owner ann@example.com --name two --credentials --json')).json()

  const shown = (await run('user show --account Ann@example.com --json')).json() as unknown
  t.match(shown, { user_id, account: 'ann@example.com', roles: { editor: true }, disabled_at: null, expired_at: null, clients: 2 })
  t.notOk('password' in (shown as object))
  t.match((await run('user show --account ann@example.com')).stdout, /^roles +editor$/m)

  const { access_token } = (await run(`token create --account ann@example.com --client ${clientId} --json`)).json()
  t.ok(access_token)
  await run('client create --owner ann@example.com --name ours --credentials --first-party')
  t.match((await run('user disable --account ann@example.com --json')).json(), { user_id, clients: 3, stopped_clients: 2 })
  t.match((await run('user disable --account ann@example.com')).stdout, /sign nobody in while their owner is disabled/)
  t.match((await run('user show --account ann@example.com --json')).json(), { disabled_at: String })
  t.match(await run(`token create --account ann@example.com --client ${clientId}`), { code: 1, stderr: /the user is disabled/ })
  t.match((await run('user enable --account ann@example.com --json')).json(), { user_id, clients: 3 })
  t.match((await run('user show --account ann@example.com --json')).json(), { disabled_at: null })

  t.match((await run(`client delete --client ${clientId} --json`)).json(), { clientId, name: 'two', userId: user_id })
  t.match(await run(`client delete --client ${clientId}`), { code: 1, stderr: /--client: |no such client/ })
  const deleted = await run('user delete --account ann@example.com')
  t.match(deleted, { code: 0, stdout: /^clients +2$/m })
  t.match(deleted.stdout, /^stopped_clients +1$/m)
  t.match(deleted.stdout, /The clients stay/)
  t.match(await run('user show --account ann@example.com'), { code: 1, stderr: '--account: no user has this account' })
  t.match((await run('client list --json')).json(), { data: [{ name: 'one', userId: user_id }, { name: 'ours' }] })
  await run('user create --account bob')
  await run('client create --owner bob --name of-bob --credentials')
  t.match((await run('user delete --account bob --clients --json')).json(), { clients: 1, deleted_clients: 1 })
  t.notMatch((await run('client list --json')).stdout, 'of-bob')
  for (const command of ['disable', 'enable', 'delete', 'verify-email']) t.match(await run(`user ${command} --account nobody`), { code: 1, stderr: '--account: no user has this account' })
})

t.test('the clients of a user are deleted with them, or taken over before', async (t) => {
  const run = createCli(t.testdir())
  const { user_id: admin } = (await run('user create --account root --role admin --json')).json()
  const { user_id } = (await run('user create --account ann --json')).json()
  const first = (await run('client create --owner ann --name one --credentials --json')).json()
  await run('client create --owner ann --name two')
  const taken = (await run(`client patch --client ${first.clientId} --take-over root --json`)).json()
  t.match(taken.clientSecret, /^[0-9A-Za-z]{16}$/)
  t.not(taken.clientSecret, first.clientSecret)
  t.match(await run(`client patch --client ${first.clientId} --take-over nobody`), { code: 1, stderr: '--take-over: no user has this account' })
  t.match((await run('user delete --account ann --clients --json')).json(), { user_id, clients: 1, deleted_clients: 1 })
  t.match((await run('client list --json')).json(), { data: [{ name: 'one', userId: admin }] })
})

t.test('user verify-email verifies the account, and mails the address', async (t) => {
  const server = await startSmtp(t, { authOptional: true })
  const run = createCli(t.testdir(), {
    IDENTITY_MAIL_URL: `smtp://127.0.0.1:${server.port}`, IDENTITY_MAIL_FROM: 'id@example.com', IDENTITY_ISSUER: 'https://id.example.com', IDENTITY_NAME: 'Example'
  })
  await run('user create --account ann@example.com')
  await run('user create --account bob')
  t.match((await run('user verify-email --account ann@example.com --json')).json(), { email: 'ann@example.com', email_verified_at: String })
  t.match(server.received.pop(), { to: 'ann@example.com', subject: 'Example: your email address is confirmed' })
  t.match(await run('user verify-email --account ann@example.com'), { code: 0 }, 'the command may be repeated')
  t.match(await run('user verify-email --account bob'), { code: 1, stderr: /the user has no address/ })
  t.equal(server.received.length, 0)
})

t.test('user create --email-verified makes a person whose address apps see as verified', async (t) => {
  const run = createCli(t.testdir())
  const created = (await run('user create --account Ann@example.com --email-verified --json')).json() as { user_id: string }
  t.match((await run('user show --account ann@example.com --json')).json(), { user_id: created.user_id, email: 'ann@example.com', email_verified_at: String, email_verified_by: 'operator' })
  const { data } = (await run(`event list --user ${created.user_id} --json`)).json() as unknown as { data: { type: string }[] }
  t.strictSame(data.map(({ type }) => type).sort(), ['user.created', 'user.verified'])
  t.match(await run('user create --account bob --email-verified'), { code: 1, stderr: /--email-verified: the account is not an email address/ })
  t.match(await run('user create --account ann@example.com --email-verified'), { code: 1, stderr: /a user with this account exists/ })
  t.match(await run('user verify-email --account ann@example.com'), { code: 0 }, 'it is so already')
  await run('user create --account cara@example.com')
  t.match((await run('user verify-email --account cara@example.com')).code, 0, 'not without the flag')
})

t.test('the last administrator goes only with --force', async (t) => {
  const run = createCli(t.testdir())
  await run('bootstrap --account root')
  for (const command of ['user disable', 'user delete', 'user roles --remove admin']) {
    t.match(await run(`${command} --account root`), { code: 1, stderr: /the last administrator cannot / }, command)
  }
  t.equal((await run('user disable --account root --force')).code, 0)
  t.equal((await run('user enable --account root')).code, 0)
  t.equal((await run('user roles --account root --remove admin --force')).code, 0)
  t.equal((await run('user roles --account root --add admin')).code, 0)
  t.equal((await run('user delete --account root --force')).code, 0)
  t.equal((await run('bootstrap --account root')).code, 0)
})
