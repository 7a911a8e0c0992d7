import t from 'tap'
import { readConfig } from '../../config.ts'
import { openServices } from '../../lib/identity.ts'
import { createCli } from '../helpers/cli.ts'
import { startUpstream } from '../helpers/upstream.ts'

t.test('webhook create, list, test, replay, attempts and delete', async (t) => {
  const dir = t.testdir()
  const run = createCli(dir)
  const upstream = await startUpstream(t, (response) => response.writeHead(204).end())
  const services = await openServices(readConfig({ DATABASE_URL: `sqlite:${dir}/identity.db`, IDENTITY_BCRYPT_COST: '4', IDENTITY_PASSWORD_MIN: '1' }).services)
  t.teardown(() => services.close())
  t.equal((await run('webhook list')).stdout, 'none\n')
  const made = await run(['webhook', 'create', '--name', 'Orders', '--url', `${upstream.url}/hook`, '--type', 'user.*', '--type', 'session.ended', '--json'])
  t.equal(made.code, 0, made.stderr)
  const { webhookId: id, secret } = made.json()
  t.match(secret, /^whsec_/)
  t.match((await run('webhook list')).stdout, new RegExp(`^WEBHOOK_ID +NAME +URL +TYPES +STATE +PARKED\n${id} +Orders +${upstream.url}/hook +session\\.ended,user\\.\\* +ok +0\n$`))
  t.notMatch((await run('webhook list --json')).stdout, secret)
  t.match(await run(`webhook test --webhook ${id}`), { code: 0, stdout: /^status +204\n/ })
  t.match(upstream.seen[0], { method: 'POST', url: '/hook', headers: { 'webhook-signature': /^v1,/ } })

  await services.events.flush()
  t.match(await run(`webhook replay --webhook ${id} --from first`), { code: 0, stdout: /^cursor +\w+\.\d+\n$/ })
  await run('user create --account ann --json', { stdin: 'secret\n' })
  await services.events.flush()
  await services.webhooks.flush()
  t.match((await run(`webhook attempts --webhook ${id}`)).stdout, /^AT +EVENT +TYPE +ATTEMPT +OUTCOME +ANSWER +MS\n\S+Z +\w{26} +user\.created +1 +delivered +204 +\d+\n/)
  t.match(await run(`webhook delete --webhook ${id}`), { code: 0, stdout: `webhookId  ${id}\n` })
  t.match(await run(`webhook delete --webhook ${id}`), { code: 1, stderr: 'fastify-identity: --webhook: no such webhook\n' })

  for (const [argv, message, code = 1] of [
    [['webhook', 'create', '--name', 'A'], '--url: is required', 2],
    [['webhook', 'create', '--name', 'A', '--url', 'http://example.com'], '--url: must be an https URL'],
    [['webhook', 'create', '--name', 'A', '--url', 'https://example.com', '--type', 'x.y'], '--type[0]: no event has this type'],
    [['webhook', 'test', '--webhook', 'none'], '--webhook: no such webhook']
  ] as const) t.match(await run([...argv]), { code, stderr: `fastify-identity: ${message}` }, argv.join(' '))
})

t.test('webhook test prints why there was no answer', async (t) => {
  const run = createCli(t.testdir())
  const { webhookId: id } = (await run('webhook create --name A --url http://127.0.0.1:9/ --json')).json()
  t.match(await run(`webhook test --webhook ${id}`), { code: 1, stderr: 'fastify-identity: there was no answer: ECONNREFUSED\n' })
})
