import t from 'tap'
import { hasControls, toPlainRow } from '../../../lib/lists/csv-line.ts'
import { toCsv } from '../../../lib/lists/csv.ts'

const CLIENT = {
  clientId: '01J87IMPFF4VT1FJ9UFVGONNID00000001',
  createdAt: '2026-01-01T00:00:00.000Z',
  modifiedAt: '2026-01-02T00:00:00.000Z',
  clientSecret: '0123456789abcdef',
  redirectUris: ['https://a.example/callback', 'https://[::1]:80/?a=1,2'],
  scopes: ['openid'],
  userId: 'u',
  name: 'Application 1 für Äpfel \u{1F34F}',
  image: 'https://a.example/logo.png'
}

/** The row that parsing and fast-csv make. */
async function write (record: object, escapeFormulae = true): Promise<string> {
  let text = ''
  for await (const part of toCsv((async function * () { yield [record as Record<string, unknown>] })(), { escapeFormulae })) text += part.toString()
  return text.slice(text.indexOf('\n') + 1, -1)
}

const without = (...names: string[]) => Object.fromEntries(Object.entries(CLIENT).filter(([name]) => !names.includes(name)))

t.test('the clients of a service are written as they are, without parsing', async (t) => {
  for (const client of [
    CLIENT, without('clientSecret'), without('userId'), without('image'), without('clientSecret', 'userId', 'image'),
    { ...CLIENT, redirectUris: [], scopes: [] }, { ...CLIENT, redirectUris: ['', 'a'], scopes: [''] }, { ...CLIENT, name: 'Ä' }, { ...CLIENT, name: '' }
  ]) t.equal(toPlainRow(JSON.stringify(client)), await write(client))
})

const TEXTS = [
  'a,b', ',', 'a"b', '"', '\\', 'a\nb', 'a\rb', 'a\tb', '\0', 'a|b', ' a', '=1', '+1', '-1', '@a', '\uff1d1', '\uff20', '\ufeff', '\ud800', '{', '}', ']', '":', ',"name":"x"', '\u2028', '\x7f', "'"
]

t.test('any other is, too, or left to be parsed', async (t) => {
  const clients: object[] = [
    ...Object.keys(CLIENT).flatMap((name) => [
      ...TEXTS.map((text) => ({ ...CLIENT, [name]: Array.isArray(CLIENT[name as keyof typeof CLIENT]) ? ['a', text, 'b'] : text })),
      ...[null, 1, true, 'x', [], ['x'], [1], [['x']], {}, { a: 'x' }].map((value) => ({ ...CLIENT, [name]: value })),
      without(name),
      Object.fromEntries(Object.entries(CLIENT).flatMap((entry) => entry[0] === name ? [['extra', 'x'], entry] : [entry])),
      Object.fromEntries(Object.entries(CLIENT).flatMap((entry) => entry[0] === name ? [entry, ['extra', ['x']]] : [entry])),
      Object.fromEntries(Object.entries(CLIENT).map(([key, value]) => [key === name ? 'x'.repeat(name.length) : key, value]))
    ]),
    Object.fromEntries(Object.entries(CLIENT).toReversed())
  ]
  for (const client of clients) {
    const text = JSON.stringify(client)
    const row = toPlainRow(text)
    for (const escapeFormulae of [true, false]) if (row !== null) t.strictSame([text, row], [text, await write(client, escapeFormulae)])
  }
  t.ok(clients.some((client) => toPlainRow(JSON.stringify(client)) === null))
})

t.test('what is not JSON as the service writes it is left to be parsed', (t) => {
  const line = JSON.stringify(CLIENT)
  t.type(toPlainRow(line), 'string')
  for (let length = 0; length < line.length; length++) t.equal(toPlainRow(line.slice(0, length)), null, `cut at ${length}`)
  for (const other of [
    `${line} `, ` ${line}`, `${line}}`, `${line}\r`, line.replace('":"', '": "'), line.replace('callback","', 'callback""'), line.replace('["openid"]', '["openid",]'),
    line.replace('["openid"]', '["openid" ]'), line.replace('["openid"]', '[openid]'), line.replace('["openid"]', '["a""b"]'), line.replace('"u"', '"u"u"'),
    line.replace('openid', 'open\\u0069d'), line.replace('callback","', 'callback";"'), line.replace('callback","', 'callback",x')
  ]) {
    t.not(other, line)
    t.equal(toPlainRow(other), null, other)
  }
  t.end()
})

t.test('controls are found wherever they are', (t) => {
  const text = Buffer.from(' ~\x7fäÿ\u{1F34F}\n\x20\x80 '.repeat(5))
  for (let offset = 0; offset < 8; offset++) {
    const bytes = Buffer.concat([Buffer.alloc(offset), text]).subarray(offset)
    t.equal(hasControls(bytes), false)
    for (let at = 0; at < bytes.length; at++) {
      for (const control of [0, 1, 9, 13, 31]) {
        const copy = Buffer.concat([Buffer.alloc(offset), bytes]).subarray(offset)
        copy[at] = control
        if (!hasControls(copy)) t.fail(`${control} at ${at} from ${offset}`)
      }
    }
  }
  for (let offset = 0; offset < 8; offset++) {
    for (let length = 0; length < 12; length++) {
      const bytes = new Uint8Array(32).fill(0x61).subarray(offset, offset + length)
      t.equal(hasControls(bytes), false)
      if (length === 0) continue
      bytes[length - 1] = 0
      t.equal(hasControls(bytes), true)
    }
  }
  t.end()
})
