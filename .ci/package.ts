/**
 * Packs the package and installs the tarball into an empty project, with the lowest release of Fastify that it accepts and with the
 * newest one. There it registers the plugin, calls it, runs the command and starts the testing kit, which shows files that a checkout
 * has and the package lacks.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

const root = join(import.meta.dirname, '..')
const project = mkdtempSync(join(tmpdir(), 'fastify-identity-'))
const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env.PATH}` }
const run = (command: string, args: string[], cwd: string) =>
  execFileSync(command, args, { cwd, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })

const SCRIPT = `
import assert from 'node:assert/strict'
import Fastify from 'fastify'
import identity from 'fastify-identity'
import bridge from 'fastify-identity/bridge'
import remoteAuth from 'fastify-identity/remote'
import { startIdentity } from 'fastify-identity/testing'

const app = Fastify()
await app.register(identity, { database: 'sqlite:data/identity.db', bcryptCost: 4 })
app.get('/mine', { onRequest: app.identity.guard() }, (request) => ({ account: request.caller.user.account }))
const url = await app.listen({ port: 0 })
const first = await app.identity.bootstrap()
const headers = { authorization: 'Bearer ' + first.access_token }
const info = await (await fetch(url + '/api/v1/auth/tokeninfo', { headers })).json()
assert.equal(info.data.account, 'admin')
assert.deepEqual(await (await fetch(url + '/mine', { headers })).json(), { account: 'admin' })
assert.equal((await fetch(url + '/docs/')).status, 200)
// Only lists of more than 100 records are rendered in a thread.
for (let made = 0; made < 100; made++) {
  for (const [path, data] of [
    ['client', { redirectUris: [], scopes: [], name: 'client ' + made }], ['user', { account: 'user-' + made, password: 'a long password' }]
  ]) {
    const init = { method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify({ data }) }
    assert.equal((await fetch(url + '/api/v1/' + path, init)).status, 200)
  }
}
for (const [path, length] of [['client', 102], ['user', 101]]) {
  const list = await (await fetch(url + '/api/v1/' + path + '/list?limit=0', { headers })).json()
  assert.equal(list.data.length, length, 'rendered by a module that a thread loads')
}
assert.ok((await (await fetch(url + '/openapi.json')).json()).info.version !== '0.0.0')

const relay = Fastify()
await relay.register(bridge, { prefix: '/clients', upstream: url })
const csv = await (await fetch(await relay.listen({ port: 0 }) + '/clients/list?format=csv', { headers })).text()
assert.ok(csv.includes('clientId,createdAt'))
await relay.close()

const elsewhere = Fastify()
await elsewhere.register(remoteAuth, { upstream: url })
elsewhere.get('/', { onRequest: elsewhere.identity.guard() }, (request) => ({ account: request.caller.user.account }))
assert.deepEqual((await elsewhere.inject({ url: '/', headers })).json(), { account: 'admin' })
await elsewhere.close()
await app.close()

const kit = await startIdentity()
const { headers: minted } = await kit.mint({ roles: ['admin'] })
assert.equal((await kit.inject({ url: '/api/v1/user/count', headers: minted })).statusCode, 200)
await kit.close()
console.log('the package works')
`

const TYPES = `
import Fastify from 'fastify'
import identity, { type Caller, type IdentityOptions } from 'fastify-identity'
import bridge from 'fastify-identity/bridge'
import remoteAuth from 'fastify-identity/remote'
import { startIdentity, type TestKit } from 'fastify-identity/testing'
const options: IdentityOptions = { database: 'sqlite::memory:' }
const app = Fastify()
await app.register(identity, options)
app.get('/', { onRequest: app.identity.guard({ roles: ['admin'] }) }, (request): string => request.caller.user.account)
app.get('/open', (request): Caller | null => request.hasCaller ? request.caller : null)
const created: { user_id: string } = await app.identity.users.create({ data: { account: 'ann', password: 'a long password' } })
await app.register(bridge, { prefix: '/clients', upstream: 'http://127.0.0.1:3000' })
await Fastify().register(remoteAuth, { upstream: 'http://127.0.0.1:3000' })
const kit: TestKit = await startIdentity()
export { created, kit }
`

/** Runs a checker of this checkout. Its output is printed only when it finds something. */
function check (tool: string, ...args: string[]): void {
  try {
    run(join(root, 'node_modules/.bin', tool), args, root)
  } catch (error) {
    console.error((error as { stdout?: string }).stdout)
    throw new Error(`${tool} objects to the package`)
  }
}

/** Installs the package with this release of Fastify, and uses it as a program, a TypeScript project and an operator do. */
function tryWith (fastify: string, tarball: string): void {
  const folder = join(project, `fastify-${fastify.replace(/\W/g, '-')}`)
  mkdirSync(folder)
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'consumer', private: true, type: 'module' }))
  run('npm', ['install', '--no-audit', '--no-fund', tarball, `fastify@${fastify}`, 'typescript@6', '@types/node@24'], folder)
  const installed = JSON.parse(run('npm', ['ls', 'fastify', '--all', '--json'], folder))
  const versions = new Set(JSON.stringify(installed).match(/(?<="fastify":\{"version":")[^"]+/g))
  console.log(`with Fastify ${[...versions].join(' and ')}:`)
  if (versions.size !== 1) throw new Error('there is not one Fastify')
  writeFileSync(join(folder, 'main.js'), SCRIPT)
  writeFileSync(join(folder, 'types.ts'), TYPES)
  console.log(run(process.execPath, ['main.js'], folder).trim())
  run('npx', ['tsc', '--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2024', '--skipLibCheck', 'false', '--types', 'node', 'types.ts'], folder)
  console.log('its types work in a strict program')
  const bin = join(folder, 'node_modules/.bin/fastify-identity')
  const created = JSON.parse(run(bin, ['bootstrap', '--json'], mkdtempSync(join(folder, 'cli-'))))
  if (typeof created.access_token !== 'string') throw new Error('the command printed no token')
  console.log('its command works')
  rmSync(join(folder, 'node_modules/fastify'), { recursive: true })
  const { status, stderr } = spawnSync(bin, ['user', 'list'], { cwd: folder, env, encoding: 'utf8' })
  if (status !== 1 || !/^fastify-identity: Fastify is not installed .*\n$/.test(stderr)) throw new Error(`without Fastify its command says: ${stderr}`)
  console.log('without Fastify, its command says so')
}

try {
  const [{ filename }] = JSON.parse(run('npm', ['pack', '--json', '--pack-destination', project], root))
  const tarball = join(project, filename)
  check('publint', 'run', tarball, '--strict')
  // CommonJS programs get the same types, because require() of Node loads ES modules. node10 knows no `exports`.
  check('attw', tarball, '--profile', 'esm-only')
  console.log('publint and attw find nothing')
  const { peerDependencies: { fastify: range } } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  for (const fastify of [range.replace(/^\^/, ''), range]) tryWith(fastify, tarball)
} finally {
  rmSync(project, { recursive: true, force: true })
}
