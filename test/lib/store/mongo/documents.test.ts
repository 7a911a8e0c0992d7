import { BSON } from 'mongodb'
import t from 'tap'
import { decodeDocument, encodeDocument } from '../../../../lib/store/mongo/documents.ts'
import type { CollectionSpec, Document, Json } from '../../../../lib/store/port.ts'

const SPEC: CollectionSpec = { name: 'things', keys: { name: 'string', at: 'string' }, expiry: 'at' }

/** Encodes and decodes a document with the driver's BSON, as a server that changes nothing would return it. */
function store (document: object): BSON.Document {
  return BSON.deserialize(BSON.serialize(encodeDocument(SPEC, document as Document), { ignoreUndefined: true }))
}

const back = (document: object) => decodeDocument(store(document) as { _id: string })

t.test('the stored form', async (t) => {
  const plain = { name: 'n', list: [1, { 'a.b': null }], text: '$x' }
  t.strictSame(store({ id: 'a', at: '2999-01-01T00:00:00.000Z', none: undefined, ...plain }), { _id: 'a', at: new Date('2999-01-01'), ...plain })
})

t.test('a name that would be a path, an operator or the id is percent-encoded', async (t) => {
  for (const [field, name] of Object.entries({ 'a.b': 'a%2Eb', $a: '%24a', a$: 'a$', '%': '%25', '': '%', '.': '%2E', _id: '%5Fid', _idx: '_idx', 'a\0': 'a%00', '%json': '%25json', '100%25': '100%2525' })) {
    t.strictSame(Object.keys(store({ id: 'x', [field]: 1 })), ['_id', name], field)
    t.strictSame(back({ id: 'x', [field]: 1 }), { id: 'x', [field]: 1 }, field)
  }
  const proto = JSON.parse('{"id":"x","__proto__":{"admin":true}}')
  t.equal(JSON.stringify(back(proto)), JSON.stringify(proto))
})

t.test('a value that BSON or the driver would change is stored as JSON', async (t) => {
  const deep = (levels: number): Json => JSON.parse('[{"a":'.repeat(levels) + '1' + '}]'.repeat(levels))
  const values: Record<string, [value: Json, json: boolean]> = {
    'a dotted key': [{ 'a.b': { '.': 1 } }, false],
    'nesting a server takes': [deep(15), false],
    'deep nesting': [deep(2_000), true],
    'a dollar key': [[{ $set: 1 }], true],
    'a reference': [{ $ref: 'a.b', $id: 'c' }, true],
    'a BSON type': [{ a: [{ _bsontype: 'ObjectId' }] }, true],
    'an empty key': [{ '': { '': 1 } }, true],
    'a NUL in a key': [{ 'a\0': 1 }, true],
    'our own mark': [{ '%json': '1' }, true],
    'our own mark within': [{ a: { '%json': '1' } }, true],
    'half a surrogate pair': ['\ud800', true],
    'half a surrogate pair in a key': [{ '\ud800': 1 }, true],
    'a NUL in a text': ['a\0b', false]
  }
  for (const [name, [value, json]] of Object.entries(values)) {
    const stored = store({ id: 'x', value }).value
    t.equal(Object.keys(Object(stored)).join() === '%json', json, `${name} ${json ? 'as JSON' : 'as it is'}`)
    t.equal(JSON.stringify(back({ id: 'x', value })), JSON.stringify({ id: 'x', value }), `${name} comes back`)
  }
})

t.test('an expiry is a time in the one form that comes back unchanged', async (t) => {
  for (const at of ['0001-01-01T00:00:00.000Z', '2026-11-21T02:51:00.001Z', '9999-12-31T23:59:59.999Z']) t.strictSame(back({ id: 'x', at }), { id: 'x', at })
  t.strictSame(back({ id: 'x', at: null }), { id: 'x', at: null })
  for (const at of ['', 'soon', '2026-11-21', '2026-11-21T02:51:00Z', '2026-11-21T02:51:00.001+00:00', '2026-02-30T00:00:00.000Z']) {
    t.throws(() => encodeDocument(SPEC, { id: 'x', at } as Document), TypeError, at)
  }
})
