import t from 'tap'
import { createCli } from '../helpers/cli.ts'

const DAY = 24 * 60 * 60 * 1000

t.test('secrets of clients on the command line', async (t) => {
  const cli = createCli(t.testdir())
  await cli('user create --account ann')
  const create = async (name: string, flags = '--credentials') => String((await cli(`client create --owner ann --name ${name} ${flags} --json`)).json().clientId)
  const [soon, late] = [await create('soon'), await create('late')]
  await create('open', '')
  const expires = (days: number) => new Date(Date.now() + days * DAY).toISOString()
  const added = (await cli(`client secret add --client ${soon} --name nightly --expires ${expires(10)} --json`)).json()
  t.match(added.secret, /^fi_sec_\w{49}$/)
  await cli(`client secret add --client ${late} --name later --expires ${expires(100)}`)
  const list = (await cli(`client secret list --client ${soon}`)).stdout
  t.match(list, /SECRET_ID +NAME +ENDS_IN +CREATED +EXPIRES +LAST_USED/)
  t.match(list, `...${String(added.secret).slice(-4)}`)
  t.notMatch(list, String(added.secret))
  const names = async (flags: string) => ((await cli(`client list ${flags} --json`)).json() as unknown as { data: { name: string }[] }).data.map(({ name }) => name)
  t.strictSame(await names('--expires-within 30d'), ['soon'])
  t.strictSame(await names('--expires-within 200d'), ['late', 'soon'])
  t.strictSame(await names('--expires-within 200d --limit 1'), ['late'])
  t.strictSame(await names('--unused-since 90d'), [], 'they are new')
  t.strictSame(await names('--unused-since 0d'), ['late', 'soon'], 'a public client has no secret to use')
  t.match(await cli('client list --unused-since 90'), { code: 2, stderr: '--unused-since: must be a number of days, such as 30d' })
  t.match(await cli(`client secret remove --client ${soon} --secret ${added.id}`), { code: 0 })
  t.match(await cli(`client secret remove --client ${soon} --secret ${added.id}`), { code: 1, stderr: 'the client has no such secret' })
  t.match(await cli(`client secret add --client ${soon} --name x --expires yesterday`), { code: 1, stderr: '--expires: must be an RFC 3339' })
})
