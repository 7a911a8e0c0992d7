import t, { type Test } from 'tap'
import { busyError, storeError } from '../../../lib/errors.ts'
import { openRules } from '../../helpers/services.ts'

const ann = { account: 'ann', password: 'hunter2' }
const WEAK = `weak ${ann.password}`
const STRONG = `strong ${ann.password}`

/** Users of whom Ann has a hash of a lower cost than today's. */
async function open (t: Test, options?: Parameters<typeof openRules>[1]) {
  const rules = await openRules(t, options)
  const { user_id } = await rules.users.create({ data: ann })
  await rules.records.users.update(user_id, { set: { password: WEAK } })
  return { ...rules, read: async () => (await rules.records.users.get(user_id))! }
}

t.test('a sign-in renews a hash of a lower cost, once', async (t) => {
  const { users, errors, read } = await open(t)
  t.equal(await users.signIn('ann', 'wrong'), null)
  t.match(await read(), { password: WEAK, revision: 0 })
  for (const time of ['first', 'second']) {
    t.match(await users.signIn('ann', ann.password), { user_id: String, epoch: 0 }, time)
    t.match(await read(), { password: STRONG, revision: 1, epoch: 0 })
  }
  t.same(errors, [])
})

t.test('a renewal that fails is logged, and the sign-in succeeds', async (t) => {
  let broken = false
  for (const [name, failure] of [
    ['a full queue', {
      passwords: {
        hash: async (password) => {
          if (broken) throw busyError('password hashes')
          return `strong ${password}`
        }
      }
    }],
    ['a store that cannot write', {
      around: ({ method }, run) => {
        if (broken && method === 'update') throw storeError(new Error('disk full'))
        return run()
      }
    }]
  ] satisfies [string, Parameters<typeof openRules>[1]][]) {
    broken = false
    const { users, errors, read } = await open(t, failure)
    broken = true
    t.match(await users.signIn('ann', ann.password), { user_id: String, epoch: 0 }, name)
    t.match(await users.verify('ann', ann.password), { account: 'ann' }, name)
    t.match(await read(), { password: WEAK, revision: 0 })
    t.match(errors, [{ message: 'the password hash of a user was not renewed', cause: { code: /^Err(Busy|Db)$/ } }, {}], name)
    t.equal(errors.length, 2)
    t.notMatch(String(errors), ann.password)
  }
})
