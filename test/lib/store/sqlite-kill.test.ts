import t from 'tap'
import { killRepeatedly } from '../../long/kill.ts'

t.test('acknowledged writes survive kill -9 in the middle of a stream of writes', async (t) => {
  const { acknowledged, lost, integrity } = await killRepeatedly(4, t.testdir())
  t.ok(acknowledged > 100)
  t.strictSame(lost, [])
  t.equal(integrity, 'ok')
})
