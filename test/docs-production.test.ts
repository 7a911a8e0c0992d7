import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import t, { type Test } from 'tap'
import { readConfig } from '../config.ts'
import { openServices } from '../lib/identity.ts'
import { listBlocks } from './helpers/docs.ts'
import { startCommand, type Started } from './helpers/process.ts'
import { call } from './helpers/upstream.ts'

const blocks = listBlocks('docs/operations.md')

/** A block of the page, for a folder of this test. */
function findBlock (dir: string, part: RegExp): string {
  const found = blocks.find(({ text }) => part.test(text))?.text
  if (found === undefined) throw new Error(`the page has no block with ${part}`)
  return found
    .replaceAll('/etc/identity', join(dir, 'etc'))
    .replaceAll('/var/lib/identity', join(dir, 'lib'))
    .replaceAll('/var/backups/identity', join(dir, 'backups'))
    .replaceAll('$(date +%F)', '2026-11-22')
    .replaceAll('deploy/identity serve', 'exec deploy/identity serve')
}

/** Settings that differ from the page, because its own would slow the test down. */
const ENV = { PORT: '0', IDENTITY_BCRYPT_COST: '4', IDENTITY_SHUTDOWN_DELAY: '0' }

const runBlock = (t: Test, dir: string, part: RegExp): Started =>
  startCommand(t, 'bash', { args: ['-euc', findBlock(dir, part)], env: { ...ENV, ENV_FILE: join(dir, 'etc/identity.env'), NODE: process.execPath } })

/** Whether the token is valid in the database of this folder, which no process serves. */
async function accepts (dir: string, token: string): Promise<boolean> {
  const { services: options } = readConfig(parseEnv(readFileSync(join(dir, 'etc/identity.env'), 'utf8')))
  const services = await openServices(options)
  try {
    await services.tokens.authenticate(token)
    return true
  } catch {
    return false
  } finally {
    await services.close()
  }
}

t.test('the way into production, a backup and its restore are as operations.md describes them', async (t) => {
  const dir = t.testdir()
  t.equal(await runBlock(t, dir, /openssl rand/).ended, 0)
  t.equal(statSync(join(dir, 'etc/secret.key')).mode & 0o777, 0o600)
  writeFileSync(join(dir, 'etc/identity.env'), findBlock(dir, /^NODE_ENV=production/))

  const early = runBlock(t, dir, /deploy\/identity serve\n/)
  t.equal(await early.ended, 1)
  t.match(early.stderr(), 'there is no database', 'nothing but bootstrap makes one')

  const bootstrap = runBlock(t, dir, /bootstrap --account/)
  t.equal(await bootstrap.ended, 0)
  const [, token = ''] = await bootstrap.seen(/access_token +(\S{43})/)
  const headers = { authorization: `Bearer ${token}` }

  const service = runBlock(t, dir, /deploy\/identity serve\n/)
  const [, url = ''] = await service.seen(/"msg":"Server listening at (http:[^"]+)"/)
  await service.seen(/("msg":"worker listening"[^]*){2}/)
  t.equal((await call(`${url}/health/ready`)).status, 200)
  const metadata = await call(`${url}/.well-known/openid-configuration`)
  t.equal(JSON.parse(metadata.text).issuer, 'https://id.example.com')
  t.match(metadata.headers, { 'strict-transport-security': /max-age/ })
  t.equal((await call(`${url}/api/v1/user`, { headers })).status, 200)

  const backup = runBlock(t, dir, /identity backup --file/)
  t.equal(await backup.ended, 0, backup.stderr())
  t.equal((await call(`${url}/api/v1/auth/logout`, { method: 'POST', headers })).status, 204)
  t.equal((await call(`${url}/api/v1/user`, { headers })).status, 401, 'revoked after the backup')
  service.child.kill('SIGTERM')
  t.equal(await service.ended, 0)

  const restore = runBlock(t, dir, /identity restore --file/)
  t.equal(await restore.ended, 0, restore.stderr())
  t.equal(await accepts(dir, token), false, 'the token of the backup has ended')
})

t.test('the proxy of the page sends the headers that the service needs', async (t) => {
  const [config = ''] = blocks.filter(({ language }) => language === 'nginx').map(({ text }) => text)
  for (const line of ['X-Forwarded-For $proxy_add_x_forwarded_for', 'X-Forwarded-Proto $scheme', 'proxy_http_version 1.1']) t.match(config, line)
})
