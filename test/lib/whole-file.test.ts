import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { writeSecretFile } from '../../cli/secret-files.ts'
import { resolveSecretKeys } from '../../lib/crypto/secret-key.ts'
import { createCli } from '../helpers/cli.ts'
import { recordFiles } from '../helpers/record-files.ts'

const unsealed = async () => false

// After a power loss a file is there whole, by its name: its content is synced before it gets the name, the directory after.

t.test('secret.key, and the directories made for it', async (t) => {
  const dir = t.testdir({ root: {} })
  const options = { database: `sqlite:${join(dir, 'root', 'made', 'data', 'identity.db')}`, production: false }
  const steps = recordFiles(t)
  const key = await resolveSecretKeys(options, unsealed)
  t.strictSame(steps.splice(0), ['sync made', 'sync root', 'sync secret.key', 'link secret.key', 'sync data'])
  t.same(await resolveSecretKeys(options, unsealed), key)
  t.strictSame(readdirSync(join(dir, 'root', 'made', 'data')), ['secret.key'])
  t.strictSame([statSync(join(dir, 'root', 'made')).mode & 0o777, statSync(join(dir, 'root', 'made', 'data', 'secret.key')).mode & 0o777], [0o700, 0o600])
})

t.test('the key that another process was first to make: it counts once its name is on the disk', async (t) => {
  const dir = t.testdir()
  const steps = recordFiles(t)
  const options = { database: 'mongodb://127.0.0.1/x', dataDir: dir, production: false }
  const keys = await Promise.all([resolveSecretKeys(options, unsealed), resolveSecretKeys(options, unsealed)])
  t.same(keys[0], keys[1])
  t.strictSame(steps.filter((step) => !step.endsWith('secret.key')).length, 2, 'both sync the directory')
  t.equal(steps.filter((step) => step === 'link secret.key').length, 1)
  t.strictSame(readdirSync(dir), ['secret.key'])
})

t.test('a file of first-run secrets', async (t) => {
  const dir = t.testdir({ root: {} })
  const steps = recordFiles(t)
  const file = join(dir, 'root', 'data', 'first-admin.txt')
  for (const text of ['one', 'two']) await writeSecretFile(file, text)
  t.strictSame(steps, [
    'sync root', 'sync first-admin.txt', 'rename first-admin.txt', 'sync data',
    'sync first-admin.txt', 'rename first-admin.txt', 'sync data'
  ])
  t.equal(readFileSync(file, 'utf8'), 'two')
})

t.test('an export', async (t) => {
  const dir = t.testdir({ out: {} })
  const run = createCli(dir)
  await run('bootstrap')
  const steps = recordFiles(t)
  t.match(await run(['client', 'export', '--csv', join(dir, 'out', 'clients.csv')]), { code: 0 })
  t.strictSame(steps, ['sync clients.csv', 'rename clients.csv', 'sync out'])
})

t.test('a write that fails leaves the old file, and no draft', async (t) => {
  const dir = t.testdir({ there: { inside: '' }, 'old.txt': 'old' })
  await t.rejects(writeSecretFile(join(dir, 'there'), 'new'), { code: 'EISDIR' })
  await t.rejects(writeSecretFile(join(dir, 'old.txt', 'below'), 'new'), { code: /ENOTDIR|EEXIST/ })
  writeFileSync(join(dir, 'secret.key'), 'no key')
  await t.rejects(resolveSecretKeys({ database: 'mongodb://127.0.0.1/x', dataDir: dir, production: false }, unsealed), /the secret key must be/)
  t.strictSame(readdirSync(dir).sort(), ['old.txt', 'secret.key', 'there'])
  t.equal(readFileSync(join(dir, 'old.txt'), 'utf8'), 'old')
})
