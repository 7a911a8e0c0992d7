import t from 'tap'
import { type Term, showValue } from '../../../lib/status/show-value.ts'

const SECRET: Term = { writeOnly: true }

/** What a setting is, and what is shown of it. */
const CASES: [what: string, schema: Term, value: unknown, shown: unknown][] = [
  ['a text', {}, 'plain', 'plain'],
  ['nothing', SECRET, undefined, undefined],
  ['a secret', SECRET, 'hunter2', 'set'],
  ['a secret number', SECRET, 12_345, 'set'],
  ['a secret object', SECRET, { key: 'hunter2' }, 'set'],
  ['a secret URL', SECRET, 'smtps://user:hunter2@mail.example:465?x=hunter2', 'smtps://mail.example:465'],
  ['the URL of a database', SECRET, 'mongodb://user:hunter2@one.example,two.example/db?password=hunter2', 'mongodb://one.example,two.example/db'],
  ['a URL with credentials that no schema calls secret', {}, 'https://user:hunter2@host.example/path', 'https://host.example/path'],
  ['a choice with a secret', { anyOf: [{}, SECRET] }, 'hunter2', 'set'],
  ['an object', { properties: { url: SECRET, from: {} } }, { url: 'hunter2', from: 'a@b.example' }, { url: 'set', from: 'a@b.example' }],
  ['a list', { items: { properties: { id: {}, clientSecret: SECRET } } }, [{ id: 'one', clientSecret: 'hunter2' }], [{ id: 'one', clientSecret: 'set' }]],
  ['what the schema does not know', { properties: { id: {} } }, { id: 'one', token: 'hunter2' }, { id: 'one', token: 'set' }],
  ['any keys', { patternProperties: { '^.*$': {} } }, { one: 'two' }, { one: 'two' }],
  ['further keys', { additionalProperties: {} }, { one: 'two' }, { one: 'two' }],
  ['an image', {}, 'data:image/png;base64,aGVsbG8=', 'data:image/png, 30 characters'],
  ['a function', {}, () => 'hunter2', 'set']
]

t.test('what is shown of a setting', async (t) => {
  for (const [what, schema, value, shown] of CASES) t.strictSame(showValue(schema, value), shown, what)
})
