import t, { type Test } from 'tap'
import { busyError, storeError } from '../../../lib/errors.ts'
import { DEFAULT_ROLE_NAMES } from '../../../lib/roles.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'
import { createTokens } from '../../../lib/tokens/tokens.ts'
import { type Passwords, createPasswords } from '../../../lib/users/passwords.ts'
import { createUsers } from '../../../lib/users/users.ts'
import { wrapStore, type Around } from '../../helpers/wrap-store.ts'

const roles = DEFAULT_ROLE_NAMES
const ann = { account: 'ann', password: 'hunter2' }

/** Users of whom Ann has a hash of a lower cost than today's. */
async function open (t: Test, { around = (_call, run) => run(), change = (passwords) => passwords }: {
  around?: Around, change?: (passwords: Passwords) => Passwords
} = {}) {
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: Date.now, onError: () => {} })
  const store = wrapStore(inner, around)
  const [before, today] = [createPasswords({ cost: 4 }), createPasswords({ cost: 5 })]
  t.teardown(async () => await Promise.all([inner.close(), before.close(), today.close()]))
  const errors: unknown[] = []
  const onError = (error: unknown) => { errors.push(error) }
  const tokens = createTokens({ store: inner, now: Date.now, roles, onError })
  await createUsers({ store: inner, now: Date.now, roles, passwords: before, tokens, onError }).create({ data: ann })
  const users = createUsers({ store, now: Date.now, roles, passwords: change(today), tokens, onError })
  const readCost = async () => (await inner.collection<{ id: string, password: string }>('users').getBy('account', 'ann'))?.password.split('$')[2]
  return { users, errors, readCost }
}

t.test('a sign-in renews a hash of a lower cost', async (t) => {
  const { users, errors, readCost } = await open(t)
  t.equal(await users.signIn('ann', 'wrong'), null)
  t.equal(await readCost(), '04')
  t.match(await users.signIn('ann', ann.password), { user_id: String, epoch: 0 })
  t.equal(await readCost(), '05')
  t.match(await users.signIn('ann', ann.password), { user_id: String, epoch: 0 })
  t.same(errors, [])
})

t.test('a renewal that fails is logged, and the sign-in succeeds', async (t) => {
  const failures = {
    'a full queue': { change: (passwords: Passwords): Passwords => ({ ...passwords, hash: async () => { throw busyError('password hashings') } }) },
    'a store that cannot write': {
      around: ({ method }, run) => {
        if (method === 'update') throw storeError(new Error('disk full'))
        return run()
      }
    } satisfies { around: Around }
  }
  for (const [name, failure] of Object.entries(failures)) {
    const { users, errors, readCost } = await open(t, failure)
    t.match(await users.signIn('ann', ann.password), { user_id: String, epoch: 0 }, name)
    t.match(await users.verify('ann', ann.password), { account: 'ann' }, name)
    t.equal(await readCost(), '04')
    t.match(errors, [{ message: 'the password hash of a user was not renewed', cause: { code: /^Err(Busy|Db)$/ } }, {}], name)
    t.equal(errors.length, 2)
    t.notMatch(String(errors), ann.password)
  }
})
