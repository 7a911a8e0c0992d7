import t from 'tap'
import { startIdentity } from '../testing/index.ts'
import { createCli } from './helpers/cli.ts'
import { readDoc } from './helpers/docs.ts'

const readme = readDoc('README.md')

t.test('the README is an introduction of two screens', async (t) => {
  t.ok(readme.split('\n').length <= 125, `${readme.split('\n').length} lines`)
})

t.test('the questions of new readers are answered there, or one click away', async (t) => {
  t.match(readme, /curl -X POST \S+\/api\/v1\/user .*"password"/s, 'how do I make a user?')
  t.match(readme, /user create --account ann/)
  const pages: [path: string, heading: string, found: RegExp][] = [
    ['docs/operations.md', 'Back up and restore', /the database.*secret key/s],
    ['docs/operations.md', 'Run it in production', /IDENTITY_ISSUER.*bootstrap.*identity serve/s],
    ['docs/bridge.md', 'The bridge', /It is for an app/],
    ['docs/architecture.md', 'Where a change goes', /field of a user/]
  ]
  for (const [path, heading, found] of pages) {
    t.ok(readme.includes(`](${path}`), `${path} is linked`)
    const [, section = ''] = readDoc(path).split(new RegExp(`^#+ ${heading}$`, 'm'))
    t.match(section.split(/^# |^## /m)[0], found, heading)
  }
})

t.test('the commands below the program get tokens for its routes', async (t) => {
  const [, resource = ''] = /const resource = '(\S+)'/.exec(readme) ?? []
  const commands = [...readme.matchAll(/^npx --no fastify-identity (.*)$/gm)].map(([, command = '']) => command)
  t.equal(commands.length, 3)
  const dir = t.testdir()
  const secretKey = Buffer.alloc(32, 1).toString('base64')
  const kit = await startIdentity({ t, database: `sqlite:${dir}/identity.db`, secretKey, resources: [{ id: resource, name: 'Orders', scopes: { 'orders:read': 'see your orders' } }], oidc: { issuer: 'https://id.example' } })
  const { protect, guard } = kit.app.identity
  kit.app.get('/orders', { onRequest: protect({ resource, scopes: ['orders:read'] }) }, ({ caller }) => caller.user)
  kit.app.get('/me', { onRequest: guard() }, ({ caller }) => caller.user)
  const run = createCli(dir, { IDENTITY_SECRET_KEY: secretKey })
  const tokens: string[] = []
  let id = ''
  for (const command of commands) {
    const ran = await run(`${command.replace(' ID ', ` ${id} `)} --json`)
    t.equal(ran.code, 0, ran.stderr)
    const { clientId, access_token } = ran.json()
    id = clientId ?? id
    if (access_token !== undefined) tokens.push(access_token)
  }
  const ask = async (url: string, token?: string) => (await kit.inject({ url, headers: { authorization: `Bearer ${token}` } })).statusCode
  t.strictSame([await ask('/me', tokens[0]), await ask('/orders', tokens[1]), await ask('/orders', tokens[0]), await ask('/me', tokens[1])], [200, 200, 401, 401])
})
