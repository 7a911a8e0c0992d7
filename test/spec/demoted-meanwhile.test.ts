import t from 'tap'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { build } from '../helpers/build.ts'
import { createUser, signIn, unique } from '../helpers/people.ts'
import { type Around, wrapStore } from '../helpers/wrap-store.ts'

// A request that an administrator has begun is made with the power of its end: what happens while it waits for a hash counts.

/** Called once, when the service has read the target and before it hashes or writes. */
let meanwhile: { target: string, act: () => Promise<unknown> } | undefined

const around: Around = async ({ args }, run) => {
  const found = await run()
  if (meanwhile === undefined || args[0] !== meanwhile.target) return found
  const { act } = meanwhile
  meanwhile = undefined
  await act()
  return found
}

const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS })
t.teardown(() => inner.close())
const store = wrapStore(inner, (call, run) => call.collection === 'users' && call.method === 'get' ? around(call, run) : run())

/** What becomes of an administrator during their request, and its status. */
const CHANGES: Record<string, [change: object, status: number]> = {
  'nothing happens to them': [{ data: { name: 'Boss' } }, 204],
  'they get one more role': [{ data: { roles: { admin: true, manager: true, clerk: true } } }, 204],
  'they stay a manager': [{ data: { roles: { manager: true } } }, 403],
  'they stay a service': [{ data: { roles: { service: true } } }, 403],
  'they have no role any more': [{ data: { roles: {} } }, 403],
  'they are disabled': [{ disable: true }, 401]
}

/** What an administrator does to a user; no manager may do some of it. */
const PATCHES: Record<string, (account: string) => object> = {
  'a new password': () => ({ data: { password: 'of the administrator' } }),
  'a name': () => ({ data: { name: 'Ann' } }),
  'a role that managers give too': () => ({ data: { roles: { clerk: true } } }),
  'the role of administrators': () => ({ data: { roles: { admin: true } } }),
  'an address': (account) => ({ data: { email: account } }),
  'that they are disabled': () => ({ disable: true })
}

/** Without the events, which go when they are published. */
async function read (user_id: string): Promise<object> {
  const record = await inner.collection('users').get(user_id)
  return Object.fromEntries(Object.entries(record ?? {}).filter(([field]) => !field.startsWith('event')))
}

t.test('an administrator who loses the role during their request changes nobody, also if they stay a manager', async (t) => {
  const kit = await build(t, { store, bcryptCost: 4, rateLimit: false })
  const admin = await signIn(kit, { roles: ['admin'] })
  for (const [when, [change, status]] of Object.entries(CHANGES)) {
    for (const [what, patch] of Object.entries(PATCHES)) {
      const boss = await signIn(kit, { roles: ['admin', 'manager'] })
      const account = `${unique('ann')}@example.com`
      const target = await createUser(admin, { account })
      const before = await read(target)
      let isMade = false
      meanwhile = {
        target,
        async act () {
          isMade = (await admin.patch(`/user/${boss.user_id}`, change)).status === 204
        }
      }
      t.equal((await boss.patch(`/user/${target}`, patch(account))).status, status, `${what}, when ${when}`)
      t.ok(isMade, 'meanwhile')
      const after = await read(target)
      if (status === 204) t.strictNotSame(after, before, 'it is written')
      else t.strictSame(after, before, 'nothing is written')
    }
  }
})
