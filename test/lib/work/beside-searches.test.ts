import t from 'tap'
import { createBrowsers } from '../../../lib/browsers/browsers.ts'
import { createOutbox } from '../../../lib/mail/outbox.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'
import { createFile } from '../../oidc/harness.ts'
import { box, openWebhooks } from '../../helpers/webhooks.ts'

/** Searches and counts that wait for the thread that reads whole collections. */
const WAITING = 1_000

t.test('a sign-out, an accepted mail, the feed and a webhook overtake searches, downloads and counts that wait', async (t) => {
  const store = await openStore(createFile(t), { collections: COLLECTIONS, now: Date.now, timeout: 60_000 })
  t.teardown(() => store.close())
  const users = store.collection('users')
  for (let number = 0; number < 20; number++) {
    await users.insertMany(Array.from({ length: 100 }, (_, index) => ({ id: `u${number}-${index}`, account: `account${number}-${index}` })))
  }
  const { clock, start, happen, events, got } = await openWebhooks(t, { store })
  const webhooks = start()
  await webhooks.create({ data: { name: 'A', url: 'https://receiver.example/', types: ['user.created'] } })
  const outbox = createOutbox({
    store,
    now: clock.now,
    box,
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
