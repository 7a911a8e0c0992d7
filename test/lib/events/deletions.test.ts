import t, { type Test } from 'tap'
import { Scheduler, type Search, exhaust } from '../../helpers/scheduler.ts'
import { isListing } from '../../helpers/wrap-store.ts'
import { type Carrier, openEvents, toText } from './harness.ts'

t.setTimeout(240_000)

/** Later than a process may take for a deletion. */
const LATE = 10_001

/** Users whose deletions race with other work. After a run, `settle` publishes all and reports what is wrong. */
async function open (t: Test) {
  const scheduler = new Scheduler()
  scheduler.isShared = ({ collection, method }) => collection === 'users' || (collection === 'event_inbox' && !isListing(method))
  /** Called after a store call was made; an error from it is the answer. */
  const after: { made: () => void } = { made: () => {} }
  const events = await openEvents(t, {
    around: (call, run) => isListing(call.method)
      ? run()
      : scheduler.around(call, async () => {
        const result = await run()
        after.made()
        return result
      })
  })
  const { inner, create, change, remove, connect, now, advance, readAll, countPending, mailed } = events
  const users = inner.collection<Carrier>('users')
  const problems = new Set<string>()
  let number = 0
  let [removed, changes, answers] = [0, 0, 0]
  /** Whether the user was still there when the last deletion was answered, and nothing has deleted them since. */
  let isThere = false
  return {
    ...events,
    scheduler,
    after,
    problems,
    async begin (withEvent = true): Promise<string> {
      const id = `user-${number++}`
      if (withEvent) await create(id)
      else await users.insert({ id, revision: 0, changes: 0 })
      ;[removed, changes, answers, isThere] = [0, 0, 0, false]
      return id
    },
    remover: (id: string, most = 1) => async () => {
      const isRemoved = await remove(id).catch(() => false)
      if (isRemoved) removed++
      if (++answers === most) isThere = await users.get(id) !== null
    },
    changer: (id: string) => async () => { if (await change(id)) changes++ },
    /** A process for which every deletion has taken too long. */
    relay: () => async () => {
      const relay = connect({ now: () => now() + LATE })
      await relay.flush()
      await relay.close()
    },
    /** @returns how many callers have deleted and changed the user */
    async settle (id: string): Promise<string> {
      scheduler.interrupt = () => {}
      advance(LATE)
      const relay = connect()
      // Withdraws, and then finds what is void.
      await relay.flush()
      await relay.flush()
      await relay.close()
      const texts = (await readAll()).map(toText).filter((text) => text.split(' ')[1] === id)
      const isGone = await users.get(id) === null
      const deletions = texts.filter((text) => text.startsWith('user.deleted')).length
      const report = (what: string) => problems.add(`${what}: ${scheduler.log.map(({ actor, collection, method }) => `${actor} ${collection}.${method}`).join(', ')}`)
      if (deletions !== (isGone ? 1 : 0)) report(`${deletions} events of a deletion, and the user is ${isGone ? 'gone' : 'there'}`)
      const mails = [...mailed].filter((one) => one.startsWith(`${id} `)).length
      if (mails !== (isGone ? 1 : 0)) report(`${mails} mails about a deletion, and the user is ${isGone ? 'gone' : 'there'}`)
      if (isGone && texts.at(-1) !== `user.deleted ${id}`) report('the deletion is not the last event')
      if (texts.filter((text) => text.startsWith('user.updated')).length < changes) report('the event of a change is missing')
      if (removed > 1) report('two callers deleted the same user')
      if (removed === 1 && !isGone) report('answered as deleted, and there')
      if (isThere && isGone) report('deleted after every deletion was answered as failed')
      if (await countPending() > 0) report('something is left')
      await users.deleteMany({ since: { id: '' } })
      await inner.collection('events').deleteMany({ since: { id: '' } })
      await inner.collection('feed').deleteMany({ since: { id: '' } }).catch(() => {})
      return `${removed} deleted, ${changes} changed`
    }
  }
}

type Setting = Awaited<ReturnType<typeof open>>

