import t from 'tap'
import { createCli } from '../helpers/cli.ts'

const at = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()

t.test('user token create, list and remove', async (t) => {
  const cli = createCli(t.testdir(), { IDENTITY_PERSONAL_TOKENS: '30' })
  const { user_id } = (await cli(['user', 'create', 'ann', '--json'])).json()
  const made = (await cli(['user', 'token', 'create', 'ann', '--name', 'nightly', '--scope', 'clients:read', '--expires', at(20), '--json'])).json()
  t.match(made, { user_id, id: String, token: /^fi_pat_[0-9A-Za-z]{49}$/, expiresAt: String })
  const listed = (await cli(['user', 'token', 'list', 'ann', '--json'])).stdout
  t.match(listed, '"name":"nightly"')
  t.notMatch(listed, String(made.token))
  t.match(await cli(['user', 'token', 'create', 'ann', '--name', 'long', '--expires', at(40)]), { code: 1, stderr: /must be at most 30 days ahead/ })
  t.match(await cli(['user', 'token', 'remove', 'ann', '--token', 'none', '--yes']), { code: 1, stderr: /the user has no such token/ })
  t.match((await cli(['user', 'token', 'remove', 'ann', '--token', String(made.id), '--yes'])), { code: 0 })
  t.notMatch((await cli(['user', 'token', 'list', 'ann', '--json'])).stdout, 'nightly')
  const events = (await cli(['event', 'list', '--type', 'token.*', '--json'])).stdout
  for (const type of ['token.personal_created', 'token.personal_removed']) t.match(events, type)
})

t.test('while they are off, the commands say so', async (t) => {
  const cli = createCli(t.testdir())
  await cli(['user', 'create', 'ann'])
  for (const rest of [['list'], ['create', '--name', 'n', '--expires', at(1)], ['remove', '--token', 'x', '--yes']]) {
    const [verb = '', ...flags] = rest
    t.match(await cli(['user', 'token', verb, '--account', 'ann', ...flags]), { code: 1, stderr: /IDENTITY_PERSONAL_TOKENS/ }, verb)
  }
})
