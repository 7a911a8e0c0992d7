import t from 'tap'
import { readList } from '../../../lib/lists/list-reader.ts'

async function * pieces (...parts: (string | Buffer)[]): AsyncGenerator<Buffer> {
  for (const part of parts) yield Buffer.from(part as string)
}

async function readAll (type: string, ...parts: (string | Buffer)[]) {
  const batches = []
  for await (const batch of readList(pieces(...parts), type)) {
    const records = [...batch]
    if (records.length > 0) batches.push(records)
  }
  return batches
}

const LINES = 'application/x-ndjson'
const JSON_TYPE = 'application/json'

t.test('a batch is what a chunk completes', async (t) => {
  for (const [type, parts, batches] of [
    [LINES, ['{"a":1}\n{"a":2}\n{"a"', ':3', '}\n', '{"a":4}'], [[{ a: 1 }, { a: 2 }], [{ a: 3 }], [{ a: 4 }]]],
    [LINES, ['', '\n', ' \r\n', '{}\n'], [[{}]]],
    [LINES, [], []],
    [JSON_TYPE, ['[{"a":1},{"a":', '2}', ']'], [[{ a: 1 }], [{ a: 2 }]]],
    [JSON_TYPE, [' ', '\n{"x":[{"data":[1]}],"data"', ':', ' [', '{"a":{"data":[{}]}}', ',{}', '] , "y":{}}'], [[{ a: { data: [{}] } }], [{}]]],
    [JSON_TYPE, ['{"data":[]}'], []],
    [JSON_TYPE, ['[]', ' \n'], []],
    ['application/jsonl; charset=utf-8', ['{}'], [[{}]]],
    ['application/vnd.api+json', ['[{}]'], [[{}]]]
  ] as const) t.strictSame(await readAll(type, ...parts), batches, `${type} ${parts.join('|')}`)
})

t.test('texts are as JSON.parse reads them', async (t) => {
  const texts = ['\ufeff', 'a\ufeff', '\ufeffa', '\u00e9\ufeff\u6f22', '\u{1f600}', '\u0000', '\\', '"', '\ud800', '\udc00x', '\u2028', '__proto__']
  for (const [index, text] of texts.entries()) {
    for (const json of [JSON.stringify({ name: text }), JSON.stringify({ name: text }).replace(/[^ -~]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)]) {
      for (const [type, body] of [[LINES, json], [JSON_TYPE, `[${json}]`], [JSON_TYPE, `{"data":[${json}]}`]] as const) {
        const bytes = Buffer.from(body)
        const apart = Array.from(bytes, (_, index) => bytes.subarray(index, index + 1))
        t.strictSame((await readAll(type, bytes)).flat(), [{ name: text }], `${type} ${index}`)
        t.strictSame((await readAll(type, ...apart)).flat(), [{ name: text }], `${type} ${index} byte by byte`)
      }
    }
  }
})

t.test('__proto__ is a key like any other', async (t) => {
  for (const [type, body] of [[LINES, '{"__proto__":{"clientId":"x"}}'], [JSON_TYPE, '[{"__proto__":{"clientId":"x"}}]']] as const) {
    const [[record]] = await readAll(type, body) as [[Record<string, unknown>]]
    t.equal(record.clientId, undefined)
    t.ok(Object.hasOwn(record, '__proto__'))
  }
})

t.test('the error repeats nothing of the body', async (t) => {
  for (const [type, body] of [[LINES, '{"secret": hunter2'], [JSON_TYPE, '{"data": hunter2']] as const) {
    const error = await readAll(type, body).then(() => undefined, (error: Error) => error)
    t.match(error, { code: 'ErrRsc', message: 'the upstream sent a list that is not one' })
    t.equal(error?.cause, undefined)
  }
})

t.test('a type that is not a list is refused before the body is read', async (t) => {
  for (const type of ['', 'text/plain', 'text/json', 'application/xml', 'application/jsonx', 'json']) {
    t.throws(() => readList(pieces(), type), { code: 'ErrRsc' }, type)
  }
})

t.test('the size of a record is bounded, in any number of chunks', async (t) => {
  const long = (size: number) => JSON.stringify({ name: 'x'.repeat(size) })
  const mib = 1024 * 1024
  for (const [type, wrap] of [[LINES, (text: string) => `${text}\n`], [JSON_TYPE, (text: string) => `[${text}]`], [JSON_TYPE, (text: string) => `{"data":[${text}]}`]] as const) {
    for (const size of [1000, 64 * 1024]) {
      const cut = (text: string) => text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []
      t.equal((await readAll(type, ...cut(wrap(long(mib - 1000))))).flat().length, 1)
      await t.rejects(readAll(type, ...cut(wrap(long(mib + 2 * size)))), { code: 'ErrRsc' }, `${type} ${size}`)
    }
  }
  await t.rejects(readAll(JSON_TYPE, ...Array.from({ length: 20 }, () => ' '.repeat(64 * 1024))), { code: 'ErrRsc' })
  await t.rejects(readAll(JSON_TYPE, '{"meta":"', ...Array.from({ length: 20 }, () => 'x'.repeat(64 * 1024))), { code: 'ErrRsc' })
})

t.test('an endless record is not read to its end', async (t) => {
  for (const [type, head] of [[LINES, '{"a":"'], [JSON_TYPE, '[{"a":"'], [JSON_TYPE, '{"data":[{"a":"']] as const) {
    let pulled = 0
    const endless = async function * () {
      yield Buffer.from(head)
      for (; pulled < 64; pulled++) yield Buffer.alloc(64 * 1024, 'x')
    }
    await t.rejects(async () => {
      for await (const batch of readList(endless(), type)) t.equal([...batch].length, 0)
    }, { code: 'ErrRsc' })
    t.ok(pulled <= 17, `${pulled} chunks of 64 KiB`)
  }
})