type Actors = (setting: Setting, id: string) => Record<string, () => Promise<unknown>>

interface Race extends Search { withEvent?: boolean }

/** Tries orders of the store calls of some actors. */
async function race (t: Test, { withEvent = true, ...search }: Race, toActors: Actors): Promise<void> {
  const setting = await open(t)
  await exhaust(search, async (choose) => {
    const id = await setting.begin(withEvent)
    await setting.scheduler.run(toActors(setting, id), choose)
    return await setting.settle(id)
  })
  t.same([...setting.problems].slice(0, 3), [])
}

t.test('a deletion and a change, in every order', async (t) => {
  await race(t, { least: 5, outcomes: ['1 deleted, 0 changed', '1 deleted, 1 changed'] }, ({ remover, changer }, id) => ({ remover: remover(id), changer: changer(id) }))
})

t.test('two deletions, in every order', async (t) => {
  await race(t, { least: 14, outcomes: ['1 deleted, 0 changed'] }, ({ remover }, id) => ({ one: remover(id, 2), other: remover(id, 2) }))
})

t.test('a deletion and a relay for which it takes too long, in every order', async (t) => {
  await race(t, { least: 19, outcomes: ['1 deleted, 0 changed'], withEvent: false }, ({ remover, relay }, id) => ({ remover: remover(id), relay: relay() }))
})

t.test('two deletions, a change and a relay, in random orders', async (t) => {
  await race(t, { least: 160, most: 0, random: 200, outcomes: ['1 deleted, 0 changed', '1 deleted, 1 changed'] }, ({ remover, changer, relay }, id) => (
    { one: remover(id, 2), other: remover(id, 2), changer: changer(id), relay: relay() }
  ))
})

t.test('a process that is killed, or whose store fails, at any call of a deletion leaves a deletion with its event, or none', async (t) => {
  const { scheduler, after, problems, begin, remover, changer, settle } = await open(t)
  const KINDS = ['killed before it', 'killed after it', 'it fails', 'it is made, and its answer is lost']
  for (const kind of KINDS) {
    for (let call = 0; call < 6; call++) {
      const id = await begin()
      let [begun, made] = [0, 0]
      const fail = () => { throw new Error('no answer') }
      scheduler.interrupt = () => {
        const own = begun++
        if (own === call ? kind === 'killed before it' || kind === 'it fails' : own > call && kind.startsWith('killed')) fail()
      }
      after.made = () => {
        if (made++ === call && kind === 'it is made, and its answer is lost') fail()
      }
      await scheduler.run({ process: remover(id) }, () => 0)
      scheduler.interrupt = after.made = () => {}
      // Somebody else goes on with the user.
      if (call % 2 === 0) await changer(id)()
      await settle(id)
    }
  }
  t.same([...problems], [])
})

t.test('a deletion that gives up does not happen later, and another caller can delete the document', async (t) => {
  const { recorder, create, connect, inner, advance, readAll } = await openEvents(t)
  const users = inner.collection<Carrier>('users')
  await create('a')
  const bump = async () => { await users.update('a', { increment: { revision: 1 } }) }
  const happening = { type: 'user.deleted', id: 'a' } as const
  await t.rejects(recorder.remove('users', 'a', happening, bump), { code: 'ErrBusy' })
  let isFirst = true
  const refuse = async () => {
    if (!isFirst) throw Object.assign(new Error('the last administrator'), { code: 'ErrPerm' })
    isFirst = false
    await bump()
  }
  await t.rejects(recorder.remove('users', 'a', happening, refuse), { code: 'ErrPerm' })
  const relay = connect()
  for (let round = 0; round < 3; round++) {
    advance(LATE)
    await relay.flush()
  }
  t.not(await users.get('a'), null)
  t.equal(await inner.collection('event_inbox').count(), 0, 'withdrawn')
  t.ok(await recorder.remove('users', 'a', happening))
  await relay.flush()
  t.strictSame((await readAll()).map(toText), ['user.created a', 'user.deleted a'])
  await relay.close()
})
