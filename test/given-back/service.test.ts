import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { type StartOptions, type TestKit, startIdentity } from '../../testing/index.ts'
import { findKept, watchSizes } from '../helpers/given-back.ts'
import { call } from '../helpers/upstream.ts'
import '../helpers/plain-threads.ts'

const OPTIONS: StartOptions = { signUp: true }

/** Uses most of what opens only when it is needed: threads of hashes, readers, mails, webhooks, connections. */
async function use (kit: TestKit, name: string): Promise<void> {
  const { app } = kit
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  await app.identity.users.create({ data: { account: name, password: 'secret words', email: `${name}@example.com` } } as never)
  const { access_token: token } = await kit.mint({ user: name, roles: ['admin'] })
  for (const path of ['/api/v1/user/list', '/api/v1/user/count', '/.well-known/openid-configuration', '/nowhere']) {
    await call(url + path, { headers: { authorization: `Bearer ${token}` } })
  }
  await kit.flush()
}

/** The database of each start: in memory, and in a file of its own. */
const DATABASES: Record<string, (folder: string) => string> = {
  'in memory': () => 'sqlite::memory:',
  'in a file': (folder) => `sqlite:${join(mkdtempSync(join(folder, 'run-')), 'identity.db')}`
}

for (const [name, toDatabase] of Object.entries(DATABASES)) {
  t.test(`a service with its database ${name} that is closed leaves nothing behind, whether it was used or not`, async (t) => {
    const folder = t.testdir()
    for (const isUsed of [false, true]) {
      const kept = await findKept(async (index) => {
        const kit = await startIdentity({ ...OPTIONS, database: toDatabase(folder) })
        if (isUsed) await use(kit, `ann${index}`)
        await kit.close()
      }, { times: 2 })
      t.strictSame(kept, [], isUsed ? 'used' : 'not used')
    }
  })
}

t.test('a service that fails to start leaves nothing behind', async (t) => {
  const kept = await findKept(async () => {
    await t.rejects(startIdentity({ ...OPTIONS, resources: [{ uri: 'no uri' }] } as never))
  }, { times: 3 })
  t.strictSame(kept, [])
})

/** Requests that come again and again, by path, with their status. */
const REQUESTS: [path: string, status: number][] = [
  ['/api/v1/user/list', 200], ['/api/v1/user/count', 200], ['/api/v1/user/nobody', 404], ['/api/v1/user/count?unknown=1', 400], ['/nowhere', 404],
  ['/.well-known/openid-configuration', 200], ['/account', 303], ['/signin', 404]
]

t.test('a running service gives back what each request takes', async (t) => {
  const { opened: kit, sizes } = await watchSizes(async () => await startIdentity({ ...OPTIONS, t }))
  const url = await kit.app.listen({ host: '127.0.0.1', port: 0 })
  const { access_token: token } = await kit.mint({ user: 'ann', roles: ['admin'] })
  const headers = { authorization: `Bearer ${token}` }
  for (const [path, status] of REQUESTS) {
    const statuses = new Set<number>()
    t.strictSame(await findKept(async () => statuses.add((await call(url + path, { headers })).status), { sizes }), [], path)
    t.strictSame([...statuses], [status], path)
  }
})
