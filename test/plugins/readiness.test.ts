import { rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { storeError } from '../../lib/errors.ts'
import { createReadiness } from '../../plugins/readiness.ts'
import { build } from '../helpers/build.ts'

/** Readiness over a store that counts its pings, on a clock of the test's. */
function start () {
  const state = { pings: 0, time: 0, fails: false, isLost: false }
  const closing = new AbortController()
  const store = {
    async ping () {
      state.pings++
      if (state.fails) throw storeError(new Error('no room'))
    },
    verify () {
      if (state.isLost) throw storeError(new Error('removed'))
    }
  }
  return { state, closing, check: createReadiness({ store, closing: closing.signal, now: () => state.time }) }
}

t.test('the store is pinged at most once a second, for every answer', async (t) => {
  const { state, check } = start()
  await Promise.all(Array.from({ length: 100 }, check))
  state.fails = true
  state.time = 999
  await check()
  t.equal(state.pings, 1)
  state.time = 1000
  await t.rejects(check(), { code: 'ErrDb' })
  state.fails = false
  state.time = 1999
  await t.rejects(check(), { code: 'ErrDb' })
  t.equal(state.pings, 2)
  state.time = 2000
  await check()
  t.equal(state.pings, 3)
})

t.test('a lost store and a shutdown count at once', async (t) => {
  const { state, closing, check } = start()
  await check()
  state.isLost = true
  await t.rejects(check(), { code: 'ErrDb', cause: { message: 'removed' } })
  state.isLost = false
  await check()
  closing.abort()
  await t.rejects(check(), { code: 'ErrDb', cause: { message: 'the service is closing' } })
  t.equal(state.pings, 1)
})

t.test('a shutdown counts for a check that waits for the store', async (t) => {
  const closing = new AbortController()
  const answer = Promise.withResolvers<void>()
  const check = createReadiness({ store: { ping: () => answer.promise }, closing: closing.signal })
  const checked = t.rejects(check(), { code: 'ErrDb' })
  closing.abort()
  answer.resolve()
  await checked
})

t.test('the service is unready once its file is removed, and before it closes', async (t) => {
  const closing = new AbortController()
  const kits = [
    await build(t, { database: `sqlite:${join(t.testdir(), 'identity.db')}` }),
    await build(t, { database: 'sqlite::memory:', closing: closing.signal })
  ]
  const ready = async () => await Promise.all(kits.map(async ({ app }) => (await app.inject('/health/ready')).statusCode))
  t.strictSame(await ready(), [200, 200])
  rmSync(join(t.testdirName, 'identity.db'))
  closing.abort()
  t.strictSame(await ready(), [503, 503])
  for (const { app } of kits) t.equal((await app.inject('/health/live')).statusCode, 200)
})
