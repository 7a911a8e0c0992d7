import t from 'tap'
import { storeError } from '../../lib/errors.ts'
import { explainFailure, hideCredentials } from '../../lib/failure.ts'

t.test('only the credentials of URLs are replaced', async (t) => {
  for (const [text, expected] of [
    ['mongodb://ann:hunter2@host:27017/db failed', 'mongodb://***@host:27017/db failed'],
    ['a http://hunter2@h/x?y and https://a:hunter2@b', 'a http://***@h/x?y and https://***@b'],
    ['https://host/path@home', 'https://host/path@home'],
    ['ann@example.org', 'ann@example.org']
  ] as const) t.equal(hideCredentials(text), expected)
})

t.test('a failure is explained with its causes, each once', async (t) => {
  const round = new Error('round')
  round.cause = round
  for (const [error, expected] of [
    [new Error('one'), 'one'],
    [storeError(new Error('EACCES: permission denied')), 'the store is unavailable: EACCES: permission denied'],
    [new Error('it failed: no disk', { cause: new Error('no disk') }), 'it failed: no disk'],
    [round, 'round'],
    [new Error('a', { cause: new Error('b', { cause: new Error('c', { cause: new Error('d', { cause: new Error('e') }) }) }) }), 'a: b: c: d'],
    ['hunter2', 'an error without a message'],
    [new Error(''), 'an error without a message']
  ] as const) t.equal(explainFailure(error), expected)
})
