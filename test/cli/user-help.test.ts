/** Sessions and mails of one user, as support staff see them on the command line. */
import { join } from 'node:path'
import t from 'tap'
import type { UserSessions } from '../../schemas/support.ts'
import { startIdentity } from '../../testing/index.ts'
import { createCli } from '../helpers/cli.ts'
import { callAs } from '../helpers/people.ts'
import { startSmtp } from '../helpers/smtp.ts'
import { Browser } from '../oidc/browser.ts'

const KEY = Buffer.alloc(32, 9).toString('base64')

t.test('user sessions lists the browsers and the sessions of apps, and ends one or all', async (t) => {
  const directory = t.testdir()
  const database = `sqlite:${join(directory, 'identity.db')}`
  const kit = await startIdentity({ t, database, secretKey: KEY })
  const { url } = await kit.listen()
  const run = createCli(directory, { DATABASE_URL: database, IDENTITY_SECRET_KEY: KEY, NO_COLOR: '1' })
  t.equal((await run(['user', 'create', 'ann@example.com', '--password-stdin'], { stdin: 'correct horse' })).code, 0)
  t.equal((await run('user sessions ann@example.com')).stdout, 'none\n')
  const browser = new Browser(url)
  await (await browser.open('/account/sign-in')).submit({ account: 'ann@example.com', password: 'correct horse' })
  const tokens = [await kit.mint({ user: 'ann@example.com', client: 'shop', refresh: true }), await kit.mint({ user: 'ann@example.com', client: 'books', refresh: true })] as const
  const list = async () => (await run('user sessions ann@example.com --json')).json() as unknown as UserSessions
  const { browsers, sessions, more } = await list()
  t.match([browsers.length, sessions.length, more], [1, 2, 0])
  t.strictSame(Object.keys(await list()), Object.keys((await callAs(kit, (await kit.mint({ roles: ['admin'] })).headers).get<{ data: object }>(`/user/${tokens[0].user_id}/sessions`)).body.data), 'as the API has them')
  const text = (await run('user sessions ann@example.com')).stdout
  for (const { session_id } of [...browsers, ...sessions]) t.match(text, session_id)
  const narrow = (await run('user sessions ann@example.com', { terminal: true })).stdout
  t.notOk(narrow.split('\n').some((line) => line.length > 80), narrow)
  t.match(narrow, /^SESSION_ID +APP .*\n(.*\n)*.*\(browser\)/)

  const [first] = sessions
  const shown = narrow.split('\n').map((line) => line.split(' ')[0] ?? '').find((id) => id.length > 8 && first?.session_id.startsWith(id.replace('…', ''))) ?? ''
  t.match(await run(['user', 'sessions', 'end', 'ann@example.com', `--session=${shown}`, '--json']), { code: 0, stdout: new RegExp(`"ended":"${first?.session_id}"`) }, 'as the table shows it')
  t.equal((await list()).sessions.length, 1, 'the other one stays')
  const codes = await Promise.all(tokens.map(async ({ headers }) => (await callAs(kit, headers).get('/auth/tokeninfo')).status))
  t.strictSame(codes.sort(), [200, 401])
  t.match(await run('user sessions end ann@example.com --session other-session'), { code: 1, stderr: /: --session: the user has no such session\n$/ })
  t.match(await run(`user sessions end ann@example.com --session=${browsers[0]?.session_id}`), { code: 0 })
  t.match((await browser.open('/account')).title, /Sign in/)
  t.match((await run('user sessions end ann@example.com --json')).json(), { account: 'ann@example.com', ended: 'all' })
  for (const { headers } of tokens) t.equal((await callAs(kit, headers).get('/auth/tokeninfo')).status, 401)
  t.equal((await run('user sessions ann@example.com')).stdout, 'none\n')
  t.match(await run('user sessions end nobody'), { code: 1, stderr: /: ACCOUNT: no user has this account\n$/ })
})

t.test('user mails has what was sent, what waits and what failed, without addresses and links', async (t) => {
  const replies = new Map([['ann@example.com', 0]])
  const smtp = await startSmtp(t, { reply: (to) => replies.get(to) ?? 0 })
  const run = createCli(t.testdir(), {
    IDENTITY_ISSUER: 'http://127.0.0.1:3000', IDENTITY_MAIL_URL: `smtp://127.0.0.1:${smtp.port}`, IDENTITY_MAIL_FROM: 'id@example.com', NO_COLOR: '1'
  })
  await run('user create ann@example.com')
  t.equal((await run('user mails ann@example.com')).stdout, 'none\n')
  for (const reply of [0, 450, 550]) {
    replies.set('ann@example.com', reply)
    t.equal((await run('user recover ann@example.com')).code, 0)
  }
  const { stdout } = await run('user mails ann@example.com')
  for (const state of ['sent', 'waiting', 'failed']) t.match(stdout, new RegExp(`^\\S+ +recovery +${state} `, 'm'))
  t.notMatch(stdout, /@|https?:/)
  const narrow = (await run('user mails ann@example.com', { terminal: true })).stdout
  t.notOk(narrow.split('\n').some((line) => line.length > 80), narrow)
  const mails = ((await run('user mails ann@example.com --json')).json() as unknown as { data: { mail_id: string, state: string }[] }).data
  replies.set('ann@example.com', 0)
  const failed = mails.find(({ state }) => state === 'failed')
  t.match((await run(`jobs retry --kind mail --id ${failed?.mail_id} --json`)).json(), { retried: 1 }, 'its id is that of the job')
  t.match((await run('user mails ann@example.com')).stdout.match(/ sent /g), { length: 2 })
})

t.test('user enable ends an expiry, and leaves one of later alone', async (t) => {
  const run = createCli(t.testdir())
  t.match(await run('user create late --expires tomorrow'), { code: 1, stderr: /--expires: / })
  for (const [account, time, left] of [['past', '2020-01-01T00:00:00Z', null], ['later', '2999-01-01T00:00:00Z', '2999-01-01T00:00:00.000Z']] as const) {
    await run(['user', 'create', account, '--expires', time])
    t.match((await run(`user enable ${account}`)), { code: 0 })
    t.equal((await run(`user show ${account} --json`)).json().expired_at, left, account)
  }
})
