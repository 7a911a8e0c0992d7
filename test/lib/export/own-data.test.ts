import t from 'tap'
import { createOwnData } from '../../../lib/export/own-data.ts'
import { createCounter } from '../../../lib/throttling/counter.ts'
import { openRules } from '../../helpers/services.ts'
import { createBase } from '../../helpers/base.ts'

const EVENTS = 1_000

t.test('the data is read while it is written: a reader who stops has read no more than a page ahead', async (t) => {
  let pages = 0
  const { store, now, users } = await openRules(t, {
    around: (call, run) => {
      if (call.collection === 'events' && call.method === 'page') pages++
      return run()
    }
  })
  const { user_id } = await users.create({ data: { account: 'ann', password: 'x' } })
  const time = new Date(now()).toISOString()
  const events = Array.from({ length: EVENTS }, (_, index) => ({
    id: String(index + 1).padStart(16, '0'),
    key: String(index).padStart(26, '0'),
    type: 'user.updated',
    user: user_id,
    content: { type: 'user.updated', time, actor: { via: 'api' }, target: { kind: 'user', id: user_id }, user_id, outcome: 'success' },
    expired_at: '2226-01-01T00:00:00.000Z'
  }))
  await store.collection('events').insertMany(events)
  async function * none (): AsyncGenerator<never[]> {}
  const ownData = createOwnData({
    ...createBase({ store, now }),
    ways: { list: async () => [] },
    ownSessions: { readBrowsers: none, readTokenSessions: none },
    uses: { read: async () => ({}) },
    counter: createCounter()
  })
  const pieces: string[] = []
  for await (const piece of await ownData.read(user_id)) {
    pieces.push(piece)
    if (!piece.includes('user.updated')) continue
    t.equal(pages, 1)
    break
  }
  t.match(JSON.parse(`${pieces.join('')}]}`), { profile: { user_id }, events: { length: 100 } })
  t.equal(pages, 1, 'nothing is read after the reader has stopped')

  let text = ''
  for await (const piece of await ownData.read(user_id, { isLimited: false })) text += piece
  t.equal((JSON.parse(text) as { events: unknown[] }).events.length, EVENTS)
  await t.rejects(ownData.read(user_id), { code: 'ErrLimit' })
  await t.rejects(ownData.read('nobody'), { code: 'ErrNotFound' })
})
