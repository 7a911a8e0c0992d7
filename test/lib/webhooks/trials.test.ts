import t from 'tap'
import { waitUntil } from '../../helpers/wait.ts'
import { openWebhooks } from '../../helpers/webhooks.ts'

const AT_ONCE = 4

t.test('four tests of webhooks run at once: one that is refused, and one that has ended in whichever way, takes no place', async (t) => {
  const { start, setReply, take } = await openWebhooks(t)
  const webhooks = start()
  const { webhookId } = await webhooks.create({ data: { name: 'A', url: 'https://hooks.example.com/a', types: ['user.*'] } })
  for (let round = 0; round < 2; round++) {
    const held = Promise.withResolvers<number>()
    setReply(() => held.promise)
    const running = Array.from({ length: AT_ONCE }, async () => await webhooks.test(webhookId))
    const sent: unknown[] = []
    await waitUntil('the tests', () => sent.push(...take()) > 0 && sent.length === AT_ONCE)
    for (let count = 0; count < AT_ONCE; count++) await t.rejects(webhooks.test(webhookId), { code: 'ErrBusy' })
    held.resolve(204)
    t.match(await Promise.all(running), Array(AT_ONCE).fill({ status: 204 }))
    setReply(() => 'ECONNREFUSED')
    for (let count = 0; count <= AT_ONCE; count++) t.match(await webhooks.test(webhookId), { code: 'ECONNREFUSED' })
    take()
  }
})
