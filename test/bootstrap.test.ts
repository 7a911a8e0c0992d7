import t, { type Test } from 'tap'
import { readConfig } from '../config.ts'
import { openServices } from '../lib/identity.ts'
import { createMongoDatabase } from './helpers/mongo-database.ts'
import { MONGODB_URL } from './helpers/mongodb.ts'
import { runProgram, serviceEnv } from './helpers/process.ts'

/** Two processes that bootstrap at once; the hash takes long enough that each is at work when the other is. */
async function race (t: Test, env: Record<string, string>): Promise<void> {
  const slow = { ...env, IDENTITY_BCRYPT_COST: '11' }
  const results = await Promise.all(['ann', 'bob'].map((account) => runProgram(t, 'cli.ts', { args: ['bootstrap', '--json', '--account', account], env: slow })))
  const [winner, loser] = results.sort((one, other) => Number(one.code) - Number(other.code))
  t.match(winner, { code: 0 })
  const withoutWarning = loser?.stderr.replace(/^fastify-identity: warning: a new, empty database was made: .*\n/, '')
  t.strictSame({ ...loser, stderr: withoutWarning }, { code: 1, stdout: '', stderr: 'fastify-identity: an admin exists: bootstrap only makes the first one\n' })

  const services = await openServices(readConfig(env).services)
  t.teardown(() => services.close())
  t.equal(await services.users.count(), 1)
  t.equal(await services.clients.count(undefined, { user_id: '', isAdmin: true }), 2)
  const { user_id, access_token } = JSON.parse(winner?.stdout ?? '{}')
  t.match(await services.tokens.authenticate(access_token), { isAdmin: true, user: { user_id } })
}

t.test('two processes at once make one admin on SQLite', async (t) => await race(t, serviceEnv(t.testdir())))

t.test('two processes at once make one admin on MongoDB', { skip: MONGODB_URL === undefined && 'MONGODB_URL is not set' }, async (t) => {
  await race(t, serviceEnv(t.testdir(), { DATABASE_URL: createMongoDatabase(t, MONGODB_URL!), IDENTITY_DATA_DIR: t.testdir() }))
})
