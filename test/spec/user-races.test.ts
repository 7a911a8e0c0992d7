import t, { type Test } from 'tap'
import type { UserRecord } from '../../lib/records.ts'
import type { Actor } from '../../lib/roles.ts'
import { Scheduler, type Step, exhaust } from '../helpers/scheduler.ts'
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

const isWrite = ({ method }: Step) => method === 'update'

/** Runs every order of the actors' calls. `check` returns the fault of an outcome, if any. */
async function playAll (t: Test, actors: Record<string, (scene: Scene) => Promise<unknown>>, check: (outcome: Outcome) => string | undefined): Promise<Set<string>> {
  const seen = new Set<string>()
  const { orders: runs, complete } = await exhaust({ least: 1, most: 2000 }, async (choose) => {
    const scene = await createUser()
    const succeeded: string[] = []
    await scheduler.run(Object.fromEntries(Object.entries(actors).map(([name, act]) => [name, async () => {
      await act(scene)
      succeeded.push(name)
    }])), choose)
    const lastWrite = (name: string) => scheduler.log.findLastIndex((step) => step.actor === name && isWrite(step))
    const done = succeeded.sort((one, other) => lastWrite(one) - lastWrite(other))
    const record = await records.get(scene.user_id) as UserRecord
    const problem = check({ done, record })
    seen.add(done.join(', '))
    if (problem !== undefined) t.fail(problem, { order: scheduler.log.map(({ actor, method }) => `${actor}: ${method}`) })
  })
  t.ok(complete, `all ${runs} orders`)
  return seen
}

t.test('a manager never disables an admin, however late the user became one', async (t) => {
  const seen = await playAll(t, {
    manager: ({ user_id }) => users.patch(user_id, { disable: true }, MANAGER),
    promotion: ({ user_id }) => users.patch(user_id, { data: { roles: { admin: true } } }, ADMIN)
  }, ({ done, record }) => {
    if (!done.includes('promotion') || record.roles.admin !== true) return 'the promotion is lost'
    if (done.at(-1) === 'manager') return 'the manager disabled an admin'
    if ((record.disabled_at !== undefined) !== done.includes('manager')) return 'disabled without the manager, or not with him'
  })
  t.strictSame([...seen].sort(), ['manager, promotion', 'promotion'])
})

t.test('a manager never takes away a role that only an admin may, however late the user got it', async (t) => {
  for (const role of ['service', 'manager']) {
    const seen = await playAll(t, {
      manager: ({ user_id }) => users.patch(user_id, { data: { roles: { clerk: true } } }, MANAGER),
      promotion: ({ user_id }) => users.patch(user_id, { data: { roles: { [role]: true } } }, ADMIN)
    }, ({ done, record }) => {
      if (!done.includes('promotion') || record.roles[role] !== true) return `the role ${role} is lost`
      if (done.at(-1) === 'manager') return `the manager changed the roles of a holder of ${role}`
    })
    t.strictSame([...seen].sort(), ['manager, promotion', 'promotion'])
  }
})

t.test('two concurrent patches are both in the record', async (t) => {
  await playAll(t, {
    name: ({ user_id }) => users.patch(user_id, { data: { name: 'Ann' } }, ADMIN),
    password: ({ user_id }) => users.patchOwn(user_id, { data: { password: 'new' } })
  }, ({ done, record: { name, password, epoch, revision } }) => {
    if (done.length !== 2 || name !== 'Ann' || password !== 'strong new') return 'a patch is lost'
    if (epoch !== 1 || revision !== 2) return `epoch ${epoch}, revision ${revision}`
  })
})

t.test('the renewal of a hash never brings an old password back', async (t) => {
  const seen = await playAll(t, {
    'sign-in': ({ account }) => users.signIn(account, 'old').then((found) => { if (found === null) throw new Error('refused') }),
    change: ({ user_id }) => users.patchOwn(user_id, { data: { password: 'new' } })
  }, ({ done, record }) => {
    if (!done.includes('change') || record.password !== 'strong new') return `the password is ${record.password}`
  })
  t.ok(seen.has('sign-in, change'), 'a renewal that came first')
  t.ok(seen.has('change, sign-in'), 'one that came too late')
})

t.test('of two patches with one token, none is applied after the other has ended that token', async (t) => {
  const as = (password: string) => ({ user_id }: Scene) => users.patchOwn(user_id, { data: { password } }, { user_id, isAdmin: false, epoch: 0 })
  const seen = await playAll(t, { owner: as('owner'), thief: as('thief') }, ({ done, record }) => {
    if (done.length !== 1) return `${done.join(' and then ')} changed the password`
    if (record.password !== `strong ${done[0]}` || record.epoch !== 1) return 'not the password of the first'
  })
  t.strictSame([...seen].sort(), ['owner', 'thief'])
})
