import t, { type Test } from 'tap'
import type { FailedEvent } from '../../../lib/webhooks/record.ts'
import { createTimers } from '../../helpers/timers.ts'
import { openWebhooks } from '../../helpers/webhooks.ts'
import { wrapStore } from '../../helpers/wrap-store.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const DAY = 24 * 60 * MINUTE

const URL = 'https://hooks.example.com/a'

/** A webhook whose receiver fails for the users that `refuse` names. */
async function open (t: Test) {
  const opened = await openWebhooks(t)
  const { start, setReply, store, events, records } = opened
  const refused = new Set<string>()
  setReply(({ body }) => refused.has(JSON.parse(body).data.target.id) ? 500 : 204)
  const { webhookId } = await start().create({ data: { name: 'A', url: URL, types: ['user.created'] } })
  const failures = store.collection<FailedEvent>('webhook_failures')
  return {
    ...opened,
    webhookId,
    failures,
    refused,
    users: () => opened.take().map(({ body }) => JSON.parse(body).data.target.id as string).sort(),
    parked: async () => (await opened.start().require(webhookId)).parked,
    /** Does what a process of an early release does: it delivers up to the end of the feed, and parks these users' events. */
    async parkAsBefore (users: string[], attempts: number, wait: number) {
      const all = (await events.read({ after: await events.first() })).events
      const time = new Date(opened.clock.now()).toISOString()
      const due_at = new Date(opened.clock.now() + wait).toISOString()
      const { parked } = (await records.get(webhookId))!
      const added = all.filter(({ target }) => users.includes(target.id)).map(({ id, cursor }) => ({ id, cursor, attempts, due_at, since: time }))
      await records.update(webhookId, { set: { parked: [...parked, ...added], cursor: await events.last() }, increment: { claim: 1 } })
    }
  }
}

t.test('what an early release has parked is carried over at the first lease, with its attempts and its time', async (t) => {
  const { start, happen, parkAsBefore, users, parked, records, failures, webhookId, clock } = await open(t)
  await happen('user.created', 2)
  await parkAsBefore(['user1', 'user2'], 3, 30 * MINUTE)
  const webhooks = start()
  await webhooks.flush()
  t.strictSame(users(), [], 'not before its time')
  t.strictSame((await records.get(webhookId))!.parked, [])
  t.equal(await parked(), 2)
  t.match(await Array.fromAsync(failures.stream()), [[{ attempts: 3, type: 'user.created' }, { attempts: 3 }]])
  clock.advance(30 * MINUTE)
  await webhooks.flush()
  t.strictSame(users(), ['user1', 'user2'])
  t.match(await webhooks.listAttempts(webhookId), [{ attempt: 4 }, { attempt: 4 }])
  t.equal(await failures.count(), 0)
})

t.test('a process that dies at any write while it carries parked events over loses none', async (t) => {
  for (let failing = 0; failing < 5; failing++) {
    const { start, store, happen, parkAsBefore, users, clock } = await open(t)
    await happen('user.created', 2)
    await parkAsBefore(['user1', 'user2'], 1, MINUTE)
    let writes = 0
    const dying = start({
      store: wrapStore(store, (call, run) => {
        if (!['put', 'update'].includes(call.method) || !call.collection.startsWith('webhook')) return run()
        // From this write on, none takes place.
        if (++writes > failing) throw new Error('killed')
        return run()
      })
    })
    await dying.flush().catch(() => {})
    clock.advance(2 * MINUTE)
    await start().flush()
    t.strictSame([...new Set(users())], ['user1', 'user2'], `after ${failing} writes`)
  }
})

t.test('beside a process of an early release, and after a rollback, no event is lost', async (t) => {
  const { start, happen, refused, parkAsBefore, users, parked, records, webhookId, clock } = await open(t)
  refused.add('user1').add('user2')
  await happen('user.created')
  await start().flush()
  t.strictSame(users(), ['user1'])
  // An early release reads the field without a check.
  t.strictSame((await records.get(webhookId))!.parked, [])
  await happen('user.created', 2, 2)
  await parkAsBefore(['user2'], 1, 5 * SECOND)
  t.equal(await parked(), 1, 'its own event is not counted before it is carried over')
  refused.clear()
  clock.advance(DAY)
  await start().flush()
  t.strictSame(users(), ['user1', 'user2'])
  t.equal(await parked(), 0)
})

t.test('a failed event is stored before the cursor passes it', async (t) => {
  for (const method of ['put', 'update']) {
    const { start, store, happen, refused, users, failures, records, webhookId, clock } = await open(t)
    refused.add('user1')
    await happen('user.created')
    const { cursor } = (await records.get(webhookId))!
    let leased = false
    const dying = start({
      store: wrapStore(store, (call, run) => {
        const isLease = call.collection === 'webhooks' && call.method === 'update' && !leased
        if (isLease) leased = true
        if (call.method === method && call.collection.startsWith('webhook') && !isLease) throw new Error('killed')
        return run()
      })
    })
    await dying.flush().catch(() => {})
    t.strictSame(users(), ['user1'])
    t.equal((await records.get(webhookId))!.cursor, cursor)
    t.equal(await failures.count(), method === 'put' ? 0 : 1)
    clock.advance(73 * SECOND)
    refused.clear()
    const webhooks = start()
    await webhooks.flush()
    t.strictSame(users(), ['user1'], 'once, although the feed has it too')
    t.equal(await failures.count(), 0)
  }
})

