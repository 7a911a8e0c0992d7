import { chmodSync, existsSync, readFileSync, readdirSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { readConfig } from '../../config.ts'
import { type Services, openServices } from '../../lib/identity.ts'
import { compact } from '../../lib/maintenance/compact.ts'
import type { Document, Json } from '../../lib/store/port.ts'
import { createCli } from '../helpers/cli.ts'

async function openService (t: Test, dir: string): Promise<Services> {
  const services = await openServices(readConfig({ DATABASE_URL: `sqlite:${join(dir, 'identity.db')}`, IDENTITY_BCRYPT_COST: '4', IDENTITY_PASSWORD_MIN: '1' }).services)
  t.teardown(() => services.close())
  return services
}

/** A database with a user and a token, after most of its content was removed. */
async function prepare (t: Test): Promise<{ dir: string, path: string, token: string }> {
  const dir = t.testdir()
  const run = createCli(dir)
  await run('user create --account ann')
  const { clientId: client } = (await run('client create --owner ann --name c --credentials --json')).json()
  const { access_token: token = '' } = (await run(`token create --account ann --client ${client} --json`)).json()
  const services = await openService(t, dir)
  const attempts = services.store.collection<Document & Record<string, Json>>('webhook_attempts')
  for (let start = 0; start < 2_000; start += 100) {
    await attempts.insertMany(Array.from({ length: 100 }, (_, index) => ({ id: `a${start + index}`, expired_at: '2000-01-01T00:00:00.000Z', text: 'x'.repeat(2_000) })))
  }
  await attempts.deleteMany({ before: { expired_at: '2001-01-01T00:00:00.000Z' } })
  await services.close()
  return { dir, path: join(dir, 'identity.db'), token }
}

t.test('compact gives the free space back, and keeps everything', async (t) => {
  const { dir, path, token } = await prepare(t)
  chmodSync(path, 0o640)
  const before = statSync(path)
  const { code, stdout, stderr } = await createCli(dir)('compact --json')
  t.equal(code, 0, stderr)
  t.strictSame(JSON.parse(stdout), { database: path, bytes_before: before.size, bytes_after: statSync(path).size })
  t.ok(statSync(path).size < before.size / 2, `${before.size} became ${statSync(path).size}`)
  t.equal(statSync(path).mode & 0o777, 0o640, 'the mode stays')
  t.equal(statSync(path).uid, before.uid)
  t.strictSame(readdirSync(dir).sort(), ['identity.db', 'secret.key'], 'no draft and no log are left')
  const services = await openService(t, dir)
  t.ok(await services.tokens.authenticate(token))
  t.ok(await services.users.getByAccount('ann'))
})

t.test('compact refuses while a process has the database open, and changes nothing', async (t) => {
  const { dir, path, token } = await prepare(t)
  const services = await openService(t, dir)
  const { ino } = statSync(path)
  t.match(await createCli(dir)('compact'), { code: 1, stderr: /another process has .*identity\.db open: stop the service first/ })
  t.equal(statSync(path).ino, ino)
  t.ok(await services.tokens.authenticate(token))
  await services.users.create({ data: { account: 'bob', password: 'p' } })
  t.notOk(readdirSync(dir).some((name) => name.startsWith('.identity.db')), 'no draft is left')
})

t.test('a service that starts during compact does not use the former file', async (t) => {
  const { dir, path } = await prepare(t)
  const compacting = compact(path)
  const starting = openService(t, dir).then((services) => services, () => null)
  const [done, services] = await Promise.allSettled([compacting, starting])
  // Either one is first: the other is refused, or comes after it.
  const opened = services.status === 'fulfilled' ? services.value : null
  t.ok(done.status === 'fulfilled' || opened !== null)
  const created = await opened?.users.create({ data: { account: 'bob', password: 'p' } }).then(() => true, () => false)
  await opened?.close()
  const again = await openService(t, dir)
  t.equal(await again.users.getByAccount('bob') !== null, created === true, 'an acknowledged write is in the file')
})

t.test('compact says when there is no database, and leaves a link', async (t) => {
  t.match(await createCli(t.testdir())('compact'), { code: 1, stderr: /there is no database at/ })
  t.match(await createCli(t.testdir(), { DATABASE_URL: 'mongodb://127.0.0.1:1/x' })('compact'), { code: 1, stderr: /is not SQLite/ })
  const { dir, path } = await prepare(t)
  const link = join(dir, 'link.db')
  symlinkSync(path, link)
  const { before, after } = await compact(link)
  t.ok(after < before)
  t.ok(existsSync(link) && statSync(link).ino === statSync(path).ino)
})

t.test('a backup has no free pages', async (t) => {
  const { dir, path } = await prepare(t)
  const services = await openService(t, dir)
  const file = join(dir, 'backup.db')
  t.match(await createCli(dir)(['backup', '--file', file]), { code: 0, stderr: '' })
  t.ok(statSync(file).size < statSync(path).size / 2)
  t.equal(readFileSync(file).subarray(0, 15).toString(), 'SQLite format 3')
  await services.close()
})
