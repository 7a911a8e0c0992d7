import { rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { storeError } from '../../lib/errors.ts'
import { createReadiness } from '../../plugins/readiness.ts'
import { build } from '../helpers/build.ts'
import { createTimers } from '../helpers/timers.ts'

/** Readiness over a store that counts its pings, on a clock of the test's. */
function start () {
  const state = { pings: 0, fails: false, isLost: false, answer: Promise.resolve() }
  const timers = createTimers()
  const closing = new AbortController()
  const store = {
    async ping () {
      state.pings++
      await state.answer
      if (state.fails) throw storeError(new Error('no room'))
    },
    verify () {
      if (state.isLost) throw storeError(new Error('removed'))
    }
  }
  return { state, closing, timers, check: createReadiness({ store, closing: closing.signal, timers }) }
}

t.test('the store is pinged at most once a second, for every answer', async (t) => {
  const { state, timers, check } = start()
  await Promise.all(Array.from({ length: 100 }, check))
  state.fails = true
  timers.advance(999)
  await check()
  t.equal(state.pings, 1)
  timers.advance(1)
  await t.rejects(check(), { code: 'ErrDb' })
  state.fails = false
  timers.advance(999)
  await t.rejects(check(), { code: 'ErrDb' })
  t.equal(state.pings, 2)
  timers.advance(1)
  await check()
  t.equal(state.pings, 3)
})

t.test('a store that does not answer is not ready within a second, and ready again with its answer', async (t) => {
  const { state, timers, check } = start()
  const { promise, resolve } = Promise.withResolvers<void>()
  state.answer = promise
  const first = t.rejects(check(), { code: 'ErrDb', cause: { message: 'the store has not answered within 900 ms' } })
  timers.advance(500)
  const second = t.rejects(check(), { code: 'ErrDb' }, 'which waits only for the rest')
  timers.advance(400)
  await Promise.all([first, second])
  timers.advance(5_000)
  const third = t.rejects(check(), { code: 'ErrDb' }, 'and later ones do not wait')
  timers.advance(0)
  await third
  t.equal(state.pings, 1, 'the ping in flight is shared')
  resolve()
  await promise
  await check()
})

t.test('a lost store and a shutdown count at once', async (t) => {
  const { state, closing, check } = start()
  await check()
  state.isLost = true
  await t.rejects(check(), { code: 'ErrDb', cause: { message: 'removed' } })
  state.isLost = false
  await check()
  closing.abort()
  await t.rejects(check(), { code: 'ErrDb', message: 'the service is shutting down' })
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
