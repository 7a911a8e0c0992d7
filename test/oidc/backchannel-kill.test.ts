import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { startIdentity } from '../../testing/index.ts'
import { reuseMongoDatabase } from '../helpers/mongo-database.ts'
import { MONGODB_URL } from '../helpers/mongodb.ts'
import { startCommand } from '../helpers/process.ts'
import { startReceiver } from '../helpers/receiver.ts'
import { createFile } from './harness.ts'

t.setTimeout(180_000)

const CHILD = fileURLToPath(new URL('../fixtures/logout-child.ts', import.meta.url))

async function killAt (t: Test, database: string, uri: string, stop: 'delivery' | 'write', reached?: Promise<void>): Promise<string[]> {
  const { child, seen, ended } = startCommand(t, process.execPath, { args: [CHILD, database, uri, stop], env: {} })
  const [, line = ''] = await seen(/^(.*)\n/)
  await reached
  child.kill('SIGKILL')
  await ended
  return line.split(' ')
}

async function kill (t: Test, place: (t: Test) => string): Promise<void> {
  await t.test('kill -9 between the sign-out and the delivery: another process delivers', async (t) => {
    const database = place(t)
    const reached = Promise.withResolvers<void>()
    const hanging = Promise.withResolvers<number>()
    let isFirst = true
    const { url, received } = await startReceiver(t, async () => {
      if (!isFirst) return 200
      isFirst = false
      reached.resolve()
      return await hanging.promise
    })
    const [word, user_id, sessions] = await killAt(t, database, url, 'delivery', reached.promise)
    t.strictSame([word, sessions], ['ended', '0'])
    const kit = await startIdentity({ t, database, oidc: { issuer: 'http://127.0.0.1:1' } })
    await kit.flush()
    t.equal(received.length, 1, 'the claim of the process that was killed lasts five minutes')
    kit.clock.advance(5 * 60_000 + 1_000)
    await kit.flush()
    const [first, second] = received.map(({ body }) => JSON.parse(Buffer.from((body.get('logout_token') ?? '').split('.')[1] ?? '', 'base64url').toString()) as { sub: string, sid: string, jti: string })
    t.equal(received.length, 2)
    t.match([first, second], [{ sub: user_id }, { sub: user_id, sid: first!.sid }])
    t.not(first!.jti, second!.jti, 'each attempt is a token of its own')
    hanging.resolve(200)
  })

  await t.test('kill -9 between the write that ends all sessions and the scan of clients: another process completes it', async (t) => {
    const database = place(t)
    const { url, received } = await startReceiver(t)
    const [word, user_id = ''] = await killAt(t, database, url, 'write')
    t.equal(word, 'written')
    const kit = await startIdentity({ t, database, oidc: { issuer: 'http://127.0.0.1:1' } })
    // The relay of the killed process may still hold a lease. One that ended over a minute ago is over, whatever the clocks.
    kit.clock.advance(75_000)
    await kit.flush()
    t.equal(received.length, 0, 'stored by the relay, for in ten seconds')
    t.equal((await kit.events.list({ type: 'user.sessions_ended', user: user_id })).length, 1)
    kit.clock.advance(10_000)
    await kit.flush()
    t.equal(received.length, 1)
    await kit.app.identity.logouts.enqueueForUser(user_id, 1)
    kit.clock.advance(10_000)
    await kit.flush()
    t.equal(received.length, 1, 'once')
  })
}

t.test('on sqlite', async (t) => await kill(t, createFile))
t.test('on mongodb', { skip: MONGODB_URL === undefined && 'MONGODB_URL is not set' }, async (t) => await kill(t, (t) => reuseMongoDatabase(t, MONGODB_URL!)))
