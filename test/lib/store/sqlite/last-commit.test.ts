import t from 'tap'
import { LastCommit } from '../../../../lib/store/sqlite/last-commit.ts'

t.test('what one thread writes explains to the other what it did, and nothing else', (t) => {
  const here = new LastCommit()
  const there = new LastCommit(here.memory)
  t.notOk(here.explains({ from: Number.NaN, to: 1 }))
  there.write({ from: 4_294_967_295, to: 9_007_199_254_740_991 })
  for (const [from, to, explained] of [
    [4_294_967_295, 9_007_199_254_740_991, true], [4_294_967_295, 9_007_199_254_740_990, false], [4_294_967_294, 9_007_199_254_740_991, false],
    [9_007_199_254_740_991, 9_007_199_254_740_991, false]
  ] as const) t.equal(here.explains({ from, to }), explained)
  there.write({ from: 7, to: 7 })
  t.notOk(here.explains({ from: 4_294_967_295, to: 9_007_199_254_740_991 }))
  t.end()
})
