import t, { type Test } from 'tap'
import type { UserRecord } from '../../lib/records/user.ts'
import type { Actor } from '../../lib/roles.ts'
import { type Ends, race } from '../helpers/race.ts'
import { Scheduler } from '../helpers/scheduler.ts'
import { openRules } from '../helpers/services.ts'

const ADMIN: Actor = { user_id: 'admin', isAdmin: true }
const MANAGER: Actor = { user_id: 'manager', isAdmin: false, epoch: 0 }

const scheduler = new Scheduler()
// Removing the revoked tokens does not touch the user.
scheduler.isShared = ({ collection }) => collection === 'users'
const { users, records: { users: records } } = await openRules(t, { around: scheduler.around })

let scenes = 0

async function createUser (): Promise<{ user_id: string, account: string }> {
  const account = `user${scenes++}`
  const { user_id } = await users.create({ data: { account, password: 'old' } })
  await records.update(user_id, { set: { password: 'weak old' } })
  return { user_id, account }
}

type Scene = Awaited<ReturnType<typeof createUser>>

interface Outcome {
  /** The actors whose call succeeded, in the order of their last writes. */
  done: string[]
  record: UserRecord
}

interface Expected {
  least: number
  outcomes: string[]
}

/** Runs every order of the actors' calls. `check` returns the fault of an outcome, if any. */
async function play (t: Test, expected: Expected, actors: Record<string, (scene: Scene) => Promise<unknown>>, check: (outcome: Outcome) => string | undefined): Promise<void> {
  const sort = ({ done, order }: Ends) => done.toSorted((one, other) => order.lastIndexOf(`${one}: users.update`) - order.lastIndexOf(`${other}: users.update`))
  await race(t, scheduler, { ...expected, name: (ends) => sort(ends).join(', ') }, async () => {
    const scene = await createUser()
    return {
      actors: Object.fromEntries(Object.entries(actors).map(([name, act]) => [name, async () => await act(scene)])),
      check: async (ends) => check({ done: sort(ends), record: await records.get(scene.user_id) as UserRecord })
    }
  })
}

t.test('a manager never disables an admin, however late the user became one', async (t) => {
  await play(t, { least: 4, outcomes: ['manager, promotion', 'promotion'] }, {
    manager: ({ user_id }) => users.patch(user_id, { disable: true }, MANAGER),
    promotion: ({ user_id }) => users.patch(user_id, { data: { roles: { admin: true } } }, ADMIN)
  }, ({ done, record }) => {
    if (!done.includes('promotion') || record.roles.admin !== true) return 'the promotion is lost'
    if (done.at(-1) === 'manager') return 'the manager disabled an admin'
    if ((record.disabled_at !== undefined) !== done.includes('manager')) return 'disabled without the manager, or not with him'
  })
})

t.test('a manager never takes away a role that only an admin may, however late the user got it', async (t) => {
  for (const role of ['service', 'manager']) {
    await play(t, { least: 4, outcomes: ['manager, promotion', 'promotion'] }, {
      manager: ({ user_id }) => users.patch(user_id, { data: { roles: { clerk: true } } }, MANAGER),
      promotion: ({ user_id }) => users.patch(user_id, { data: { roles: { [role]: true } } }, ADMIN)
    }, ({ done, record }) => {
      if (!done.includes('promotion') || record.roles[role] !== true) return `the role ${role} is lost`
      if (done.at(-1) === 'manager') return `the manager changed the roles of a holder of ${role}`
    })
  }
})

t.test('two concurrent patches are both in the record', async (t) => {
  await play(t, { least: 4, outcomes: ['name, password', 'password, name'] }, {
    name: ({ user_id }) => users.patch(user_id, { data: { name: 'Ann' } }, ADMIN),
    password: ({ user_id }) => users.patchOwn(user_id, { data: { password: 'new' } })
  }, ({ done, record: { name, password, epoch, revision } }) => {
    if (done.length !== 2 || name !== 'Ann' || password !== 'strong new') return 'a patch is lost'
    if (epoch !== 1 || revision !== 2) return `epoch ${epoch}, revision ${revision}`
  })
})

t.test('the renewal of a hash never brings an old password back', async (t) => {
  await play(t, { least: 5, outcomes: ['change', 'change, sign-in', 'sign-in, change'] }, {
    'sign-in': ({ account }) => users.signIn(account, 'old').then((found) => { if (found === null) throw new Error('refused') }),
    change: ({ user_id }) => users.patchOwn(user_id, { data: { password: 'new' } })
  }, ({ done, record }) => {
    if (!done.includes('change') || record.password !== 'strong new') return `the password is ${record.password}`
  })
})

t.test('of two patches with one token, none is applied after the other has ended that token', async (t) => {
  const as = (password: string) => ({ user_id }: Scene) => users.patchOwn(user_id, { data: { password } }, { user_id, isAdmin: false, epoch: 0 })
  await play(t, { least: 4, outcomes: ['owner', 'thief'] }, { owner: as('owner'), thief: as('thief') }, ({ done, record }) => {
    if (done.length !== 1) return `${done.join(' and then ')} changed the password`
    if (record.password !== `strong ${done[0]}` || record.epoch !== 1) return 'not the password of the first'
  })
})
