import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createPace } from '../../../lib/import/pace.ts'
import type { Services } from '../../../lib/services.ts'
import { createPasswords } from '../../../lib/users/passwords.ts'
import { openPlainServices } from '../../helpers/plain-services.ts'
import { advanceTo, createTimers } from '../../helpers/timers.ts'
import '../../helpers/plain-threads.ts'

const LINES = Array.from({ length: 250 }, (_, index) => ({ line: index + 1, value: { account: `person${index}` } }))

/** The services of a process on the test's own database file. */
async function open (t: Test, relaysEvents: boolean, database = `sqlite:${join(t.testdir(), 'identity.db')}`): Promise<{ services: Services, database: string }> {
  const services = await openPlainServices({ database, relaysEvents })
  t.teardown(() => services.close())
  return { services, database }
}

/** The sizes of the batches of an import. */
async function importBatches ({ imports }: Services): Promise<number[]> {
  const { verdicts } = await imports.importUsers((async function * () { yield LINES })(), { source: 'old' })
  return (await Array.fromAsync(verdicts)).map(({ length }) => length)
}

t.test('an import of a service hurries while nobody signs in', async (t) => {
  const { services } = await open(t, true)
  t.strictSame(await importBatches(services), [100, 100, 50])
})

t.test('it gives way after a password was compared, and goes on', async (t) => {
  const { services } = await open(t, true)
  await services.users.signIn('nobody', 'a wrong password')
  t.strictSame(await importBatches(services), Array.from({ length: 10 }, () => 25))
})

t.test('while people sign in, at most 1,000 lines a second are written', async (t) => {
  const timers = createTimers()
  const pace = createPace(() => 1_000, timers)
  t.equal(await pace.wait(), 25, 'the first batch')
  for (let batch = 0; batch < 3; batch++) {
    let size: number | undefined
    const waiting = pace.wait().then((found) => { size = found })
    timers.advance(24)
    await new Promise(setImmediate)
    t.equal(size, undefined, 'after 24 ms')
    timers.advance(1)
    await waiting
    t.equal(size, 25, 'after 25 ms')
  }
})

t.test('an import of another process gives way to the service that publishes its events', async (t) => {
  const { services: service, database } = await open(t, true)
  const { services } = await open(t, false, database)
  t.equal((await importBatches(services))[0], 100)
  await service.events.flush()
  t.equal((await importBatches(services))[0], 25)
  await service.close()
  t.strictSame(await importBatches(services), [100, 100, 50], 'and hurries when none runs')
})

t.test('a batch waits for the sign-in whose password is being compared, and not without end', async (t) => {
  const rests = [0, 0, 10, 25]
  let looks = 0
  const timers = createTimers()
  const pace = createPace(() => {
    looks++
    return rests.shift() ?? 0
  }, timers)
  t.equal(await advanceTo(timers, 'a pause of the sign-ins', pace.wait(), 5), 25)
  t.equal(looks, 4)
  t.equal(await advanceTo(timers, 'the end of the wait', pace.wait(), 5), 25, 'they follow one another without a pause')
  t.equal(looks, 4 + 21, 'every 5 ms, for 100 ms')
})

t.test('passwords tell how long none was compared', async (t) => {
  const passwords = createPasswords({ cost: 4 })
  t.teardown(() => passwords.close())
  t.equal(passwords.countRest(), Infinity)
  const hashing = passwords.hash('one')
  t.equal(passwords.countRest(), 0)
  await hashing
  const now = performance.now.bind(performance)
  t.intercept(performance, 'now', { value: () => now() + 10_000 })
  t.ok(passwords.countRest() >= 10_000)
  t.ok(passwords.countRest() < Infinity)
})
