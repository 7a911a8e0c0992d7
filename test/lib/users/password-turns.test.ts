import t, { type Test } from 'tap'
import type * as Main from '../../../lib/users/passwords.ts'
import { importMocked } from '../../helpers/import-mocked.ts'

/** Passwords with one thread, which hashes on request of the test. */
async function load (t: Test) {
  const running: (() => void)[] = []
  class Piscina {
    run = async () => await new Promise<boolean>((resolve) => running.push(() => resolve(false)))
    destroy = async () => {}
  }
  const { createPasswords } = await importMocked<typeof Main>(t, new URL('../../../lib/users/passwords.ts', import.meta.url), { piscina: { Piscina } })
  const settle = () => new Promise((resolve) => setImmediate(resolve))
  // Of so many processes each has one thread.
  const passwords = createPasswords({ cost: 12, processes: 1000, queue: 10_000_000 })
  // The first hash loads the pool's module, which takes any number of turns.
  const first = passwords.hash('first')
  while (running.length === 0) await settle()
  running.shift()!()
  await first
  return {
    passwords,
    /** One hash is done. */
    async hashOne () {
      running.shift()?.()
      await settle()
    },
    settle
  }
}

t.test('four addresses at their limits delay a stranger by at most three hashes', async (t) => {
  const { passwords, hashOne, settle } = await load(t)
  const hostile = Array.from({ length: 100 }, () => ['a', 'b', 'c', 'd']).flat()
  let refused = 0
  for (const key of hostile) passwords.verify('guess', undefined, { key }).catch(() => { refused++ })
  await settle()
  t.ok(refused > 0 && refused < hostile.length, `${refused} of ${hostile.length} attempts would wait too long`)
  for (let i = 0; i < 9; i++) await hashOne()
  let signedIn = false
  passwords.verify('right', undefined, { key: 'stranger' }).then(() => { signedIn = true }, t.fail)
  await settle()
  for (let hashes = 0; hashes < 3; hashes++) await hashOne()
  t.ok(signedIn)
})

t.test('an office of any size behind one address is served while the wait is short', async (t) => {
  const { passwords, hashOne, settle } = await load(t)
  let signedIn = 0
  for (let i = 0; i < 30; i++) passwords.verify('right', undefined, { key: 'office' }).then(() => { signedIn++ }, t.fail)
  await settle()
  for (let i = 0; i < 30; i++) await hashOne()
  t.equal(signedIn, 30)
})

t.test('refusals by cheap hashes of a scheme take no turns from people with an expensive hash of it', async (t) => {
  const { passwords, hashOne, settle } = await load(t)
  let time = 0
  t.intercept(performance, 'now', { value: () => time })
  const toHash = (iterations: number) => `$pbkdf2-sha256$${iterations}$c2FsdHNhbHQ$${'A'.repeat(43)}`
  // Each takes as long as a hash of our own.
  for (let guess = 0; guess < 100; guess++) {
    const refused = passwords.verify('guess', toHash(1_000), { key: 'stranger' })
    await settle()
    time += 256
    await hashOne()
    t.notOk(await refused)
  }
  const order: string[] = []
  const verify = (key: string, iterations: number) => { passwords.verify('right', toHash(iterations), { key }).then(() => order.push(key), t.fail) }
  verify('ann', 300_000)
  await settle()
  verify('bob', 1_000)
  verify('ann', 300_000)
  verify('bob', 1_000)
  await settle()
  for (let turn = 0; turn < 4; turn++) await hashOne()
  t.strictSame(order, ['ann', 'bob', 'ann', 'bob'])
})

t.test('callers who disconnect leave no hashes behind', async (t) => {
  const { passwords, hashOne, settle } = await load(t)
  const left = new AbortController()
  let gone = 0
  for (let i = 0; i < 30; i++) passwords.hash('new', { key: `${i}`, signal: left.signal }).catch(({ statusCode }: { statusCode: number }) => { if (statusCode === 499) gone++ })
  await settle()
  left.abort()
  await settle()
  t.equal(gone, 29, 'all but the one that is being made')
  let signedIn = false
  passwords.verify('right', undefined).then(() => { signedIn = true }, t.fail)
  await settle()
  await hashOne()
  await hashOne()
  t.ok(signedIn)
})
