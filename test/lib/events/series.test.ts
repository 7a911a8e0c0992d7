import t from 'tap'
import { createSeries } from '../../../lib/events/series.ts'
import type { Happening } from '../../../lib/events/types.ts'
import { createTimers } from '../../helpers/timers.ts'

const SECOND = 1_000

t.test('what was counted just before a series begins again is in the next summary', async (t) => {
  const timers = createTimers()
  const inserted: Happening[] = []
  const series = createSeries({ recorder: { insert: async (happening) => { inserted.push(happening) }, measure: () => 1 }, onError: (error) => { throw error }, singles: 1, outcome: 'failure', timers })
  t.teardown(() => series.close())
  const admit = (id: string) => series.admit({ type: 'user.created', id }, { name: id, summary: { type: 'user.created', id } })
  // It sets the minutes of the summaries, so that the hour of the next series ends between two of them.
  admit('a')
  timers.advance(30 * SECOND)
  t.equal(admit('b'), true)
  for (let half = 0; half < 119; half++) timers.advance(30 * SECOND)
  timers.advance(10 * SECOND)
  await series.settle()
  t.equal(admit('b'), false, 'counted within the hour')
  timers.advance(20 * SECOND + 1)
  t.equal(admit('b'), true, 'the hour is over')
  t.strictSame(inserted, [])
  await series.flush()
  t.strictSame(inserted, [{ type: 'user.created', id: 'b', count: 1 }])
})
