import { randomBytes } from 'node:crypto'
import t from 'tap'
import { createRenderer, showClient } from '../../../lib/clients/client-list.ts'
import type { ClientRecord } from '../../../lib/records.ts'
import { createSecretBox } from '../../../lib/crypto/secrets.ts'

const box = createSecretBox(randomBytes(32))

const ID = '01J87IMPFF4VT1FJ9UFVGONNID00000001'
const PLAIN: ClientRecord = {
  id: ID,
  createdAt: '2026-01-01T00:00:00.000Z',
  modifiedAt: '2026-01-02T00:00:00.000Z',
  redirectUris: ['https://a.example/callback', 'https://b.example/'],
  scopes: ['openid', 'orders:read'],
  userId: '01J8HUOW143MVL0YHF0SLGUEJD00000000',
  name: 'Application 1',
  epoch: 0
}
const { epoch, ...OPEN } = PLAIN
const SEALED = { ...OPEN, secret: box.seal('0123456789abcdef', ID), epoch }
/** As an insert writes it: the secret behind the times, the image behind the name. */
const { id, createdAt, modifiedAt, ...REST } = OPEN
const FULL = { id, createdAt, modifiedAt, secret: SEALED.secret, ...REST, image: 'https://a.example/logo.png', epoch: 12 }

const TEXTS = [
  'Application', '', '"', '\\', '\\"', '\n\t\0', '\u2028', 'Äpfel & \u{1F34F}', '\ud800', '\ufeff', '{', '}', '{"name":"x"}', '[', ']', ',', ':', '],', '":', ',"scopes":[', '],"scopes":[', '],"userId":"', '","name":"', '"epoch":', '\\"}', '</script>'
]

/** Documents as they may be stored, most of them as no version of the service has written them. */
const DOCUMENTS: [string, object][] = [
  ['plain', PLAIN],
  ['full', FULL],
  ['a secret behind the rest', SEALED],
  ['an image that came later', { ...PLAIN, image: 'https://a.example/later.png' }],
  ['first party', { ...OPEN, first_party: true, epoch }],
  ['no epoch', OPEN],
  ['an epoch that is no digits', { ...OPEN, epoch: -1.5 }],
  ['an epoch that is a text', { ...OPEN, epoch: '1' }],
  ['unknown fields between', { ...FULL, redirectUris: undefined, extra: ['x'], epoch: 1 }],
  ['an unknown array before scopes', { id: ID, createdAt: '', modifiedAt: '', redirectUris: ['x'], extra: ['y'], scopes: ['z'], userId: '', name: '', epoch: 0 }],
  ['an unknown array before the user', { id: ID, createdAt: '', modifiedAt: '', redirectUris: ['x'], scopes: ['z'], extra: ['y'], userId: '', name: '', epoch: 0 }],
  ['an inner object with the fields', { ...PLAIN, redirectUris: [{ a: [], scopes: [] }], info: { userId: 'x', name: 'y' } }],
  ['no user', { ...PLAIN, userId: undefined }],
  ['no name', { ...PLAIN, name: undefined }],
  ['no lists', { ...PLAIN, redirectUris: undefined, scopes: undefined }],
  ['empty lists', { ...PLAIN, redirectUris: [], scopes: [] }],
  ['another order', Object.fromEntries(Object.entries(FULL).toReversed())],
  ['null', { ...PLAIN, name: null, image: null }],
  ...Object.keys(FULL).flatMap((field): [string, object][] => ['x', ['x'], { name: 'x' }, null].map((extra) => [
    `an unknown field before ${field}`, Object.fromEntries(Object.entries(FULL).flatMap((entry) => entry[0] === field ? [['extra', extra], entry] : [entry]))
  ])),
  ...Object.keys(FULL).filter((field) => field !== 'id').map((field): [string, object] => [
    `no ${field}, but one with a name as long`, Object.fromEntries(Object.entries(FULL).map(([key, value]) => [key === field ? 'x'.repeat(key.length) : key, value]))
  ]),
  ...TEXTS.flatMap((text): [string, object][] => [
    [`a name ${JSON.stringify(text)}`, { ...PLAIN, name: text }],
    [`an image ${JSON.stringify(text)}`, { ...FULL, image: text }],
    [`URIs ${JSON.stringify(text)}`, { ...FULL, redirectUris: [text, text] }],
    [`scopes ${JSON.stringify(text)}`, { ...PLAIN, scopes: [text, 'x', text] }],
    [`a user ${JSON.stringify(text)}`, { ...FULL, userId: text }],
    [`a time ${JSON.stringify(text)}`, { ...FULL, createdAt: text, modifiedAt: text }],
    [`an id ${JSON.stringify(text)}`, { ...FULL, id: text, secret: box.seal('secret', text) }],
    [`a secret ${JSON.stringify(text)}`, { ...FULL, secret: box.seal(text.toWellFormed().repeat(40), ID) }]
  ])
]

for (const isAdmin of [true, false]) {
  t.test(`a client is written as it is shown to ${isAdmin ? 'an admin' : 'its owner'}, whatever its text looks like`, (t) => {
    const expected = DOCUMENTS.map(([, document]) => JSON.stringify(showClient(JSON.parse(JSON.stringify(document)), isAdmin, box.open)))
    for (const [index, [label, document]] of DOCUMENTS.entries()) {
      const create = () => createRenderer({ between: ',', isAdmin, key: box.key })
      const text = JSON.stringify(document)
      // Named in what is compared: a test's own name must not hold such texts.
      t.strictSame([label, create().fromTexts([text])], [label, expected[index]])
      t.strictSame([label, create().fromDocuments([JSON.parse(text)])], [label, expected[index]])
    }
    const renderer = createRenderer({ between: ',', isAdmin, key: box.key })
    const texts = DOCUMENTS.map(([, document]) => JSON.stringify(document))
    const parts = [renderer.fromTexts(texts.slice(0, 10)), renderer.fromTexts([]), renderer.fromTexts(texts.slice(10))]
    t.equal(parts.join(''), expected.join(','), 'and many, in batches')
    t.end()
  })
}

t.test('a secret that does not open, and a text that is no JSON, are errors that tell nothing', (t) => {
  const renderer = () => createRenderer({ between: '\n', isAdmin: true, key: box.key })
  const other = createSecretBox(randomBytes(32)).seal('0123456789abcdef', ID)
  for (const secret of [other, box.seal('0123456789abcdef', 'another id'), `${SEALED.secret.slice(0, -4)}AAAA`, 'v1', '', 7]) {
    t.throws(() => renderer().fromTexts([JSON.stringify({ ...FULL, secret })]), { code: 'ErrInternal', message: 'a stored secret cannot be opened' })
  }
  t.throws(() => renderer().fromTexts(['{"secret":']), { code: 'ErrInternal', message: 'a stored document cannot be read', cause: undefined })
  t.end()
})
