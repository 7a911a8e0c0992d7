import t from 'tap'
import { createCli } from '../helpers/cli.ts'

t.test('service tokens, and what was leaked', async (t) => {
  const cli = createCli(t.testdir())
  await cli('user create --account ann@example.com')
  const { clientId } = (await cli('client create --owner ann@example.com --name Sync --redirect-uri https://app.example/ --scope read --credentials --json')).json()
  const create = async (more = '') => (await cli(`client token create ${clientId} --name SCIM --scope read${more} --json`)).json()
  const list = async () => (JSON.parse((await cli(`client token list ${clientId} --json`)).stdout) as { data: { id: string, name: string }[] }).data

  const made = await create()
  t.match(made, { clientId, id: /^[\w-]{43}$/, token: /^fi_svc_/, expiresAt: /^20/ })
  const table = await cli(`client token list ${clientId}`)
  t.match(table.stdout, /^TOKEN_ID +NAME +ENDS_IN +SCOPES +RESOURCE +CREATED +EXPIRES +LAST_USED +FROM/)
  t.match(table.stdout, `...${made.token!.slice(-4)}`)
  t.notMatch(table.stdout, made.token!.slice(7, -4))
  t.match(await cli(`client token create ${clientId} --name x --scope other`), { code: 1, stderr: /--scope.*other/ })
  t.match(await cli(`client token create ${clientId} --name x --expires 2099-01-01T00:00:00Z`), { code: 1, stderr: /--expires: must be at most two years ahead/ })
  t.match(await cli(`client token remove ${clientId} --token ${made.id}`), { code: 0 })
  t.strictSame(await list(), [])
  t.match(await cli(`client token remove ${clientId} --token ${made.id}`), { code: 1, stderr: /no such token/ })

  const leaked = await create()
  const secret = (await cli(`client secret add ${clientId} --name nightly --json`)).json()
  const access = (await cli(`token create ann@example.com --client ${clientId} --refresh --json`)).json()
  for (const [text, shown] of [
    [leaked.token!, { id: leaked.id, client_id: clientId, name: 'SCIM' }],
    [secret.secret!, { id: secret.id, client_id: clientId, name: 'nightly' }],
    [access.refresh_token!, { client_id: clientId }]
  ] as const) {
    const ran = await cli('token revoke --json', { stdin: `${text}\n` })
    t.match(ran.json(), shown)
    t.notOk(ran.stdout.includes(text.slice(0, -4)))
    t.match(await cli('token revoke', { stdin: text }), { code: 1, stderr: /it is no valid token/ }, 'it has ended')
  }
  t.match(await cli('token revoke', { stdin: access.access_token! }), { code: 1 }, 'with the session of the refresh token')
  t.match(await cli('token revoke', { stdin: 'one\ntwo' }), { code: 2, stderr: /more than one line/ })
  t.strictSame(await list(), [])
})
