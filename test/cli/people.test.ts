import t from 'tap'
import { createCli } from '../helpers/cli.ts'
import { startSmtp } from '../helpers/smtp.ts'

t.test('without mail, the links of invitations and recoveries are shown', async (t) => {
  const run = createCli(t.testdir())
  const invited = await run('user invite --account ann@example.com --name Ann --role editor --json')
  t.match(invited.json(), { user_id: String, link: /^http:\/\/127\.0\.0\.1:3000\/account\/invitation\?token=[\w-]{43}$/ })
  t.match((await run('user invite --account ann@example.com')).stdout, /Hand the link over/, 'again, as it was not accepted')
  t.match((await run('user recover --account ann@example.com --json')).json(), { sent: false, link: /\/account\/reset\?token=/ })
  t.match(await run('mail list'), { code: 1, stderr: /mail is not configured/ })
  t.match((await run('sessions end --user ann@example.com --json')).json(), { users: 1 })
  t.match((await run('sessions end --all --json')).json(), { users: 1 })
  t.match(await run('sessions end'), { code: 2, stderr: /ACCOUNT: is required, or --all/ })
})

t.test('with mail, links are sent, and failed mails are listed and sent again', async (t) => {
  let isUp = true
  const server = await startSmtp(t, { authOptional: true, reply: () => isUp ? 0 : 550 })
  const run = createCli(t.testdir(), {
    IDENTITY_MAIL_URL: `smtp://127.0.0.1:${server.port}`, IDENTITY_MAIL_FROM: 'id@example.com', IDENTITY_ISSUER: 'https://id.example.com', IDENTITY_NAME: 'Example'
  })
  const { stdout } = await run('user invite --account ann@example.com --json')
  t.notMatch(stdout, /link/)
  t.match(server.received.pop(), { to: 'ann@example.com', subject: 'Example: you’re invited', text: /https:\/\/id\.example\.com\/account\/invitation\?token=/ })
  t.match(await run('mail test --to ann@example.com --json'), { code: 0, stdout: '{"sent":"ann@example.com"}\n' })
  t.match(server.received.pop(), { to: 'ann@example.com', from: 'id@example.com', subject: 'Example: test email' })
  isUp = false
  t.match(await run('mail test --to bob@example.com'), { code: 1, stderr: /the email was not sent: .*550/ })
  t.match((await run('user recover --account ann@example.com --json')).json(), { sent: true })
  const { data: [failed] } = (await run('mail list --failed --json')).json() as unknown as { data: Record<string, unknown>[] }
  t.match(failed, { kind: 'recovery', to: 'ann@example.com', failure: 'EENVELOPE 550' })
  t.notOk(Object.hasOwn(failed ?? {}, 'sealed'))
  isUp = true
  t.match((await run('mail retry --all --json')).json(), { retried: 1 })
  t.match(server.received.pop(), { to: 'ann@example.com', subject: 'Example: set a new password' })
  t.equal((await run('mail list --failed')).stdout, 'none\n')
  t.match(await run('mail retry --id nothing'), { code: 1, stderr: /--id: no such failed mail/ })
})