t.test('an event that was given up is kept, and is delivered again by a retry or a replay', async (t) => {
  const { start, happen, refused, users, failures, webhookId, clock, warnings, events } = await open(t)
  refused.add('user1')
  await happen('user.created')
  const webhooks = start()
  async function giveUp () {
    for (let day = 0; day < 4; day++) {
      for (let hour = 0; hour < 24; hour++) {
        clock.advance(60 * MINUTE)
        await webhooks.flush()
      }
    }
    t.equal(users().length, 10)
    t.match((await Array.fromAsync(webhooks.work.list('failed'))).flat(), [{ webhook_id: webhookId, failure: '500', attempts: 10 }])
  }
  await webhooks.flush()
  await giveUp()
  t.match(await webhooks.require(webhookId), { parked: 0 })

  // A replay that fails again begins a new count.
  await webhooks.replay(webhookId, { from: 'first' })
  await webhooks.flush()
  t.match((await Array.fromAsync(webhooks.work.list('due'))).flat(), [{ attempts: 1 }])
  await giveUp()
  t.equal(warnings.length, 2)

  refused.clear()
  const [[record]] = await Array.fromAsync(webhooks.work.list('failed')) as [[FailedEvent]]
  await webhooks.work.retry(record.id)
  await webhooks.flush()
  t.strictSame(users(), ['user1'])
  t.equal(await failures.count(), 0)
  await t.rejects(webhooks.work.retry(record.id), { code: 'ErrNotFound' })
  await events.flush()
  t.match((await events.read({ after: await events.first() })).events.at(-1), { type: 'webhook.replayed', target: { id: webhookId } })
})

t.test('a failed event in flight at a kill is tried again within 15 seconds, by one process at a time', async (t) => {
  const { start, happen, refused, setReply, users, clock } = await open(t)
  refused.add('user1')
  await happen('user.created')
  const dead = start()
  await dead.flush()
  clock.advance(5 * SECOND)
  const arrived = Promise.withResolvers<void>()
  const hang = Promise.withResolvers<number>()
  t.teardown(() => hang.resolve(500))
  setReply(() => {
    arrived.resolve()
    return hang.promise
  })
  dead.flush().catch(() => {})
  await arrived.promise
  users()
  setReply(() => 204)
  const timers = createTimers()
  const other = start({ timers })
  await other.flush()
  for (let second = 0; second < 12; second++) {
    t.strictSame(users(), [], 'its holder may live')
    clock.advance(SECOND)
    timers.advance(SECOND)
    await other.flush()
  }
  t.strictSame(users(), ['user1'])
})

t.test('a webhook is deleted with its failed events', async (t) => {
  const { start, happen, refused, failures, webhookId } = await open(t)
  refused.add('user1')
  await happen('user.created')
  const webhooks = start()
  await webhooks.flush()
  t.equal(await failures.count(), 1)
  await webhooks.remove(webhookId)
  t.equal(await failures.count(), 0)
})

t.test('a receiver that is down gets one attempt at a time, of new and failed events together', async (t) => {
  const { start, happen, setReply, clock } = await open(t)
  const webhooks = start()
  let running = 0
  let most = 0
  setReply(async () => {
    most = Math.max(most, ++running)
    await new Promise(setImmediate)
    running--
    return 503
  })
  await happen('user.created', 40)
  for (let round = 0; round < 3; round++) {
    await webhooks.flush()
    clock.advance(5 * SECOND)
  }
  most = 0
  for (let round = 0; round < 20; round++) {
    await webhooks.flush()
    clock.advance(5 * MINUTE)
  }
  t.equal(most, 1)
})

t.test('a process that dies while its clock is an hour ahead holds up no event, new or failed', async (t) => {
  const { start, happen, refused, setReply, users, clock, records, webhookId } = await open(t)
  const HOUR = 60 * MINUTE
  const dying = start({ now: () => clock.now() + HOUR })
  // Down, so that the webhook pauses too.
  setReply(() => ({ status: 503, retryAfter: 60 * SECOND }))
  await happen('user.created', 12)
  for (let round = 0; round < 12; round++) await dying.flush()
  await dying.close()
  t.match(await records.get(webhookId), { wait_until: String })
  t.not(users().length, 0)
  setReply(({ body }) => refused.has(JSON.parse(body).data.target.id) ? 500 : 204)
  await happen('user.created', 1, 13)
  const timers = createTimers()
  const next = start({ timers })
  const seen = new Set<string>()
  for (let second = 0; second < 75; second++) {
    clock.advance(SECOND)
    timers.advance(SECOND)
    await next.flush()
    for (const user of users()) seen.add(user)
  }
  t.equal(seen.size, 13)
  await t.resolveMatch(next.require(webhookId), { parked: 0 })
})

t.test('a retry by an operator delivers at once what waits, also while its webhook pauses', async (t) => {
  const { start, happen, setReply, users, records, failures, webhookId } = await open(t)
  const webhooks = start()
  setReply(() => ({ status: 503, retryAfter: 10 * MINUTE }))
  await happen('user.created')
  await webhooks.flush()
  t.match(await records.get(webhookId), { wait_until: String })
  users()
  setReply(() => 204)
  const [[record]] = await Array.fromAsync(failures.stream()) as [[FailedEvent]]
  await webhooks.work.retry(record.id)
  await webhooks.flush()
  t.strictSame(users(), ['user1'])
  t.equal(await failures.count(), 0)
})
