import t from 'tap'
import { createTimers } from '../../helpers/timers.ts'
import { handleAll } from '../../helpers/events.ts'
import { openEvents } from './harness.ts'

/** Passes time in steps, so that timers set others; store calls go on between the steps. */
async function pass (seconds: number, advance: (milliseconds: number) => void): Promise<void> {
  for (let step = 0; step < 2 * seconds; step++) {
    advance(500)
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
  }
}

t.test('a round that takes longer than the lease keeps it', async (t) => {
  const { create, connect, advance, countPending, readAll } = await openEvents(t)
  const timers = createTimers()
  const both = (milliseconds: number) => {
    advance(milliseconds)
    timers.advance(milliseconds)
  }
  const { promise: stuck, resolve: goOn } = Promise.withResolvers<void>()
  const slow = connect({ timers, handlers: handleAll(async () => await stuck) })
  const other = connect({ timers })
  await create('a')
  const round = slow.flush()
  await pass(30, both)
  await other.flush()
  t.equal(await countPending(), 1, 'the other one does not take over')
  goOn()
  await round
  t.equal((await readAll()).length, 1)
  await slow.close()
  await other.close()
})

t.test('after a kill of the holder another process publishes within 15 seconds', async (t) => {
  const { create, connect, advance, countPending } = await openEvents(t)
  const [dying, timers] = [createTimers(), createTimers()]
  const killed = connect({ timers: dying })
  await create('a')
  await killed.flush()
  t.equal(await countPending(), 0)
  // Its timers never run again.
  const next = connect({ timers })
  next.start()
  await create('b')
  await pass(14, (milliseconds) => {
    advance(milliseconds)
    timers.advance(milliseconds)
  })
  t.equal(await countPending(), 0)
  await next.close()
})
