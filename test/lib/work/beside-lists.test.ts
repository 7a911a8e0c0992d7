import t from 'tap'
import { toTimestamp } from '../../../lib/clock.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'
import { createQueue } from '../../../lib/work/queue.ts'
import type { WorkRecord } from '../../../lib/work/record.ts'
import { createFile } from '../../oidc/harness.ts'
import { openWebhooks } from '../../helpers/webhooks.ts'

/** As many long lists as a process reads at once. */
const CURSORS = 64

t.test('beside unread downloads that hold all cursors, webhooks, the feed and queues go on', async (t) => {
  const store = await openStore(createFile(t), { collections: COLLECTIONS, now: Date.now })
  t.teardown(() => store.close())
  const users = store.collection('users')
  for (let number = 0; number < 3; number++) {
    await users.insertMany(Array.from({ length: 100 }, (_, index) => ({ id: `u${number}-${index}`, account: `a${number}-${index}` })))
  }
  const lists = Array.from({ length: CURSORS }, () => users.list()[Symbol.asyncIterator]())
  for (const list of lists) await list.next()
  t.teardown(async () => { for (const list of lists) await list.return?.() })

  const { start, happen, got, errors } = await openWebhooks(t, { store })
  const webhooks = start()
  await webhooks.create({ data: { name: 'A', url: 'https://receiver.example/', types: ['user.created'] } })
  await happen('user.created')
  await webhooks.flush()
  t.equal(got.length, 1, 'a webhook')
  t.equal((await Array.fromAsync(webhooks.list())).flat().length, 1, 'the list of webhooks')

  let done = 0
  const queue = createQueue<WorkRecord>({
    collection: 'deliveries', name: 'piece', slots: 4, capacity: 10, lookahead: 10, retries: [1000], keepsDone: false, perform: async () => { done++ }, isFinal: () => false
  }, { store, now: Date.now, onError: (error) => { errors.push(error) }, onFailed: () => {} })
  t.teardown(() => queue.close())
  const time = toTimestamp(Date.now())
  const later = toTimestamp(Date.now() + 60_000)
  await queue.accept({ id: 'a', state: 'due', due_at: time, claim: 0, attempts: 0, ends_at: later, created_at: time, expired_at: later })
  await queue.flush()
  t.equal(done, 1, 'due work')
  t.strictSame(errors, [])
})
