import t from 'tap'
import { toTimestamp } from '../../lib/clock.ts'
import { LeaseWatch, MOST_APART, isAhead } from '../../lib/deadline.ts'
import { createTimers } from '../helpers/timers.ts'

const NOW = Date.parse('2030-01-01T00:00:00Z')
const SECOND = 1_000
const at = (milliseconds: number) => toTimestamp(NOW + milliseconds)

t.test('a deadline is one until its time, if it is no further ahead than it can be by a clock that differs by a minute', (t) => {
  const longest = 30 * SECOND
  for (const [ahead, expected] of [[-1, false], [0, false], [1, true], [longest, true], [longest + MOST_APART, true], [longest + MOST_APART + 1, false]] as const) {
    t.equal(isAhead({ at: at(ahead), longest }, NOW), expected, `${ahead}`)
  }
  for (const [from, expected] of [[0, true], [MOST_APART, true], [MOST_APART + 1, false]] as const) {
    t.equal(isAhead({ at: at(from + SECOND), from: at(from), longest: Infinity }, NOW), expected, `written at ${from}`)
  }
  t.equal(isAhead({ at: '', longest }, NOW), false)
  t.end()
})

t.test('a lease is over when it has not changed for as long as it lasts, whatever its end says', (t) => {
  for (const ahead of [-50 * SECOND, -1, 0, 30 * SECOND, 3_600 * SECOND]) {
    const timers = createTimers()
    const watch = new LeaseWatch({ now: () => NOW, timers, lease: 8 * SECOND })
    const isOver = (claim: number, until: number) => watch.isOver({ id: 'a', claim }, at(ahead + until))
    t.equal(isOver(1, 0), false)
    timers.advance(7_999)
    t.equal(isOver(1, 0), false)
    t.equal(isOver(1, 1), false, 'renewed')
    timers.advance(7_999)
    t.equal(isOver(2, 1), false, 'another holder')
    timers.advance(7_999)
    t.equal(isOver(2, 1), false)
    timers.advance(1)
    t.equal(isOver(2, 1), true)
  }
  const watch = new LeaseWatch({ now: () => NOW, timers: createTimers(), lease: 8 * SECOND })
  for (const until of [at(-MOST_APART), toTimestamp(0), '']) t.equal(watch.isOver({ id: 'a', claim: 1 }, until), true, `released, or long over: ${until}`)
  t.end()
})

t.test('of many leases the one that was seen first is forgotten', (t) => {
  const timers = createTimers()
  const watch = new LeaseWatch({ now: () => NOW, timers, lease: 8 * SECOND })
  for (let id = 0; id < 1_001; id++) watch.isOver({ id: String(id), claim: 1 }, at(0))
  timers.advance(8 * SECOND)
  t.equal(watch.isOver({ id: '1', claim: 1 }, at(0)), true)
  t.equal(watch.isOver({ id: '0', claim: 1 }, at(0)), false)
  t.end()
})
