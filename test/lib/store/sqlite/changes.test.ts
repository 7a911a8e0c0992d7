import t from 'tap'
import { type Touched, addChange, findChanged } from '../../../../lib/store/sqlite/changes.ts'

const user = (id: string): Touched => ({ collection: 'users', id })

t.test('the documents between two versions', async (t) => {
  const lines = [['1', '2', [user('a')]], ['2', '3', []], ['3', '4', [user('b'), user('line\nend')]]] as const
  const text = lines.reduce((text, [before, after, changed]) => addChange(text, before, after, changed), '')
  t.strictSame(findChanged(text, '1', '4'), [user('b'), user('line\nend'), user('a')])
  t.strictSame(findChanged(text, '2', '3'), [], 'a line that came later does not count')
  t.strictSame(findChanged(text, '1', '2'), [user('a')])
  for (const [from, to] of [['0', '4'], ['4', '1'], ['1', '5'], ['4', '4']] as const) t.equal(findChanged(text, from, to), null, `${from} to ${to}`)
  t.equal(findChanged('', '1', '2'), null)
})

t.test('a change that is unknown, or of many documents, tells nothing', async (t) => {
  const known = addChange('', '1', '2', [user('a')])
  for (const changed of [null, Array.from({ length: 31 }, (_, number) => user(String(number)))]) {
    const text = addChange(addChange(known, '2', '3', changed), '3', '4', [user('b')])
    t.equal(findChanged(text, '1', '4'), null)
    t.strictSame(findChanged(text, '3', '4'), [user('b')])
  }
  t.equal(addChange(known, null, '3', [user('b')]), '', 'after a change of another program')
})

t.test('the oldest lines go, and a line that is too long', async (t) => {
  let text = ''
  for (let version = 0; version < 1_000; version++) text = addChange(text, String(version), String(version + 1), [user('somebody')])
  t.ok(text.length <= 3_000)
  t.equal(findChanged(text, '0', '1000'), null)
  t.strictSame(findChanged(text, '970', '1000'), Array(30).fill(user('somebody')))
  t.equal(addChange(text, '1000', '1001', [user('x'.repeat(4_000))]), '')
})
