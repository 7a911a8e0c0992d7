import * as bcrypt from 'bcryptjs'
import t, { type Test } from 'tap'
import type * as Worker from '../../../lib/users/password-worker.ts'
import type * as Main from '../../../lib/users/passwords.ts'
import { importMocked } from '../../helpers/import-mocked.ts'

/** The password modules with a pool that runs its jobs at once, and counts the work: 2^cost for each hash. */
async function load (t: Test) {
  let work = 0
  const { default: run } = await importMocked<typeof Worker>(t, new URL('../../../lib/users/password-worker.ts', import.meta.url), {
    bcryptjs: {
      ...bcrypt,
      hashSync (text: string, cost: number) {
        work += 2 ** cost
        return bcrypt.hashSync(text, cost)
      },
      compareSync (text: string, hash: string) {
        // Of any other length bcryptjs answers at once.
        if (hash.length === 60) work += 2 ** Number(hash.split('$')[2])
        return bcrypt.compareSync(text, hash)
      }
    }
  })
  const pools = { options: [] as object[], closed: 0 }
  class Piscina {
    queueSize = 0
    run = async (job: Main.PasswordJob) => run(job)
    destroy = async () => { pools.closed++ }
    constructor (options: object) {
      pools.options.push(options)
    }
  }
  const { createPasswords } = await importMocked<typeof Main>(t, new URL('../../../lib/users/passwords.ts', import.meta.url), { piscina: { Piscina } })
  return {
    createPasswords,
    pools,
    /** Runs a call; resolves to its answer and its work. */
    async measure<T> (call: () => Promise<T>): Promise<[answer: T, work: number]> {
      work = 0
      return [await call(), work]
    }
  }
}

t.test('an unknown account takes the work of a known one, from the first look-up on', async (t) => {
  const { createPasswords, measure } = await load(t)
  const stored = await createPasswords({ cost: 5 }).hash('hunter2')
  const passwords = createPasswords({ cost: 5 })
  for (const place of ['first', 'second']) {
    t.same(await measure(() => passwords.verify('hunter2', undefined)), [false, 2 ** 5], `the ${place} look-up of an unknown account`)
  }
  t.same(await measure(() => passwords.verify('hunter2', '')), [false, 2 ** 5], 'an account without a password')
  t.same(await measure(() => passwords.verify('wrong', stored)), [false, 2 ** 5], 'a wrong password')
  t.same(await measure(() => passwords.verify('hunter2', stored)), [true, 2 ** 5], 'the right one')
})

t.test('so does a known one whose hash has a lower cost than today\'s', async (t) => {
  const { createPasswords, measure } = await load(t)
  const passwords = createPasswords({ cost: 7 })
  for (const cost of [4, 5, 6]) {
    const stored = await createPasswords({ cost }).hash('hunter2')
    t.same(await measure(() => passwords.verify('wrong', stored)), [false, 2 ** 7], `cost ${cost}`)
    t.same(await measure(() => passwords.verify('hunter2', stored)), [true, 2 ** cost], 'the right password is hashed again by the renewal')
    t.ok(passwords.isWeak(stored))
  }
  t.notOk(passwords.isWeak(await passwords.hash('hunter2')))
  const stronger = await createPasswords({ cost: 8 }).hash('hunter2')
  t.same(await measure(() => passwords.verify('wrong', stronger)), [false, 2 ** 8], 'after the cost was lowered')
  t.notOk(passwords.isWeak(stronger))
})

t.test('the threads start with the first password, give way to the event loop, and end with the service', async (t) => {
  const { createPasswords, pools } = await load(t)
  const used = createPasswords({ cost: 4, queue: 7 })
  t.strictSame(pools.options, [])
  await used.hash('hunter2')
  await used.verify('hunter2', undefined)
  t.match(pools.options, [{ minThreads: 0, niceIncrement: 10, idleTimeout: Number }], 'one pool')
  t.equal(pools.options.length, 1)
  await used.close()
  t.equal(pools.closed, 1)
  await createPasswords({ cost: 4 }).close()
  t.equal(pools.closed, 1, 'a service that hashed nothing has none')
})
