import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import type { Services } from '../../../lib/identity.ts'
import { reuseMongoDatabase } from '../../helpers/mongo-database.ts'
import { MONGODB_URL } from '../../helpers/mongodb.ts'
import { openPlainServices } from '../../helpers/plain-services.ts'
import { startCommand } from '../../helpers/process.ts'
import { waitUntil } from '../../helpers/wait.ts'

t.setTimeout(180_000)

const CHILD = fileURLToPath(new URL('../../fixtures/signing-out-child.ts', import.meta.url))

interface Killed {
  user_id: string
  bound: string[]
  word: string
}

async function killAfter (t: Test, database: string, writes: number): Promise<Killed> {
  const { child, seen, ended } = startCommand(t, process.execPath, { args: [CHILD, database, String(writes)], env: {} })
  const [, first = '', word = ''] = await seen(/^(.*)\n(.*)\n/)
  child.kill('SIGKILL')
  await ended
  return { ...JSON.parse(first) as Omit<Killed, 'word'>, word }
}

async function countAlive ({ tokens }: Services, bound: readonly string[]): Promise<number> {
  const found = await Promise.allSettled(bound.map(async (token) => await tokens.authenticate(token)))
  return found.filter(({ status }) => status === 'fulfilled').length
}

async function kill (t: Test, place: (t: Test) => string): Promise<void> {
  let isKilled = true
  for (let writes = 0; isKilled; writes++) {
    await t.test(`kill -9 after ${writes} writes of a sign-out`, async (t) => {
      const database = place(t)
      isKilled = false
      const { user_id, bound, word } = await killAfter(t, database, writes)
      isKilled = word === 'stopped'
      const services = await openPlainServices({ database, relaysEvents: true })
      t.teardown(() => services.close())
      const before = await countAlive(services, bound)
      if (writes === 0) {
        t.equal(before, 2, 'nothing was decided')
        await services.ownSessions.endBrowser(user_id, 'browser')
      }
      await waitUntil('the end of every token of the browser', async () => await countAlive(services, bound) === 0)
      await t.rejects(services.ownSessions.endBrowser(user_id, 'browser'), { code: 'ErrNotFound' })
      await services.events.flush()
      const types = (await services.events.listOwn(user_id)).map(({ type }) => type).filter((type) => ['browser.signed_out', 'session.ended'].includes(type))
      t.strictSame(types.sort(), ['browser.signed_out', 'session.ended', 'session.ended'])
    })
  }
}

t.test('on sqlite', async (t) => await kill(t, (t) => `sqlite:${t.testdir()}/identity.db`))
t.test('on mongodb', { skip: MONGODB_URL === undefined && 'MONGODB_URL is not set' }, async (t) => await kill(t, (t) => reuseMongoDatabase(t, MONGODB_URL!)))
