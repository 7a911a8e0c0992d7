import t, { type Test } from 'tap'
import { createBrowsers } from '../../../lib/browsers/browsers.ts'
import type { Meter } from '../../../lib/metrics/meter.ts'
import { readOutbox } from '../../../lib/metrics/read-outbox.ts'
import { readRelay } from '../../../lib/metrics/read-relay.ts'
import { readWebhooks } from '../../../lib/metrics/read-webhooks.ts'
import { createOutbox } from '../../../lib/mail/outbox.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'
import { createFile } from '../../oidc/harness.ts'
import { box, openWebhooks } from '../../helpers/webhooks.ts'
import { SILENT_RECORDER } from '../../helpers/events.ts'

/** Searches and counts that wait for the thread that reads whole collections. */
const WAITING = 1_000

/** A store with 2,000 users. */
async function openUsers (t: Test) {
  const store = await openStore(createFile(t), { collections: COLLECTIONS, now: Date.now, timeout: 60_000 })
  t.teardown(() => store.close())
  const users = store.collection('users')
  for (let number = 0; number < 20; number++) {
    await users.insertMany(Array.from({ length: 100 }, (_, index) => ({ id: `u${number}-${index}`, account: `account${number}-${index}` })))
  }
  return { store, users }
}

t.test('a sign-out, an accepted mail, the feed and a webhook overtake searches, downloads and counts that wait', async (t) => {
  const { store, users } = await openUsers(t)
  const { clock, start, happen, events, got } = await openWebhooks(t, { store })
  const webhooks = start()
  await webhooks.create({ data: { name: 'A', url: 'https://receiver.example/', types: ['user.created'] } })
  const outbox = createOutbox({
    store,
    now: clock.now,
    box,
    recorder: SILENT_RECORDER,
    mail: { send: async () => {} },
    host: () => 'id.example',
    compose: async () => null,
    onError: (error) => { throw error },
    onFailed: () => {}
  })
  t.teardown(() => outbox.close())

  const filter = { contains: { account: 'nobody' } }
  let ended = 0
  const searches = Array.from({ length: WAITING }, async (_, number) => {
    if (number % 2 === 0) await users.count(filter)
    else for await (const batch of number % 4 === 1 ? users.page({ filter }) : users.stream({ filter })) t.equal(batch.length, 0)
    ended++
  })
  t.equal(await createBrowsers(store).findSignIn('none'), undefined)
  await outbox.enqueue({ kind: 'test', to: 'ann@example.com' }, 60_000)
  await happen('user.created')
  t.equal((await events.read({ after: await events.first(), limit: 100 })).events.length, 2)
  await webhooks.flush()
  t.equal(got.length, 1)
  t.ok(ended < WAITING, `${ended} searches of ${WAITING} had ended`)
  await Promise.all(searches)
})

t.test('so does every reading of a scrape', async (t) => {
  const { store, users } = await openUsers(t)
  const { clock, start, happen } = await openWebhooks(t, { store })
  const webhooks = start()
  await webhooks.create({ data: { name: 'A', url: 'https://receiver.example/', types: ['user.created'] } })
  await happen('user.created')
  const readings = new Map<string, () => unknown>()
  const meter = { read: (name: string, _help: string, reading: () => unknown) => { readings.set(name, reading) } } as unknown as Meter
  readOutbox(store, COLLECTIONS, clock.now, meter)
  readRelay(store, clock.now, meter)
  readWebhooks(webhooks, meter)

  let ended = 0
  const searches = Array.from({ length: WAITING }, async () => {
    await users.count({ contains: { account: 'nobody' } })
    ended++
  })
  t.strictSame([...readings.keys()], [
    'outbox_due', 'outbox_failed', 'outbox_oldest_seconds', 'logouts_due', 'logouts_failed', 'logouts_oldest_seconds',
    'events_pending', 'events_pending_oldest_seconds', 'events_set_aside', 'webhooks_parked', 'webhooks_oldest_seconds'
  ])
  for (const [name, read] of readings) t.equal(await read(), 0, name)
  t.ok(ended < WAITING, `${ended} searches of ${WAITING} had ended`)
  await Promise.all(searches)
})
