import t from 'tap'
import { findNearest } from '../../lib/nearest.ts'

t.test('the most similar name', async (t) => {
  const names = ['IDENTITY_DATA_DIR', 'IDENTITY_OPENAPI', 'limit', 'contains']
  for (const [text, expected] of [
    ['IDENTITY_DATADIR', 'IDENTITY_DATA_DIR'],
    ['IDENTITY_OPEN_API', 'IDENTITY_OPENAPI'],
    ['limt', 'limit'],
    ['timit', 'limit'],
    ['contians', 'contains'],
    ['limit', 'limit'],
    ['xyz', undefined],
    ['', undefined],
    ['l', undefined]
  ] as const) t.equal(findNearest(text, names), expected, text)
  t.equal(findNearest('l', []), undefined)
  t.equal(findNearest('x'.repeat(1_000_000), names), undefined, 'a text of any length is compared by its start')
})
