import t from 'tap'
import { Webhook } from 'standardwebhooks'
import { createSealing } from '../../../lib/maintenance/reseal.ts'
import { createSecretBox, generateSecretKey } from '../../../lib/crypto/secrets.ts'
import { recordOutages } from '../../helpers/outages.ts'
import { within } from '../../helpers/upstream.ts'
import { waitUntil } from '../../helpers/wait.ts'
import { type Got, box, openWebhooks } from '../../helpers/webhooks.ts'
import { wrapStore } from '../../helpers/wrap-store.ts'

t.setTimeout(150_000)

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

const URL = 'https://hooks.example.com/a'
const users = (got: Got[]): string[] => got.map(({ body }) => JSON.parse(body).data.target.id)

t.test('an event arrives as a thin message of Standard Webhooks, which the unmodified library verifies', async (t) => {
  const { start, happen, take, clock, events } = await openWebhooks(t)
  const webhooks = start()
  const { secret } = await webhooks.create({ data: { name: 'A', url: URL, types: ['user.*'] } })
  await happen('user.disabled')
  await happen('sign_in.succeeded')
  await webhooks.flush()
  const [message, ...more] = take()
  t.strictSame(more, [], 'and nothing else')
  const { events: [event] } = await events.read({ after: await events.first() }).then(({ events }) => ({ events: events.filter(({ type }) => type === 'user.disabled') }))
  const { 'user-agent': agent, ...headers } = message!.headers
  t.match(agent, /^fastify-identity\//)
  t.match(headers, { 'content-type': 'application/json', 'webhook-id': event!.id, 'webhook-timestamp': String(Math.floor(clock.now() / 1000)) })
  t.ok(Buffer.byteLength(message!.body) < 4096)
  const { type, timestamp, data } = new Webhook(secret).verify(message!.body, headers) as Record<string, never>
  t.strictSame({ type, timestamp, data }, {
    type: 'user.disabled',
    timestamp: event!.time,
    data: { id: event!.id, cursor: event!.cursor, actor: { via: 'system' }, target: { kind: 'user', id: 'user1' }, user_id: 'user1', outcome: 'success' }
  })
  const other = await webhooks.create({ data: { name: 'B', url: URL, types: ['user.*'] } })
  t.throws(() => new Webhook(other.secret).verify(message!.body, headers), 'with another secret')
  t.throws(() => new Webhook(secret).verify(message!.body.replace('user1', 'user2'), headers), 'with another body')
})

t.test('after a rotation both secrets verify for a day, and then only the new one', async (t) => {
  const { start, happen, take, clock } = await openWebhooks(t)
  const webhooks = start()
  const { webhookId, secret: first } = await webhooks.create({ data: { name: 'A', url: URL, types: ['user.deleted'] } })
  const verifies = async (secret: string) => {
    await happen('user.deleted')
    await webhooks.flush()
    const [{ body, headers }] = take() as [Got]
    // The library compares the timestamp with the clock of the machine.
    const moved = new Webhook(secret, {})
    const now = Date.now
    Date.now = clock.now
    try {
      moved.verify(body, headers)
      return true
    } catch {
      return false
    } finally {
      Date.now = now
    }
  }
  t.ok(await verifies(first))
  const { secret: second } = await webhooks.rotateSecret(webhookId)
  t.not(second, first)
  t.match(second, /^whsec_[A-Za-z0-9+/]{32}$/)
  t.ok(await verifies(first))
  t.ok(await verifies(second))
  clock.advance(DAY)
  t.notOk(await verifies(first))
  t.ok(await verifies(second))
})

t.test('the secrets are sealed again with a new key', async (t) => {
  const { start, happen, take, store, records, recorder } = await openWebhooks(t)
  const { webhookId, secret } = await start().create({ data: { name: 'A', url: URL, types: ['user.deleted'] } })
  const [oldKey, newKey] = [box.key, generateSecretKey()]
  const rotated = createSecretBox(newKey, oldKey)
  await store.collection('meta').insert({ id: 'secret-key', key_id: rotated.keyId } as never)
  const { sealed } = (await records.get(webhookId))!
  await createSealing({ store, box: rotated, recorder }).reseal()
  t.not((await records.get(webhookId))!.sealed, sealed)
  const webhooks = start({ box: createSecretBox(newKey) })
  await happen('user.deleted')
  await webhooks.flush()
  const [{ body, headers }] = take() as [Got]
  new Webhook(secret).verify(body, headers)
})

t.test('all events arrive in their order when the receiver takes one at a time, and none twice', async (t) => {
  const { start, happen, take, records } = await openWebhooks(t)
  const webhooks = start()
  const { webhookId } = await webhooks.create({ data: { name: 'A', url: URL, types: ['*'] } })
  await happen('user.created', 450)
  await webhooks.flush()
  const got = take()
  t.equal(got.length, 451, 'with its own creation')
  t.equal(new Set(got.map(({ id }) => id)).size, 451)
  t.match(await records.get(webhookId), { failures: 0 })
  t.match(await webhooks.require(webhookId), { parked: 0 })
  await webhooks.flush()
  t.strictSame(take(), [])
})

t.test('at most four deliveries of a webhook at once, and 64 of a process', async (t) => {
  const { start, happen, setReply, got } = await openWebhooks(t)
  const webhooks = start()
  for (let number = 0; number < 20; number++) await webhooks.create({ data: { name: `${number}`, url: `${URL}/${number}`, types: ['user.created'] } })
  await happen('user.created', 10)
  const waiting: (() => void)[] = []
  const full = Promise.withResolvers<void>()
  let most = 0
  setReply(() => new Promise((resolve) => {
    waiting.push(() => resolve(204))
    most = Math.max(most, waiting.length)
    if (waiting.length === 64) full.resolve()
  }))
  const flushed = webhooks.flush()
  await full.promise
  const counts = Map.groupBy(got, ({ url }) => url)
  t.equal(Math.max(...[...counts.values()].map(({ length }) => length)), 4)
  setReply(() => 204)
  for (const end of waiting.splice(0)) end()
  await flushed
  t.equal(most, 64)
  t.equal(got.length, 200)
})

t.test('a failed event is tried again by the schedule of the standard, ten times, and then given up', async (t) => {
  const { start, happen, take, setReply, clock, warnings } = await openWebhooks(t)
  const webhooks = start()
  const { webhookId } = await webhooks.create({ data: { name: 'A', url: URL, types: ['user.created'] } })
  await happen('user.created')
  let healthy = false
  setReply(({ body }) => healthy || !body.includes('user1') ? 204 : 500)
  await webhooks.flush()
  const [{ id }] = take() as [Got]
  for (const delay of [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR]) {
    clock.advance(delay - 1)
    await webhooks.flush()
    t.strictSame(take(), [], `not before ${delay} ms`)
    // Others are taken meanwhile, so the receiver is not down.
    await happen('user.created', 1, 2)
    await webhooks.flush()
    t.strictSame(users(take()), ['user2'])
    clock.advance(1)
    await webhooks.flush()
    t.strictSame(take().map((one) => one.id), [id], `after ${delay} ms, with the same id`)
  }
  clock.advance(10 * DAY)
  healthy = true
  await webhooks.flush()
  t.strictSame(take(), [])
  t.strictSame(warnings, [`webhook ${webhookId}: the event ${id} (user.created) was given up after its last attempt`])
  const attempts = (await webhooks.listAttempts(webhookId)).filter(({ eventId }) => eventId === id)
  t.match(attempts.map(({ attempt, outcome, status }) => [attempt, outcome, status]).reverse(), [...Array.from({ length: 9 }, (_, index) => [index + 1, 'failed', 500]), [10, 'given_up', 500]])
})

t.test('a receiver that fails is one line when that begins, and one when it ends', async (t) => {
  const { start, happen, setReply, clock } = await openWebhooks(t)
  const { outages, told } = recordOutages()
  const webhooks = start({ outages })
  const { webhookId } = await webhooks.create({ data: { name: 'A', url: URL, types: ['user.created'] } })
  await happen('user.created', 20)
  for (const reply of [500, 'ECONNREFUSED', 503]) {
    setReply(() => reply)
    await webhooks.flush()
    clock.advance(5 * MINUTE)
  }
  t.strictSame(told, [`webhook ${webhookId}: the receiver did not accept: 500`])
  setReply(() => 204)
  clock.advance(DAY)
  await webhooks.flush()
  t.match(told.slice(1), [new RegExp(`^webhook ${webhookId}: over after \\d+$`)])
})

t.test('jitter makes a delay longer by up to a tenth', async (t) => {
  const { start, happen, take, setReply, clock } = await openWebhooks(t)
  const webhooks = start({ random: () => 0.999_999 })
  await webhooks.create({ data: { name: 'A', url: URL, types: ['user.created'] } })
  await happen('user.created')
  setReply(() => 500)
  await webhooks.flush()
  take()
  clock.advance(5_499)
  await webhooks.flush()
  t.strictSame(take(), [])
  clock.advance(1)
  await webhooks.flush()
  t.equal(take().length, 1)
})

t.test('an hour of outage stores next to nothing; then every event arrives, none twice', async (t) => {
  const { start, happen, take, setReply, clock, records, warnings } = await openWebhooks(t)
  const webhooks = start()
  const { webhookId } = await webhooks.create({ data: { name: 'A', url: URL, types: ['user.created'] } })
  const arrived: string[] = []
  let isDown = true
  setReply(({ id }) => {
    if (isDown) return 'ECONNREFUSED'
    arrived.push(id)
    return 200
  })
  for (let minute = 0; minute < 60; minute++) {
    await happen('user.created', 20)
    await webhooks.flush()
    clock.advance(MINUTE)
  }
  const attempted = take().length
  const { failures } = (await records.get(webhookId))!
  const { parked } = await webhooks.require(webhookId)
  t.ok(parked < 40, `${parked} parked of 1200`)
  t.ok(failures >= 10)
  t.ok(attempted < 60, `${attempted} attempts`)
  isDown = false
  clock.advance(5 * MINUTE)
  await webhooks.flush()
  t.equal(arrived.length, 1200, 'within five minutes')
  t.equal(new Set(arrived).size, 1200)
  t.match(await records.get(webhookId), { failures: 0, failing_since: undefined, wait_until: undefined })
  t.match(await webhooks.require(webhookId), { parked: 0 })
  t.strictSame(warnings, [])
})

t.test('with 1,000 parked the cursor waits, and nothing is lost', async (t) => {
  const { start, happen, setReply, clock, records } = await openWebhooks(t)
  const webhooks = start()
  const { webhookId } = await webhooks.create({ data: { name: 'A', url: URL, types: ['user.created'] } })
  // Every tenth is taken, so the receiver is not down.
  const arrived = new Set<string>()
  let isHealthy = false
  setReply(({ id, body }) => {
    if (!isHealthy && !/"user\d*0"/.test(body)) return 503
    arrived.add(id)
    return 200
  })
  await happen('user.created', 1_300)
  await webhooks.flush()
  const { cursor } = (await records.get(webhookId))!
  t.equal((await webhooks.require(webhookId)).parked, 1_000)
  await webhooks.flush()
  t.equal((await records.get(webhookId))!.cursor, cursor)
  isHealthy = true
  clock.advance(5 * SECOND)
  await webhooks.flush()
  t.equal(arrived.size, 1_300)
  t.equal((await webhooks.require(webhookId)).parked, 0)
})

t.test('Retry-After holds the webhook back; 410 disables it at once', async (t) => {
  const { start, happen, take, setReply, clock, warnings, events } = await openWebhooks(t)
  const webhooks = start()
  const { webhookId } = await webhooks.create({ data: { name: 'A', url: URL, types: ['user.created'] } })
  setReply(() => ({ status: 429, retryAfter: 10 * MINUTE }))
  await happen('user.created', 1)
  await webhooks.flush()
  t.equal(take().length, 1)
  t.match(await webhooks.require(webhookId), { parked: 1, waitsUntil: new Date(clock.now() + 10 * MINUTE).toISOString() })
  await happen('user.created', 3, 2)
  clock.advance(10 * MINUTE - 1)
  await webhooks.flush()
  t.strictSame(take(), [])
  setReply(() => 200)
  clock.advance(1)
  await webhooks.flush()
  t.strictSame(users(take()).sort(), ['user1', 'user2', 'user3', 'user4'])

  setReply(() => 410)
  await happen('user.created', 1, 5)
  await webhooks.flush()
  t.equal(take().length, 1)
  t.match(await webhooks.require(webhookId), { disabled: true, failure: 'HTTP_410' })
  t.strictSame(warnings, [`webhook ${webhookId} was disabled: its receiver answered 410, that it is gone`])
  await events.flush()
  const all = (await events.read({ after: await events.first() })).events
  t.match(all.at(-1), { type: 'webhook.disabled', target: { kind: 'webhook', id: webhookId }, actor: { via: 'system' } })
  await happen('user.created', 1, 6)
  clock.advance(DAY)
  await webhooks.flush()
  t.strictSame(take(), [])

  setReply(() => 200)
  await webhooks.patch(webhookId, { data: { disabled: false } })
  await webhooks.flush()
  t.strictSame(users(take()).sort(), ['user5', 'user6'], 'enabled again, it goes on where it stopped')
  t.match(await webhooks.require(webhookId), { parked: 0, failure: undefined })
})

t.test('a failure long after the last event was given up disables no webhook', async (t) => {
  const { start, happen, setReply, clock } = await openWebhooks(t)
  const webhooks = start()
  const { webhookId } = await webhooks.create({ data: { name: 'A', url: URL, types: ['user.created'] } })
  setReply(() => 503)
  await happen('user.created')
  for (let hour = 0; hour < 4 * 24; hour++) {
    clock.advance(HOUR)
    await webhooks.flush()
  }
  t.match(await webhooks.require(webhookId), { failingSince: undefined, disabled: undefined }, 'its only event was given up')
  clock.advance(30 * DAY)
  await happen('user.created')
  await webhooks.flush()
  t.match(await webhooks.require(webhookId), { failingSince: String, disabled: undefined }, 'one failure in a month')
})

t.test('five days without a success disable a webhook; a single success does not let it come to that', async (t) => {
  const { start, happen, setReply, clock, warnings } = await openWebhooks(t)
  const webhooks = start()
  const { webhookId } = await webhooks.create({ data: { name: 'A', url: URL, types: ['user.created'] } })
  setReply(() => 'ETIMEDOUT')
  await happen('user.created')
  for (let hour = 0; hour < 3 * 24; hour++) {
    clock.advance(HOUR)
    await webhooks.flush()
  }
  t.match(await webhooks.require(webhookId), { failingSince: String, disabled: undefined })
  setReply(() => 200)
  await happen('user.created')
  await webhooks.flush()
  setReply(() => 'ETIMEDOUT')
  await happen('user.created')
  for (let hour = 0; hour < 5 * 24 - 1; hour++) {
    clock.advance(HOUR)
    await happen('user.created')
    await webhooks.flush()
  }
  t.match(await webhooks.require(webhookId), { disabled: undefined })
  clock.advance(2 * HOUR)
  await webhooks.flush()
  t.match(await webhooks.require(webhookId), { disabled: true, failure: 'FAILING' })
  t.match(warnings.at(-1), 'its receiver has failed for 5 days')
})

t.test('any number of processes: each webhook is delivered by one', async (t) => {
  const { start, happen, got } = await openWebhooks(t)
  const processes = Array.from({ length: 4 }, () => start())
  for (let number = 0; number < 8; number++) await processes[0]!.create({ data: { name: `${number}`, url: `${URL}/${number}`, types: ['user.created'] } })
  await happen('user.created', 50)
  await Promise.all(processes.map((one) => one.flush()))
  await Promise.all(processes.map((one) => one.flush()))
  t.equal(got.length, 400)
  t.equal(new Set(got.map(({ id, url }) => `${id} ${url}`)).size, 400)
})

t.test('deliveries that a dead process had not recorded are repeated with the same id, after its lease', async (t) => {
  const { start, happen, take, setReply, clock } = await openWebhooks(t)
  const [dying, other] = [start(), start()]
  await dying.create({ data: { name: 'A', url: URL, types: ['user.created'] } })
  await happen('user.created', 3)
  const arrived = Promise.withResolvers<void>()
  const hanging = Promise.withResolvers<number>()
  t.teardown(() => hanging.resolve(500))
  let count = 0
  setReply(() => {
    if (++count === 3) arrived.resolve()
    return hanging.promise
  })
  dying.flush().catch(() => {})
  await arrived.promise
  const first = take().map(({ id }) => id)
  setReply(() => 200)
  await other.flush()
  t.strictSame(take(), [], 'the lease holds')
  clock.advance(2 * MINUTE)
  await other.flush()
  t.strictSame(take().map(({ id }) => id), first)
})

t.test('changing, disabling and deleting take effect at once', async (t) => {
  const { start, happen, take, setReply } = await openWebhooks(t)
  const webhooks = start()
  const { webhookId } = await webhooks.create({ data: { name: 'A', url: URL, types: ['user.created'] } })
  let first = Promise.withResolvers<number>()
  for (const [what, change, after] of [
    ['another URL', async () => await webhooks.patch(webhookId, { data: { url: `${URL}/other` } }), [`${URL}/other`]],
    ['other types', async () => await webhooks.patch(webhookId, { data: { types: ['user.deleted'] } }), []],
    ['disabled', async () => {
      await webhooks.patch(webhookId, { data: { types: ['user.created'] } })
      await webhooks.patch(webhookId, { data: { disabled: true } })
    }, []],
    ['deleted', async () => {
      setReply(() => 200)
      await webhooks.patch(webhookId, { data: { disabled: false } })
      await webhooks.flush()
      take()
      setReply(() => first.promise)
      await webhooks.remove(webhookId)
    }, []]
  ] as const) {
    const arrived = Promise.withResolvers<void>()
    first = Promise.withResolvers<number>()
    setReply(() => {
      arrived.resolve()
      return first.promise
    })
    await happen('user.created', 9)
    const flushed = webhooks.flush()
    if (what === 'another URL' || what === 'other types') await arrived.promise
    await change()
    const begun = take().length
    t.ok(begun <= 4)
    setReply(() => 200)
    first.resolve(200)
    await flushed
    await webhooks.flush()
    t.strictSame([...new Set(take().map(({ url }) => url))], after, what)
  }
  await t.rejects(webhooks.require(webhookId), { code: 'ErrNotFound' })
})

t.test('a replay delivers again from a time, a cursor, the beginning or now, and ends where it should', async (t) => {
  const { start, happen, take, clock, events } = await openWebhooks(t)
  const webhooks = start()
  const { webhookId } = await webhooks.create({ data: { name: 'A', url: URL, types: ['user.created'] } })
  await happen('user.created', 2)
  clock.advance(HOUR)
  const time = new Date(clock.now()).toISOString()
  await happen('user.created', 2, 3)
  const middle = await events.last()
  clock.advance(HOUR)
  const later = new Date(clock.now()).toISOString()
  await happen('user.created', 2, 5)
  await webhooks.flush()
  t.equal(take().length, 6)
  const replay = async (from: string, to?: string) => {
    await webhooks.replay(webhookId, { from, ...(to !== undefined && { to }) })
    await events.flush()
    await webhooks.flush()
    return users(take()).sort().join(' ').replaceAll('user', '')
  }
  t.equal(await replay('first'), '1 2 3 4 5 6')
  t.equal(await replay(time), '3 4 5 6')
  t.equal(await replay(time, later), '3 4')
  t.equal(await replay(middle), '5 6')
  t.equal(await replay('first', middle), '1 2 3 4')
  t.equal(await replay('first', time), '1 2')
  t.equal(await replay('2000-01-01T00:00:00Z'), '1 2 3 4 5 6')
  t.equal(await replay('2999-01-01T00:00:00Z'), '')
  t.equal(await replay('now'), '')
  await happen('user.created', 1, 7)
  await webhooks.flush()
  t.strictSame(users(take()), ['user7'], 'and goes on after it')
  await t.rejects(replay(middle, time), { message: 'to: must not be before from' })
  await t.rejects(replay('yesterday'), { code: 'ErrParam', message: 'from: must be a time (RFC 3339), a cursor of the feed, first or now' })
  await t.rejects(replay('zzzzzzzz.1'), { code: 'ErrParam', message: 'from: is a cursor of events that are not kept, or of another feed' })
})

t.test('a bounded replay of an outage that is not over goes on where the deliveries were', async (t) => {
  const { start, happen, take, setReply, clock, events } = await openWebhooks(t)
  const webhooks = start()
  const { webhookId } = await webhooks.create({ data: { name: 'A', url: URL, types: ['user.created'] } })
  await happen('user.created', 3)
  const middle = await events.last()
  await webhooks.flush()
  take()
  setReply(() => 'ECONNREFUSED')
  await webhooks.patch(webhookId, { data: { disabled: true } })
  await happen('user.created', 3, 4)
  await webhooks.replay(webhookId, { from: 'first', to: middle })
  setReply(() => 200)
  await webhooks.patch(webhookId, { data: { disabled: false } })
  clock.advance(HOUR)
  await webhooks.flush()
  t.strictSame(users(take()), ['user1', 'user2', 'user3', 'user4', 'user5', 'user6'])
})

t.test('a replay in place of one that is not over goes on where the deliveries were', async (t) => {
  const { start, happen, take, clock, events } = await openWebhooks(t)
  const webhooks = start()
  const { webhookId } = await webhooks.create({ data: { name: 'A', url: URL, types: ['user.created'] } })
  await happen('user.created', 2)
  const early = await events.last()
  await happen('user.created', 2, 3)
  const middle = await events.last()
  await happen('user.created', 2, 5)
  await webhooks.flush()
  t.equal(take().length, 6)
  await webhooks.patch(webhookId, { data: { disabled: true } })
  for (const to of [middle, early]) await webhooks.replay(webhookId, { from: 'first', to })
  await happen('user.created', 1, 7)
  await webhooks.patch(webhookId, { data: { disabled: false } })
  clock.advance(HOUR)
  await webhooks.flush()
  t.strictSame(users(take()), ['user1', 'user2', 'user7'])
})

t.test('a test message reports its result, also for a disabled webhook, and never the receiver\'s answer', async (t) => {
  const { start, take, setReply } = await openWebhooks(t)
  const webhooks = start()
  const { webhookId, secret } = await webhooks.create({ data: { name: 'A', url: URL, types: ['user.created'], disabled: true } })
  t.match(await webhooks.test(webhookId), { status: 204, time: Number, code: undefined })
  const [{ body, headers, type }] = take() as [Got]
  t.equal(type, 'webhook.test')
  new Webhook(secret).verify(body, headers)
  setReply(() => 'EREFUSED')
  t.match(await webhooks.test(webhookId), { code: 'EREFUSED', time: Number, status: undefined })
  await t.rejects(webhooks.test('none'), { code: 'ErrNotFound' })
  const end = Promise.withResolvers<number>()
  setReply(() => end.promise)
  const four = Array.from({ length: 4 }, () => webhooks.test(webhookId))
  await waitUntil('an attempt at the receiver', () => take().length > 0)
  await t.rejects(webhooks.test(webhookId), { code: 'ErrBusy' })
  end.resolve(200)
  await Promise.all(four)
})

t.test('the last 100 attempts are stored, with the status or a code, and the time', async (t) => {
  const { start, happen, setReply } = await openWebhooks(t)
  const webhooks = start()
  const { webhookId } = await webhooks.create({ data: { name: 'A', url: URL, types: ['user.created'] } })
  await happen('user.created', 150)
  await webhooks.flush()
  setReply(() => 'ENOTFOUND')
  await happen('user.created', 1)
  await webhooks.flush()
  const attempts = await webhooks.listAttempts(webhookId)
  t.equal(attempts.length, 100)
  t.match(attempts[0], { at: String, type: 'user.created', attempt: 1, outcome: 'failed', code: 'ENOTFOUND', time: Number })
  t.match(attempts[1], { outcome: 'delivered', status: 204 })
})

t.test('deliveries continue when old events of the feed are deleted, or the feed is of another generation', async (t) => {
  const { start, happen, take, records, store, events } = await openWebhooks(t)
  const webhooks = start()
  const { webhookId } = await webhooks.create({ data: { name: 'A', url: URL, types: ['user.created'] } })
  await happen('user.created', 3)
  await webhooks.flush()
  take()
  await happen('user.created', 4, 4)
  const all = (await events.read({ after: await events.first() })).events
  for (const { cursor } of all.slice(0, 5)) await store.collection('events').delete(cursor.split('.')[1]!.padStart(16, '0'))
  await webhooks.flush()
  t.strictSame(users(take()), ['user5', 'user6', 'user7'])
  const { cursor } = (await records.get(webhookId))!
  await records.update(webhookId, { set: { cursor: `former.${cursor.split('.')[1]}` } })
  await happen('user.created', 1, 8)
  await webhooks.flush()
  t.strictSame(users(take()), ['user8'])
})

t.test('the loop delivers by itself, and goes on after a failure of the store', async (t) => {
  const { start, happen, setReply, errors, store } = await openWebhooks(t)
  const failure = new Error('the store failed')
  const failing = new Set<string>()
  const webhooks = start({
    store: wrapStore(store, ({ collection, method }, run) => {
      if (collection === 'webhooks' && failing.delete(method)) throw failure
      return run()
    })
  })
  await webhooks.create({ data: { name: 'A', url: URL, types: ['user.created'] } })
  webhooks.start()
  const arrivals = new Map<string, PromiseWithResolvers<void>>()
  setReply(({ body }) => {
    arrivals.get(JSON.parse(body).data.target.id)?.resolve()
    return 200
  })
  for (const [number, method] of ['', '', 'page', 'get'].entries()) {
    const arrival = Promise.withResolvers<void>()
    arrivals.set(`user${number}`, arrival)
    if (method !== '') failing.add(method)
    await happen('user.created', 1, number)
    await within(`event ${number}`, arrival.promise)
  }
  for (const error of errors) t.equal(error, failure)
  await webhooks.close()
})
