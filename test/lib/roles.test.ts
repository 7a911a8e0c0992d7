import fastify from 'fastify'
import t from 'tap'
import { readConfig } from '../../config.ts'
import identity from '../../index.ts'
import remoteAuth from '../../plugins/remote.ts'

t.test('two roles under one name are refused at the start: a holder of one would hold the other', async (t) => {
  for (const [roles, message] of [
    [{ admin: 'staff', manager: 'staff' }, /^option roles.manager: must differ from roles.admin$/],
    [{ admin: 'manager' }, /^option roles.manager: must differ from roles.admin$/],
    [{ service: 'admin' }, /^option roles.service: must differ from roles.admin$/],
    [{ admin: '__proto__' }, /^option roles.admin: must not be __proto__$/],
    [{ manager: 'bot', service: 'bot' }, /^option roles.service: must differ from roles.manager$/]
  ] as const) {
    for (const [name, register] of [
      ['identity', async () => await fastify().register(identity, { database: 'sqlite::memory:', roles })],
      ['remote', async () => await fastify().register(remoteAuth, { upstream: 'http://127.0.0.1:9', roles })]
    ] as const) await t.rejects(register, { message }, `${name} ${JSON.stringify(roles)}`)
  }
})

t.test('the environment names the variable', async (t) => {
  const manager = /^IDENTITY_ROLE_MANAGER: must differ from IDENTITY_ROLE_ADMIN$/m
  const service = /^IDENTITY_ROLE_SERVICE: must differ from IDENTITY_ROLE_MANAGER$/m
  t.throws(() => readConfig({ IDENTITY_ROLE_MANAGER: 'admin' }), { name: 'ConfigError', message: manager })
  t.throws(() => readConfig({ IDENTITY_ROLE_MANAGER: 'service', PORT: 'x' }), { name: 'ConfigError', message: service }, 'beside other problems')
  t.throws(() => readConfig({ IDENTITY_ROLE_ADMIN: '__proto__' }), { name: 'ConfigError', message: /^IDENTITY_ROLE_ADMIN: must not be __proto__$/m })
  t.doesNotThrow(() => readConfig({ IDENTITY_ROLE_MANAGER: 'service', IDENTITY_ROLE_SERVICE: 'manager' }), 'swapped')
})

t.test('managers cannot be allowed to grant the admin or service role', async (t) => {
  const roles = { service: 'bot' }
  for (const role of ['admin', 'bot']) {
    const message = `option managerRoles: must not contain ${role}, which only an admin grants`
    await t.rejects(async () => await fastify().register(identity, { database: 'sqlite::memory:', roles, managerRoles: ['clerk', role] }), { message })
  }
  const app = fastify()
  t.teardown(() => app.close())
  await app.register(identity, { database: 'sqlite::memory:', roles, managerRoles: ['service', 'manager'] })
})
