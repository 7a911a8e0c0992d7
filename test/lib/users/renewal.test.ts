import t, { type Test } from 'tap'
import { busyError, storeError } from '../../../lib/errors.ts'
import type { UserRecord } from '../../../lib/records.ts'
import { DEFAULT_ROLE_NAMES } from '../../../lib/roles.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'
import { createTokens } from '../../../lib/tokens/tokens.ts'
import { createUsers } from '../../../lib/users/users.ts'
import { wrapStore, type Around } from '../../helpers/wrap-store.ts'

const roles = DEFAULT_ROLE_NAMES
const ann = { account: 'ann', password: 'hunter2' }
const WEAK = `weak ${ann.password}`
const STRONG = `strong ${ann.password}`

/** Users of whom Ann has a hash of a lower cost than today's. A hash is its strength and the password. */
async function open (t: Test, { around = (_call, run) => run(), hash = async (password) => `strong ${password}` }: {
  around?: Around, hash?: (password: string) => Promise<string>
} = {}) {
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: Date.now, onError: () => {} })
  t.teardown(() => inner.close())
  const errors: unknown[] = []
  const onError = (error: unknown) => { errors.push(error) }
  const tokens = createTokens({ store: inner, now: Date.now, roles, onError })
  const passwords = {
    hash,
    verify: async (password: string, stored: string | undefined) => stored?.split(' ')[1] === password,
    isWeak: (stored: string) => stored.startsWith('weak'),
    close: async () => {}
  }
  const records = inner.collection<UserRecord>('users')
  const first = createUsers({ store: inner, now: Date.now, roles, passwords: { ...passwords, hash: async () => WEAK }, tokens, onError })
  const { user_id } = await first.create({ data: ann })
  const users = createUsers({ store: wrapStore(inner, around), now: Date.now, roles, passwords, tokens, onError })
  return { users, errors, read: async () => (await records.get(user_id))! }
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
  for (const [name, failure] of [
    ['a full queue', { hash: async () => { throw busyError('password hashings') } }],
    ['a store that cannot write', {
      around: ({ method }, run) => {
        if (method === 'update') throw storeError(new Error('disk full'))
        return run()
      }
    }]
  ] satisfies [string, Parameters<typeof open>[1]][]) {
    const { users, errors, read } = await open(t, failure)
    t.match(await users.signIn('ann', ann.password), { user_id: String, epoch: 0 }, name)
    t.match(await users.verify('ann', ann.password), { account: 'ann' }, name)
    t.match(await read(), { password: WEAK, revision: 0 })
    t.match(errors, [{ message: 'the password hash of a user was not renewed', cause: { code: /^Err(Busy|Db)$/ } }, {}], name)
    t.equal(errors.length, 2)
    t.notMatch(String(errors), ann.password)
  }
})
