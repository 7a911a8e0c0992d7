import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createCli } from '../helpers/cli.ts'

t.test('config check prints the effective configuration', async (t) => {
  const dir = t.testdir()
  const run = createCli(dir, { IDENTITY_ISSUER: 'https://id.example.com', PORT: '4000' })
  t.match(await run('config check'), { code: 1, stdout: '', stderr: /key file .*: it is missing/ })
  t.strictSame(readdirSync(dir), [], 'it makes nothing')
  await run('user create --account ann')
  const { code, json } = await run('config check --json')
  t.equal(code, 0)
  t.match(json(), {
    database: `sqlite:${join(dir, 'identity.db')}`, key_id: /^\S{8}$/, issuer: 'https://id.example.com', address: '127.0.0.1:4000', workers: 1, log_level: 'info', production: false
  })
})

t.test('config check names the problems', async (t) => {
  const dir = t.testdir()
  const check = async (env: Record<string, string>) => await createCli(dir, env)('config check')
  const key = Buffer.alloc(32, 1).toString('base64')
  await createCli(dir)('user create --account ann')
  t.match(await check({ PORT: 'x' }), { code: 1, stderr: /PORT: / })
  t.match(await check({ IDENTITY_SECRET_KEY: key }), { code: 1, stderr: /the secret key is not the one this database was sealed with/ })
  t.match(await check({ NODE_ENV: 'production', HOST: '0.0.0.0', IDENTITY_SECRET_KEY: key }), { code: 1, stderr: /issuer/i })
  t.match(await check({ NODE_ENV: 'production', DATABASE_URL: `sqlite:${join(dir, 'none.db')}`, IDENTITY_SECRET_KEY: key }), { code: 1, stderr: /there is no database/ })
  const { stderr, code } = await check({ DATABASE_URL: 'mongodb://ann:hunter2@127.0.0.1:1/x?serverSelectionTimeoutMS=100', IDENTITY_SECRET_KEY: key, IDENTITY_STORE_TIMEOUT: '300' })
  t.equal(code, 1)
  t.notMatch(stderr, 'hunter2')
})
