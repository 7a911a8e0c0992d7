import t from 'tap'
import { MONGODB_URL } from '../../helpers/mongodb.ts'
import { cutRepeatedly } from './mongo/cuts.ts'

const CUTS = 10

// Each cut may take its 15 seconds.
t.setTimeout(120_000)

t.test('a store recovers from every cut of its connections, and no acknowledged write is lost', { skip: MONGODB_URL === undefined && 'MONGODB_URL is not set' }, async (t) => {
  const { lost, missing, acknowledged, slowest, replaced } = await cutRepeatedly(MONGODB_URL!, CUTS)
  t.comment(`${acknowledged} acknowledged writes, slowest recovery ${Math.round(slowest)} ms, client replaced ${replaced} times`)
  t.strictSame(lost, [])
  t.strictSame(missing, [])
  t.ok(acknowledged > 0)
})
