import t from 'tap'
import { toCloseTimeout } from '../../../cli/process/shutdown.ts'

t.test('a worker has its delay, the time for requests and that for the store before it is killed', (t) => {
  for (const [shutdownDelay, shutdownTimeout, expected] of [[0, 0, 6_000], [0, 10_000, 16_000], [5_000, 10_000, 21_000]] as const) {
    t.equal(toCloseTimeout({ shutdownDelay, shutdownTimeout }), expected)
  }
  t.end()
})
