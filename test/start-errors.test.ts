import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readConfig } from '../config.ts'
import { explainListenError } from '../cli/process/listener.ts'
import { makeMissing } from '../lib/directories.ts'
import { runProgram, serviceEnv } from './helpers/process.ts'
import { createCli } from './helpers/cli.ts'

t.test('a start that cannot succeed names the variable, and makes nothing', async (t) => {
  const dir = t.testdir({ file: 'text' })
  const made = join(dir, 'made')
  mkdirSync(made)
  for (const [env, message] of [
    [{ HOST: 'no such host' }, /^fastify-identity: HOST: /],
    [{ IDENTITY_TRUST_PROXY: 'on' }, /IDENTITY_TRUST_PROXY: must be off, or comma-separated/],
    [{ DATABASE_URL: 'mongodb://127.0.0.1:99999/x', IDENTITY_DATA_DIR: made }, /MongoDB URL is invalid/]
  ] as const) {
    const { code, stdout, stderr } = await runProgram(t, 'server.ts', { env: serviceEnv(made, env) })
    t.equal(code, 1)
    t.match(stderr, message)
    t.equal(stdout, '', 'nothing was opened')
    t.strictSame(readdirSync(made), [])
  }
})

t.test('a data folder that cannot be written is named with its variable', async (t) => {
  const dir = t.testdir({ file: 'text' })
  const run = createCli(dir, { IDENTITY_DATA_DIR: join(dir, 'file') })
  t.match(await run('bootstrap'), { code: 1, stderr: /key file .*\/file\/secret\.key: it cannot be read/ })
})

t.test('a folder that the file system refuses is an error, and no endless loop', { skip: process.platform !== 'linux' && 'needs /proc' }, async (t) => {
  t.throws(() => makeMissing('/proc/none/such'), { code: 'ENOENT' })
  const run = createCli(t.testdir(), { DATABASE_URL: 'sqlite:/proc/none/such/id.db' })
  t.match(await run('bootstrap'), { code: 1, stderr: /\/proc\/none\/such/ })
  const elsewhere = createCli(t.testdir(), { IDENTITY_DATA_DIR: '/proc/none' })
  t.match(await elsewhere('bootstrap'), { code: 1, stderr: /key file \/proc\/none\/secret\.key: it cannot be written \(IDENTITY_DATA_DIR names its folder\)/ })
})

t.test('missing folders are made for the owner only; an existing one, and one that another makes first, are fine', async (t) => {
  const dir = t.testdir()
  t.equal(makeMissing(join(dir, 'a', 'b')), join(dir, 'a'))
  t.equal(makeMissing(join(dir, 'a', 'b')), undefined)
  writeFileSync(join(dir, 'a', 'file'), '')
  t.throws(() => makeMissing(join(dir, 'a', 'file', 'c')), { code: 'ENOTDIR' })
})

t.test('why a listener cannot be had', async (t) => {
  const config = readConfig(serviceEnv(t.testdir(), { PORT: '80' }))
  for (const [code, message] of [
    ['EADDRINUSE', 'PORT: address already in use: 127.0.0.1:80'], ['EACCES', 'PORT: this user may not listen on 80'],
    ['EADDRNOTAVAIL', 'HOST: is not an address of this machine'], ['EAI_AGAIN', 'HOST: the name cannot be looked up now']
  ] as const) t.match(explainListenError(Object.assign(new Error('listen'), { code }), config), { name: 'ConfigError', message })
  const other = new Error('another')
  t.equal(explainListenError(other, config), other)
})

t.test('a command names its flag', async (t) => {
  const run = createCli(t.testdir())
  await run('bootstrap')
  t.match(await run(['user', 'roles', '--account', 'admin', '--add=']), { code: 2, stderr: /--add: must not be empty/ })
  t.match(await run(['login', '--issuer', 'x']), { code: 2, stderr: /--issuer: must be an http or https URL/ })
})
