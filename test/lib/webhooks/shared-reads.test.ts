import t from 'tap'
import type { WebhookFeed } from '../../../lib/webhooks/cursors.ts'
import { shareReads } from '../../../lib/webhooks/shared-reads.ts'
import type { Event } from '../../../schemas/event.ts'

/** A feed of as many events as `last` says, in pages of two. */
function createTestFeed (last: number) {
  const feed = {
    last,
    reads: [] as string[],
    error: undefined as Error | undefined,
    read: async ({ after }: { after: string, limit?: number }) => {
      feed.reads.push(after)
      await null
      if (feed.error !== undefined) throw feed.error
      const from = Number(after)
      const events = [from + 1, from + 2].filter((number) => number <= feed.last).map((number) => ({ id: `${number}` }) as Event)
      return { events, after: `${from + events.length}` }
    }
  }
  return feed
}

const toIds = ({ events }: { events: Event[] }) => events.map(({ id }) => id)

t.test('readers at one place share a read, at once and one after the other', async (t) => {
  const feed = createTestFeed(4)
  const { read } = shareReads(feed as unknown as WebhookFeed)
  for (const page of await Promise.all([read({ after: '0' }), read({ after: '0' })])) t.strictSame(toIds(page), ['1', '2'])
  t.strictSame(toIds(await read({ after: '0' })), ['1', '2'])
  t.strictSame(toIds(await read({ after: '2' })), ['3', '4'])
  t.strictSame(feed.reads, ['0', '2'])
  await read({ after: '0', limit: 1 })
  t.strictSame(feed.reads, ['0', '2', '0'], 'not a read of one event')
})

t.test('the end and a failure are not cached', async (t) => {
  const feed = createTestFeed(0)
  const { read } = shareReads(feed as unknown as WebhookFeed)
  t.strictSame(toIds(await read({ after: '0' })), [])
  feed.last = 1
  feed.error = new Error('the store is away')
  await t.rejects(Promise.all([read({ after: '0' }), read({ after: '0' })]), { message: 'the store is away' })
  feed.error = undefined
  t.strictSame(toIds(await read({ after: '0' })), ['1'])
  feed.last = 2
  t.strictSame(toIds(await read({ after: '0' })), ['1'], 'a page that was not full stays as it is')
  t.strictSame(toIds(await read({ after: '1' })), ['2'], 'and leads to what came later')
})

t.test('four pages are cached', async (t) => {
  const feed = createTestFeed(20)
  const { read } = shareReads(feed as unknown as WebhookFeed)
  for (const after of ['0', '2', '4', '6', '8', '2', '0']) await read({ after })
  t.strictSame(feed.reads, ['0', '2', '4', '6', '8', '0'])
})
